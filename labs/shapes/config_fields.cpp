#include "labs/shapes/config_fields.hpp"

#include <cmath>

namespace oomlab::config {
namespace {

// Infinity, -Infinity and NaN outside of strings become null, keeping the length (places stay
// true).
std::string without_python_numbers(std::string_view text) {
    std::string out(text);
    bool in_string = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (in_string) {
            if (out[i] == '\\')
                ++i;
            else if (out[i] == '"')
                in_string = false;
            continue;
        }
        if (out[i] == '"') {
            in_string = true;
            continue;
        }
        for (std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
            if (out.compare(i, word.size(), word) != 0) continue;
            std::string null = word.size() >= 4 ? "null" : "0";
            null.resize(word.size(), ' ');
            out.replace(i, word.size(), null);
            i += word.size() - 1;
            break;
        }
    }
    return out;
}

std::string place_of(std::string_view text, std::size_t byte) {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
        ++column;
        if (text[i] == '\n') ++line, column = 1;
    }
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Remembers where the text stops being JSON, without exceptions.
struct Listener : nlohmann::json_sax<Json> {
    std::size_t at = 0;
    std::size_t depth = 0;
    bool too_deep = false;
    static constexpr std::size_t kDepth = 64;
    bool down() {
        too_deep = ++depth > kDepth;
        return !too_deep;
    }
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return down(); }
    bool key(string_t&) override { return true; }
    bool end_object() override { return --depth, true; }
    bool start_array(std::size_t) override { return down(); }
    bool end_array() override { return --depth, true; }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::detail::exception&) override {
        at = position;
        return false;
    }
};

const Json* find_in(const Json& object, Names names) {
    for (const char* name : names) {
        auto it = object.find(name);
        if (it != object.end() && !it->is_null()) return &*it;
    }
    return nullptr;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
    std::string out;
    for (char c : text) {
        if (out.size() >= limit) return out + "...";
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    return out;
}

Fields::Fields(Fields&& other) noexcept
    : outer_(std::move(other.outer_)),
      name_(std::move(other.name_)),
      error_(std::move(other.error_)) {
    find_inner();
}

void Fields::find_inner() {
    inner_ = nullptr;
    if (!outer_.is_object()) return;
    const Json* at = &outer_;
    // Qwen-Omni nests twice: thinker_config.text_config.
    for (int depth = 0; depth < 2; ++depth) {
        const Json* next = find_in(*at, {"text_config", "llm_config", "language_config",
                                         "thinker_config", "language_model"});
        if (next == nullptr || !next->is_object()) break;
        inner_ = at = next;
    }
}

Result<Fields> Fields::parse(std::string_view text, const std::string& name) {
    if (text.size() > Limits::kFileBytes)
        return fail(Error::parse(name + ": " + human_bytes(text.size()) +
                                 " is too large for a config.json (limit " +
                                 human_bytes(Limits::kFileBytes) + ")"));
    const std::string clean = without_python_numbers(text);
    Listener listener;
    if (!Json::sax_parse(clean, &listener)) {
        if (listener.too_deep)
            return fail(Error::parse(name + ": nested more than 64 deep: this is no config.json"));
        return fail(Error::parse(name + ", " + place_of(clean, listener.at) +
                                 ": not valid JSON; give the model's config.json"));
    }
    Fields fields;
    fields.name_ = name;
    fields.outer_ = Json::parse(clean, nullptr, false);
    if (!fields.outer_.is_object())
        return fail(
            Error::parse(name + ": a config.json is one JSON object, this is something else"));
    fields.find_inner();
    return fields;
}

const Json* Fields::find_here(Names names) const {
    return find_in(inner_ != nullptr ? *inner_ : outer_, names);
}

const Json* Fields::find(Names names) const {
    if (inner_ != nullptr)
        if (const Json* found = find_in(*inner_, names)) return found;
    return find_in(outer_, names);
}

void Fields::refuse(const std::string& message) {
    if (!error_) error_ = Error::parse(name_ + ": " + message);
}

u64 Fields::number(Names names, u64 absent, u64 limit) {
    const Json* found = find(names);
    if (found == nullptr) return absent;
    const std::string key = *names.begin();
    if (found->is_number_float()) {
        const double value = found->get<double>();
        if (value >= 0 && value == std::floor(value) && value <= static_cast<double>(limit))
            return static_cast<u64>(value);
    } else if (found->is_number_unsigned()) {
        const u64 value = found->get<u64>();
        if (value <= limit) return value;
    }
    refuse(key + " = " + printable(found->dump(-1, ' ', true, Json::error_handler_t::replace), 40) +
           " makes no sense: a whole number from 0 to " + std::to_string(limit) + " is expected");
    return absent;
}

u64 Fields::required(Names names, u64 limit) {
    std::string all;
    for (const char* name : names) all += (all.empty() ? "" : ", ") + std::string(name);
    if (!has(names)) {
        refuse(std::string(*names.begin()) + " is missing (looked for " + all +
               (nested() ? " in the text part and outside" : "") +
               "); give the model's own config.json");
        return 0;
    }
    const u64 value = number(names, 0, limit);
    if (value == 0) refuse(std::string(*names.begin()) + " is 0: a model needs at least 1");
    return value;
}

double Fields::real(Names names, double absent) const {
    const Json* found = find(names);
    return found != nullptr && found->is_number() ? found->get<double>() : absent;
}

bool Fields::flag(Names names, bool absent) const {
    const Json* found = find(names);
    return found != nullptr && found->is_boolean() ? found->get<bool>() : absent;
}

std::string Fields::text(Names names) const {
    const Json* found = find(names);
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> Fields::texts(Names names) const {
    std::vector<std::string> out;
    const Json* found = find(names);
    if (found == nullptr || !found->is_array()) return out;
    for (const Json& item : *found)
        if (item.is_string()) out.push_back(item.get<std::string>());
    return out;
}

}  // namespace oomlab::config
