// Numbers with units, times, and what column names mean.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "labs/field/leak/table_parts.hpp"

namespace oomlab::field::leak_parts {
namespace {

bool has(std::string_view text, const char* part) {
    return text.find(part) != std::string_view::npos;
}

struct Unit {
    const char* text;
    double scale;
};
// Longest first. "GB" in these files is nearly always 2^30: SGLang and nvidia-smi mean it so.
constexpr Unit kUnits[] = {{"bytes", 1},     {"byte", 1},           {"kib", 1024},
                           {"mib", 1048576}, {"gib", 1073741824.0}, {"kb", 1024},
                           {"mb", 1048576},  {"gb", 1073741824.0},  {"tib", 1099511627776.0},
                           {"k", 1024},      {"m", 1048576},        {"g", 1073741824.0},
                           {"b", 1}};

double unit_scale(std::string_view text) {
    for (const Unit& u : kUnits)
        if (text == u.text) return u.scale;
    return 0;
}

// A unit at the end of a column name: "[MiB]", "(GB)", "_bytes", "_mb".
double scale_in_name(const std::string& name) {
    for (const char* open : {"[", "("}) {
        const auto at = name.rfind(open);
        if (at == std::string::npos) continue;
        const auto end = name.find_first_of("])", at);
        if (end == std::string::npos) continue;
        if (const double s = unit_scale(trim(std::string_view(name).substr(at + 1, end - at - 1)));
            s > 0)
            return s;
    }
    for (char separator : {'_', '.', '-', ' '}) {
        std::string part = name;
        while (true) {
            const auto at = part.rfind(separator);
            if (at == std::string::npos) break;
            const std::string last = part.substr(at + 1);
            if (last.size() > 1 && unit_scale(last) > 0) return unit_scale(last);
            part.resize(at);
        }
    }
    if (has(name, "bytes")) return 1;
    return 0;
}

std::optional<int> digits(std::string_view text, std::size_t& at, std::size_t most) {
    int value = 0;
    std::size_t n = 0;
    while (at < text.size() && n < most && std::isdigit(static_cast<unsigned char>(text[at])))
        value = value * 10 + (text[at++] - '0'), ++n;
    return n > 0 ? std::optional<int>(value) : std::nullopt;
}

// Days since 1970-01-01 of a Gregorian date.
double days_of(int year, int month, int day) {
    const int y = year - (month <= 2 ? 1 : 0), era = (y >= 0 ? y : y - 399) / 400,
              yoe = y - era * 400;
    const int doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1,
              doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097.0 + doe - 719468.0;
}

}  // namespace

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
        text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
        text.remove_suffix(1);
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front())
        return trim(text.substr(1, text.size() - 2));
    return text;
}

std::string printable(std::string_view text, std::size_t limit) {
    std::string out;
    for (char c : text.substr(0, limit)) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    return out;
}

Meaning meaning_of(std::string_view column_name) {
    const std::string n = lower(trim(column_name));
    Meaning m;
    m.scale = scale_in_name(n);
    const auto role = [&](Role r) { return m.role = r, m; };
    if (n == "time" || n == "timestamp" || n == "ts" || n == "date" || n == "datetime" ||
        n == "t" || n == "t_s" || n == "time_s" || n == "seconds" || n == "elapsed" ||
        n == "elapsed_s" || n == "at" || n == "at_s" || n == "unix_time" || n == "epoch" ||
        n == "wall_time" || n == "time_ms" || n == "@timestamp")
        return role(Role::time);
    if (n == "index" || n == "gpu" || n == "gpu_id" || n == "uuid" || n == "gpu_uuid" ||
        n == "device" || n == "rank" || n == "pod" || n == "host" || n == "hostname" ||
        n == "instance" || n == "pci.bus_id")
        return role(Role::group);
    if (n == "pid" || n == "process_id") return role(Role::pid);
    if (has(n, "peak") || has(n, "max_memory") || n == "name" || has(n, "utilization") ||
        has(n, "util") || has(n, "temperature") || has(n, "power") || has(n, "percent") ||
        has(n, "num_alloc") || has(n, "allocation.") || has(n, "segment.") ||
        has(n, ".allocated") || has(n, ".freed") || has(n, "small_pool") || has(n, "large_pool") ||
        has(n, "oversize") || has(n, "num_ooms") || has(n, "retries") || has(n, "clocks"))
        return role(Role::ignored);
    if (has(n, "inactive_split")) return role(Role::inactive_split);
    if (has(n, "unallocated")) return role(Role::ignored);
    if (has(n, "requested_bytes") || has(n, "active_bytes")) return role(Role::ignored);
    if (has(n, "allocated")) return role(Role::allocated);
    if (has(n, "reserved") || has(n, "memory_cached") || n == "cached") return role(Role::reserved);
    if (has(n, "requests") || has(n, "completed") || has(n, "request_success"))
        return role(has(n, "running") || has(n, "waiting") ? Role::ignored : Role::requests);
    if (has(n, "memory.max") ||
        (has(n, "limit") && (has(n, "mem") || has(n, "host") || has(n, "container"))))
        return role(Role::host_limit);
    if (has(n, "rss") || has(n, "resident") || has(n, "working_set") ||
        has(n, "container_memory") || has(n, "host_mem") || has(n, "memory.current") ||
        n == "host_used" || n == "anon" || has(n, "cgroup"))
        return role(Role::host_used);
    if (has(n, "memory.total") || has(n, "fb_total") || has(n, "mem_total") ||
        has(n, "memory_total") || n == "total" || has(n, "total_memory"))
        return role(Role::device_total);
    if (has(n, "memory.free") || has(n, "fb_free") || has(n, "mem_free") || has(n, "memory_free") ||
        n == "free")
        return role(Role::device_free);
    if (has(n, "used_memory") || has(n, "used_gpu_memory") || has(n, "process_used") ||
        has(n, "process_gpu"))
        return role(Role::process_used);
    if (has(n, "memory.used") || has(n, "fb_used") || has(n, "memory_used") || has(n, "mem_used") ||
        has(n, "gpu_mem") || has(n, "gpu_memory") || has(n, "device_used") || has(n, "vram") ||
        n == "used" || n == "memory" || n == "mem" || n == "value" || n == "memory_bytes" ||
        n == "bytes" || n == "used_bytes" || n == "used_mib" || n == "used_mb" ||
        n == "memory_mib" || n == "memory_mb" || n == "mem_mb")
        return role(Role::device_used);
    return m;
}

std::optional<double> read_value(std::string_view text, double* scale) {
    text = trim(text);
    if (text.empty() || text.size() > 64) return std::nullopt;
    std::string clean;
    for (char c : text)
        if (c != ',' && c != '_') clean += c;
    double value = 0;
    const char* begin = clean.data();
    const char* end = begin + clean.size();
    if (begin != end && *begin == '+') ++begin;
    const auto [rest, ec] = std::from_chars(begin, end, value);
    if (ec != std::errc() || !std::isfinite(value)) return std::nullopt;
    const std::string unit =
        lower(trim(std::string_view(rest, static_cast<std::size_t>(end - rest))));
    if (unit.empty()) return value;
    const double s = unit_scale(unit);
    if (s == 0) return std::nullopt;
    if (scale != nullptr) *scale = s;
    return value;
}

std::optional<double> read_time(std::string_view text, bool* clock_only) {
    text = trim(text);
    if (text.empty() || text.size() > 48) return std::nullopt;
    if (text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
    double number = 0;
    const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (ec == std::errc() && rest == text.data() + text.size()) {
        if (!std::isfinite(number) || number < 0) return std::nullopt;
        if (number > 1e17) return number / 1e9;
        if (number > 1e14) return number / 1e6;
        if (number > 1e11) return number / 1e3;
        return number;
    }
    std::size_t at = 0;
    double days = 0;
    bool dated = false;
    if (text.size() >= 10 && (text[4] == '-' || text[4] == '/')) {
        auto year = digits(text, at, 4);
        ++at;
        auto month = digits(text, at, 2);
        ++at;
        auto day = digits(text, at, 2);
        if (!year || !month || !day || *month < 1 || *month > 12 || *day < 1 || *day > 31)
            return std::nullopt;
        days = days_of(*year, *month, *day);
        dated = true;
        while (at < text.size() && (text[at] == 'T' || text[at] == ' ' || text[at] == 't')) ++at;
    }
    auto hour = digits(text, at, 2);
    if (!hour || at >= text.size() || text[at] != ':') return std::nullopt;
    auto minute = digits(text, ++at, 2);
    if (!minute) return std::nullopt;
    double second = 0;
    if (at < text.size() && text[at] == ':') {
        auto whole = digits(text, ++at, 2);
        if (!whole) return std::nullopt;
        second = *whole;
        if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
            double place = 0.1;
            for (++at; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
                 ++at, place /= 10)
                second += place * (text[at] - '0');
        }
    }
    double zone = 0;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
        const double sign = text[at] == '+' ? 1 : -1;
        auto h = digits(text, ++at, 2);
        if (at < text.size() && text[at] == ':') ++at;
        auto m = digits(text, at, 2);
        if (h) zone = sign * (*h * 3600.0 + (m ? *m * 60.0 : 0.0));
    } else if (at < text.size() && text[at] != 'Z' && text[at] != 'z' && text[at] != ' ') {
        return std::nullopt;
    }
    if (*hour > 24 || *minute > 59 || second > 61) return std::nullopt;
    if (clock_only != nullptr) *clock_only = !dated;
    return days * 86400.0 + *hour * 3600.0 + *minute * 60.0 + second - zone;
}

bool next_line(std::string_view& rest, std::string_view& line) {
    if (rest.empty()) return false;
    const auto end = rest.find('\n');
    line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return true;
}

}  // namespace oomlab::field::leak_parts
