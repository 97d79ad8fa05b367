#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "grader/checks/parts.hpp"
#include "labs/catalog/toml_reader.hpp"

namespace oomlab::course {

namespace {
void flatten(const toml::table& table, const std::string& prefix, std::map<std::string, std::string>& out, int depth) {
    for (const auto& [key, value] : table) {
        const std::string name = prefix + std::string(key.str());
        if (const auto* t = value.as_table()) {
            if (depth < 4) flatten(*t, name + ".", out, depth + 1);
        } else if (const auto s = value.value_exact<std::string>()) {
            out[name] = *s;
        } else if (const auto i = value.value_exact<i64>()) {
            out[name] = std::to_string(*i);
        } else if (value.is_number()) {
            out[name] = fmt::format("{}", value.value<double>().value_or(0));
        } else if (const auto b = value.value_exact<bool>()) {
            out[name] = *b ? "true" : "false";
        }
    }
}
}  // namespace

std::string lower_text(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

Result<std::map<std::string, std::string>> read_answers(const Folder& folder, const Exercise& e, const std::string& file) {
    OOMLAB_TRY(text, learner_text(folder, e, file));
    OOMLAB_TRY(root, parse_toml(text, e.id + "/" + file));
    std::map<std::string, std::string> out;
    flatten(root, "", out, 0);
    return out;
}

std::optional<double> answer_bytes(const std::map<std::string, std::string>& answers, const std::string& key) {
    const auto found = answers.find(key);
    if (found == answers.end() || found->second.empty()) return std::nullopt;
    const auto bytes = parse_bytes(found->second);
    if (!bytes) return std::nullopt;
    return static_cast<double>(*bytes);
}

std::optional<double> answer_number(const std::map<std::string, std::string>& answers, const std::string& key) {
    const auto found = answers.find(key);
    if (found == answers.end()) return std::nullopt;
    double v = 0;
    const char* end = found->second.data() + found->second.size();
    const auto [p, ec] = std::from_chars(found->second.data(), end, v);
    if (ec != std::errc() || p != end) return std::nullopt;
    return v;
}

bool mentions(const std::string& text, const std::string& group) {
    const std::string lower = lower_text(text);
    std::size_t at = 0;
    while (at <= group.size()) {
        const std::size_t bar = std::min(group.find('|', at), group.size());
        const std::string word = lower_text(group.substr(at, bar - at));
        if (!word.empty() && lower.find(word) != std::string::npos) return true;
        at = bar + 1;
    }
    return false;
}

bool mentions_all(const std::string& text, const std::vector<std::string>& groups, std::string& missing) {
    missing.clear();
    for (const std::string& g : groups) {
        if (mentions(text, g)) continue;
        missing += (missing.empty() ? "" : "; ") + g.substr(0, g.find('|'));
    }
    return missing.empty();
}

}  // namespace oomlab::course
