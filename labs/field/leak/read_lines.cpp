// Torch memory statistics by line: JSON, a printed dict, or text with key=value and "key: 1.2 GiB".
#include <cctype>

#include "labs/field/leak/table_parts.hpp"

namespace oomlab::field::leak_parts {
namespace {

bool word_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' ||
           c == '%';
}

// A time at the start of a line, possibly in brackets: the longest prefix that reads as one.
std::optional<double> leading_time(std::string_view line, bool* clock_only) {
    line = trim(line);
    if (!line.empty() && line.front() == '[') line.remove_prefix(1);
    std::string_view upto = line.substr(0, line.find_first_of("]|{"));
    if (upto.size() > 40) upto = upto.substr(0, 40);
    // By words: "2024-05-01 12:00:00,123 INFO" or "12:00:03".
    const auto first = upto.find_first_of(" \t");
    if (first != std::string_view::npos) {
        const auto second = upto.find_first_of(" \t", first + 1);
        if (auto t = read_time(upto.substr(0, second), clock_only)) return t;
    }
    const std::string_view word = upto.substr(0, first);
    if (word.find(':') == std::string_view::npos && word.find('-') == std::string_view::npos &&
        word.size() < 9)
        return std::nullopt;  // a bare small number is no time
    return read_time(word, clock_only);
}

struct Pair {
    std::string key;
    std::string_view value;
};

// Every "key <sep> number [unit]" of the line; keys may hold spaces in text ("memory allocated: 3
// GiB").
std::vector<Pair> pairs_of(std::string_view line) {
    std::vector<Pair> out;
    std::size_t i = 0;
    while (i < line.size() && out.size() < 128) {
        if (!std::isalpha(static_cast<unsigned char>(line[i]))) {
            ++i;
            continue;
        }
        const std::size_t key_from = i;
        while (i < line.size() && word_char(line[i])) ++i;
        const std::size_t key_to = i;
        std::size_t j = i;
        bool separated = false;
        while (j < line.size() &&
               (line[j] == '"' || line[j] == '\'' || line[j] == ' ' || line[j] == ':' ||
                line[j] == '=') &&
               j - i < 6)
            separated |= line[j] == ':' || line[j] == '=' || line[j] == ' ', ++j;
        if (!separated || j >= line.size() ||
            !(std::isdigit(static_cast<unsigned char>(line[j])) ||
              ((line[j] == '-' || line[j] == '+') && j + 1 < line.size() &&
               std::isdigit(static_cast<unsigned char>(line[j + 1])))))
            continue;
        std::size_t k = j + 1;
        while (k < line.size() &&
               (std::isdigit(static_cast<unsigned char>(line[k])) || line[k] == '.' ||
                ((line[k] == 'e' || line[k] == 'E') && k + 1 < line.size() &&
                 (std::isdigit(static_cast<unsigned char>(line[k + 1])) || line[k + 1] == '+' ||
                  line[k + 1] == '-')) ||
                ((line[k] == '+' || line[k] == '-') && (line[k - 1] == 'e' || line[k - 1] == 'E'))))
            ++k;
        std::size_t end = k;
        std::size_t unit = k;
        while (unit < line.size() && line[unit] == ' ' && unit - k < 2) ++unit;
        std::size_t unit_end = unit;
        while (unit_end < line.size() && std::isalpha(static_cast<unsigned char>(line[unit_end])))
            ++unit_end;
        double scale = 0;
        if (unit_end > unit && read_value(line.substr(j, unit_end - j), &scale)) end = unit_end;
        out.push_back(
            {std::string(line.substr(key_from, key_to - key_from)), line.substr(j, end - j)});
        i = end;
    }
    return out;
}

}  // namespace

Result<SampleTable> read_lines(std::string_view text, const std::string& name,
                               const ReadOptions& options) {
    TableBuilder builder(options);
    std::string_view rest = text, line;
    u64 number = 0, sampled = 0;
    bool timed = false;
    while (next_line(rest, line)) {
        ++number;
        if (line.size() > ReadLimits::kLine) continue;
        const auto pairs = pairs_of(line);
        bool any = false;
        double t = 0;
        bool clock_only = false;
        std::optional<double> at = leading_time(line, &clock_only);
        std::string pid;
        for (const Pair& p : pairs) {
            Meaning m = meaning_of(p.key);
            if (auto mapped = options.column_map.find(p.key); mapped != options.column_map.end())
                m.role = mapped->second;
            if (m.role == Role::time && !at) at = read_time(p.value, &clock_only);
            if (m.role == Role::pid) pid = printable(p.value, 20);
            any |= m.role == Role::allocated || m.role == Role::reserved ||
                   m.role == Role::device_used || m.role == Role::process_used ||
                   m.role == Role::host_used || m.role == Role::inactive_split;
        }
        // "time": "2024-05-01T..." inside of JSON.
        if (!at) {
            for (const char* key :
                 {"\"timestamp\"", "\"time\"", "\"ts\"", "'time'", "'timestamp'"}) {
                const auto key_at = line.find(key);
                if (key_at == std::string_view::npos) continue;
                const auto open = line.find_first_of("\"'", key_at + std::string_view(key).size());
                if (open == std::string_view::npos) continue;
                const auto close = line.find(line[open], open + 1);
                if (close != std::string_view::npos)
                    at = read_time(line.substr(open + 1, close - open - 1), &clock_only);
            }
        }
        if (!any) continue;
        if (at)
            t = builder.steady_time("", *at, clock_only), timed = true;
        else if (options.every_s > 0 && !timed)
            t = static_cast<double>(sampled) * options.every_s;
        else {
            ++builder.table.bad_rows;
            ++sampled;
            continue;
        }
        ++sampled;
        ++builder.table.rows;
        if (!pid.empty()) builder.pid("", t, pid);
        for (const Pair& p : pairs) {
            Meaning m = meaning_of(p.key);
            if (auto mapped = options.column_map.find(p.key); mapped != options.column_map.end())
                m.role = mapped->second;
            if (m.role == Role::none || m.role == Role::time || m.role == Role::group ||
                m.role == Role::pid || m.role == Role::ignored)
                continue;
            double scale = 0;
            auto value = read_value(p.value, &scale);
            if (!value) continue;
            if (Column* c = builder.column("", printable(p.key), m))
                builder.add(*c, t, *value, scale);
        }
    }
    if (builder.table.rows == 0) {
        if (sampled > 0)
            return fail(Error::parse(
                name +
                ": memory figures but no times on their lines; give the spacing with --every 10s"));
        return fail(Error::parse(name + ": neither a CSV header, a Prometheus answer, nor lines "
                                        "with allocated=..., reserved=... were found"));
    }
    return builder.finish("lines");
}

}  // namespace oomlab::field::leak_parts
