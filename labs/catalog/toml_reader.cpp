#include "labs/catalog/toml_reader.hpp"

#include <fmt/format.h>

namespace oomlab {

Result<toml::table> parse_toml(std::string_view text, const std::string& file) {
    try {
        return toml::parse(text, std::string_view(file));
    } catch (const toml::parse_error& e) {
        const auto& at = e.source().begin;
        return fail(Error::parse(fmt::format("{}:{}:{}: {}", file, static_cast<u64>(at.line),
                                             static_cast<u64>(at.column), e.description())));
    }
}

TomlReader::TomlReader(const toml::table& table, std::string file, std::string section,
                       std::optional<Error>& first_error)
    : table_(table), file_(std::move(file)), section_(std::move(section)), first_error_(first_error) {}

std::string TomlReader::place(const toml::node* where) const {
    const auto& at = (where != nullptr ? where->source() : table_.source()).begin;
    return at.line == 0 ? file_
                        : fmt::format("{}:{}:{}", file_, static_cast<u64>(at.line),
                                      static_cast<u64>(at.column));
}

void TomlReader::error(const toml::node* where, const std::string& message) {
    if (!first_error_) first_error_ = Error::parse(fmt::format("{}: {}", place(where), message));
}

const toml::node* TomlReader::find(std::string_view key) {
    known_.emplace(key);
    return table_.get(key);
}

bool TomlReader::has(std::string_view key) { return find(key) != nullptr; }
const toml::node* TomlReader::node(std::string_view key) { return find(key); }

std::string TomlReader::text(std::string_view key, std::string fallback) {
    const toml::node* n = find(key);
    if (n == nullptr) return fallback;
    if (const auto v = n->value_exact<std::string>()) return *v;
    error(n, fmt::format("{}{} takes a text in quotes", section_, key));
    return fallback;
}

bool TomlReader::flag(std::string_view key, bool fallback) {
    const toml::node* n = find(key);
    if (n == nullptr) return fallback;
    if (const auto v = n->value_exact<bool>()) return *v;
    error(n, fmt::format("{}{} takes true or false", section_, key));
    return fallback;
}

u64 TomlReader::count(std::string_view key, u64 fallback, u64 low, u64 high) {
    const toml::node* n = find(key);
    if (n == nullptr) return fallback;
    const auto v = n->value_exact<i64>();
    if (!v || *v < 0 || static_cast<u64>(*v) < low || static_cast<u64>(*v) > high) {
        error(n, fmt::format("{}{} takes a whole number from {} to {}", section_, key, low, high));
        return fallback;
    }
    return static_cast<u64>(*v);
}

double TomlReader::number(std::string_view key, double fallback, double low, double high) {
    const toml::node* n = find(key);
    if (n == nullptr) return fallback;
    const auto v = n->is_number() ? n->value<double>() : std::nullopt;
    if (!v || !(*v >= low && *v <= high)) {
        error(n, fmt::format("{}{} takes a number from {} to {}", section_, key, low, high));
        return fallback;
    }
    return *v;
}

u64 TomlReader::bytes(std::string_view key, u64 fallback) {
    const toml::node* n = find(key);
    if (n == nullptr) return fallback;
    if (const auto v = n->value_exact<i64>(); v && *v >= 0) return static_cast<u64>(*v);
    if (const auto v = n->value_exact<std::string>()) {
        auto parsed = parse_bytes(*v);
        if (parsed) return *parsed;
        error(n, fmt::format("{}{}: {}", section_, key, parsed.error().message));
        return fallback;
    }
    error(n, fmt::format("{}{} takes a size such as \"512MiB\", \"24GiB\" or a number of bytes",
                         section_, key));
    return fallback;
}

double TomlReader::seconds(std::string_view key, double fallback) {
    constexpr double kMax = 3.2e8;   // ten years
    const toml::node* n = find(key);
    if (n == nullptr) return fallback;
    if (n->is_number()) {
        const double v = n->value<double>().value_or(-1);
        if (v >= 0 && v <= kMax) return v;
    } else if (const auto v = n->value_exact<std::string>()) {
        const auto s = parse_seconds(*v);
        if (s && *s <= kMax) return *s;
    }
    error(n, fmt::format("{}{} takes a time such as \"90s\", \"10m\" or \"1h\"", section_, key));
    return fallback;
}

std::string TomlReader::one_of(std::string_view key, std::string fallback,
                               std::initializer_list<const char*> allowed) {
    const toml::node* n = find(key);
    if (n == nullptr) return fallback;
    const auto v = n->value_exact<std::string>();
    const std::vector<std::string> names(allowed.begin(), allowed.end());
    if (v) {
        for (const std::string& a : names) {
            if (*v == a) return *v;
        }
    }
    const std::string close = v ? nearest(*v, names) : "";
    error(n, fmt::format("{}{} is one of {}{}", section_, key, fmt::join(names, ", "),
                         close.empty() ? "" : fmt::format(" (did you mean {}?)", close)));
    return fallback;
}

const toml::table* TomlReader::table(std::string_view key) {
    const toml::node* n = find(key);
    if (n == nullptr) return nullptr;
    if (const toml::table* t = n->as_table()) return t;
    error(n, fmt::format("{}{} is a table: write [{}{}]", section_, key, section_, key));
    return nullptr;
}

std::vector<const toml::table*> TomlReader::tables(std::string_view key) {
    std::vector<const toml::table*> result;
    const toml::node* n = find(key);
    if (n == nullptr) return result;
    bool good = n->is_array();
    if (good) {
        for (const toml::node& item : *n->as_array()) {
            if (const toml::table* t = item.as_table()) result.push_back(t);
            else good = false;
        }
    }
    if (!good) {
        result.clear();
        error(n, fmt::format("{}{} is a list of tables: write [[{}{}]] for each", section_, key,
                             section_, key));
    }
    return result;
}

std::vector<std::string> TomlReader::texts(std::string_view key) {
    std::vector<std::string> result;
    const toml::node* n = find(key);
    if (n == nullptr) return result;
    bool good = n->is_array();
    if (good) {
        for (const toml::node& item : *n->as_array()) {
            if (const auto v = item.value_exact<std::string>()) result.push_back(*v);
            else good = false;
        }
    }
    if (!good) {
        error(n, fmt::format("{}{} takes a list of texts", section_, key));
        return {};
    }
    return result;
}

std::vector<u64> TomlReader::counts(std::string_view key) {
    std::vector<u64> result;
    const toml::node* n = find(key);
    if (n == nullptr) return result;
    bool good = n->is_array();
    if (good) {
        for (const toml::node& item : *n->as_array()) {
            const auto v = item.value_exact<i64>();
            if (v && *v > 0 && *v <= 1'000'000) result.push_back(static_cast<u64>(*v));
            else good = false;
        }
    }
    if (!good) {
        error(n, fmt::format("{}{} takes a list of whole numbers from 1 to 1000000", section_, key));
        return {};
    }
    return result;
}

void TomlReader::finish() {
    if (first_error_) return;
    for (const auto& [key, value] : table_) {
        const std::string_view name = key.str();
        if (known_.count(name) != 0) continue;
        const std::string close = nearest(name, {known_.begin(), known_.end()});
        const auto at = key.source().begin;
        first_error_ = Error::parse(fmt::format(
            "{}:{}:{}: unknown key {}{}{}", file_, static_cast<u64>(at.line),
            static_cast<u64>(at.column), section_, name,
            close.empty() ? "" : fmt::format(" (did you mean {}?)", close)));
        return;
    }
}

}  // namespace oomlab
