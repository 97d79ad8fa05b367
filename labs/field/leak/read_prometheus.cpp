// The answer of a Prometheus range query: {"data":{"resultType":"matrix","result":[...]}}.
#include <nlohmann/json.hpp>

#include "labs/field/leak/table_parts.hpp"

namespace oomlab::field::leak_parts {
namespace {

using Json = nlohmann::json;

// Refuses depth before the document is built.
bool too_deep(std::string_view text) {
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (quoted) {
            if (text[i] == '\\')
                ++i;
            else if (text[i] == '"')
                quoted = false;
        } else if (text[i] == '"') {
            quoted = true;
        } else if (text[i] == '{' || text[i] == '[') {
            if (++depth > 32) return true;
        } else if (text[i] == '}' || text[i] == ']') {
            --depth;
        }
    }
    return false;
}

std::string text_of(const Json& object, const char* key) {
    auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

Result<SampleTable> read_prometheus(std::string_view text, const std::string& name,
                                    const ReadOptions& options) {
    if (text.size() > ReadLimits::kJsonBytes)
        return fail(Error::parse(name + ": larger than " + human_bytes(ReadLimits::kJsonBytes) +
                                 "; query a shorter range or a larger step"));
    if (too_deep(text))
        return fail(Error::parse(name + ": nested too deep for a Prometheus answer"));
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
        return fail(
            Error::parse(name + ": not valid JSON; save the answer of /api/v1/query_range whole"));
    const Json* result = json.is_array() ? &json : nullptr;
    if (json.is_object()) {
        if (text_of(json, "status") == "error")
            return fail(Error::parse(name + ": Prometheus answered with an error: " +
                                     printable(text_of(json, "error"), 200)));
        if (auto data = json.find("data"); data != json.end() && data->is_object())
            if (auto r = data->find("result"); r != data->end()) result = &*r;
    }
    if (result == nullptr || !result->is_array())
        return fail(
            Error::parse(name + ": no data.result list; save the answer of /api/v1/query_range"));
    TableBuilder builder(options);
    for (const Json& series : *result) {
        if (!series.is_object()) continue;
        std::string metric = "value", group;
        if (auto labels = series.find("metric"); labels != series.end() && labels->is_object()) {
            if (const std::string n = text_of(*labels, "__name__"); !n.empty()) metric = n;
            for (const char* label :
                 {"gpu", "device", "UUID", "instance", "pod", "container", "rank"})
                if (const std::string v = text_of(*labels, label); !v.empty())
                    group +=
                        (group.empty() ? "" : " ") + std::string(label) + "=" + printable(v, 40);
        }
        Meaning meaning = meaning_of(metric);
        if (lower(metric).find("dcgm_fi_dev_fb") != std::string::npos)
            meaning.scale = 1048576;  // DCGM counts frame buffer in MiB
        if (meaning.role == Role::none) meaning.role = Role::device_used;
        auto values = series.find("values");
        if (values == series.end() || !values->is_array()) continue;
        Column* column = builder.column(group, printable(metric), meaning);
        if (column == nullptr || column->role == Role::ignored) continue;
        for (const Json& pair : *values) {
            if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number()) {
                ++builder.table.bad_rows;
                continue;
            }
            std::optional<double> value;
            if (pair[1].is_string())
                value = read_value(pair[1].get_ref<const std::string&>(), nullptr);
            else if (pair[1].is_number())
                value = pair[1].get<double>();
            if (!value) continue;  // "NaN": a missing sample
            ++builder.table.rows;
            builder.add(*column, pair[0].get<double>(), *value, 0);
        }
    }
    if (builder.table.rows == 0)
        return fail(
            Error::parse(name + ": the answer holds no samples; check the query and its range"));
    return builder.finish("prometheus");
}

}  // namespace oomlab::field::leak_parts
