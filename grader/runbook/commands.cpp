#include "grader/runbook/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "labs/catalog/toml_reader.hpp"

namespace oomlab::grader {
namespace {

constexpr std::size_t kMaxCommands = 2000;

std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> out;
    std::string word;
    char quote = 0;
    for (const char c : line) {
        if (quote != 0) {
            if (c == quote) quote = 0;
            word += c;
        } else if (c == '"' || c == '\'') {
            quote = c;
            word += c;
        } else if (c == '#' && word.empty()) {
            break;
        } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
            if (!word.empty()) out.push_back(std::move(word));
            word.clear();
        } else if (c == '|' || c == ';' || c == '&' || c == '(' || c == ')') {
            if (!word.empty()) out.push_back(std::move(word));
            word.clear();
            if (out.empty() || out.back() != "|") out.emplace_back("|");
        } else {
            word += c;
        }
    }
    if (!word.empty()) out.push_back(std::move(word));
    return out;
}

bool assignment(const std::string& w) {
    const std::size_t eq = w.find('=');
    return eq != std::string::npos && eq > 0 && std::all_of(w.begin(), w.begin() + static_cast<std::ptrdiff_t>(eq), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool plain_program(const std::string& w) {
    return w.size() >= 2 && std::isalpha(static_cast<unsigned char>(w[0])) != 0 &&
           std::all_of(w.begin(), w.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

std::string fault_of(const CommandBook::Tool& tool, const std::string& name, const std::vector<std::string>& words) {
    std::string sub;
    const std::set<std::string>* options = nullptr;
    const auto advice = [&](const std::string& w) {
        const auto it = tool.instead.find(w);
        return it == tool.instead.end() ? std::string() : fmt::format(" (use {})", it->second);
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& w = words[i];
        if (w == "--") break;
        if (w.size() > 1 && w[0] == '-' && std::isdigit(static_cast<unsigned char>(w[1])) == 0) {
            const std::string option = w.substr(0, w.find('='));
            const bool ok = tool.options.count(option) != 0 || (options != nullptr && options->count(option) != 0) ||
                            (option.size() > 2 && option[1] != '-' && tool.options.count(option.substr(0, 2)) != 0) ||
                            (options != nullptr && option.size() > 2 && option[1] != '-' && options->count(option.substr(0, 2)) != 0);
            if (!ok) return fmt::format("{}{}{} has no {}{}", name, sub.empty() ? "" : " ", sub, option, advice(option));
            // "-n plover": the value of a short option is not a sub-command.
            if (sub.empty() && w.find('=') == std::string::npos && i + 1 < words.size() && (option.size() == 2 || option == "--namespace" || option == "--context")) ++i;
            continue;
        }
        if (tool.has_subcommands && sub.empty()) {
            if (w.find('$') != std::string::npos || w.find('<') != std::string::npos || w == "..." || w.find("\xE2\x80\xA6") != std::string::npos) return {};
            const auto it = tool.subcommands.find(w);
            if (it == tool.subcommands.end()) return fmt::format("{} has no '{}'{}", name, w, advice(w));
            sub = w;
            options = &it->second;
        }
    }
    return {};
}

}  // namespace

Result<CommandBook> load_commands(const std::string& file) {
    OOMLAB_TRY(source, read_text_file(file));
    OOMLAB_TRY(root, parse_toml(source, file));
    std::optional<Error> error;
    CommandBook book;
    TomlReader r(root, file, "", error);
    book.wrong_paths = r.texts("wrong_paths");
    for (const toml::table* t : r.tables("tool")) {
        TomlReader tr(*t, file, "tool", error);
        const std::string name = tr.text("name", "");
        CommandBook::Tool tool;
        for (std::string& o : tr.texts("options")) tool.options.insert(std::move(o));
        if (const toml::table* subs = tr.table("subcommands")) {
            tool.has_subcommands = true;
            for (const auto& [key, node] : *subs) {
                std::set<std::string> options;
                if (const toml::array* a = node.as_array())
                    for (const toml::node& n : *a) options.insert(n.value_or(std::string()));
                tool.subcommands.emplace(std::string(key.str()), std::move(options));
            }
        }
        if (const toml::table* instead = tr.table("instead"))
            for (const auto& [key, node] : *instead) tool.instead.emplace(std::string(key.str()), node.value_or(std::string()));
        tr.finish();
        if (name.empty()) tr.error(t, "a tool needs a name");
        book.tools.emplace(name, std::move(tool));
    }
    r.finish();
    if (error) return fail(*error);
    return book;
}

CommandReport check_commands(const CommandBook& book, const std::vector<MdCommand>& code) {
    CommandReport out;
    std::string joined;
    u32 first_line = 0;
    std::size_t seen = 0;
    for (const MdCommand& c : code) {
        if (++seen > kMaxCommands) break;
        if (joined.empty()) first_line = c.line;
        joined += c.text;
        if (!c.inline_code && !joined.empty() && joined.back() == '\\') {  // goes on in the next line
            joined.back() = ' ';
            continue;
        }
        std::string line = std::move(joined);
        joined.clear();
        if (line.size() > 1 && line[0] == '$' && line[1] == ' ') line.erase(0, 2);
        const std::vector<std::string> words = words_of(line);
        std::size_t at = 0;
        bool counted = false;
        while (at < words.size()) {
            std::size_t end = at;
            while (end < words.size() && words[end] != "|") ++end;
            std::size_t p = at;
            while (p < end && (assignment(words[p]) || words[p] == "sudo" || words[p] == "do" || words[p] == "then" || words[p] == "watch")) ++p;
            if (p < end) {
                const std::string& name = words[p];
                if (const auto tool = book.tools.find(name); tool != book.tools.end() && (end > p + 1 || !c.inline_code)) {
                    ++out.known;
                    counted = true;
                    const std::string what = fault_of(tool->second, name, {words.begin() + static_cast<std::ptrdiff_t>(p) + 1, words.begin() + static_cast<std::ptrdiff_t>(end)});
                    if (!what.empty()) out.faults.push_back({first_line, printable(line, 120), what});
                } else if (tool == book.tools.end() && !counted && plain_program(name) && end > p + 1 && name.find("=") == std::string::npos) {
                    ++out.in_house;
                    counted = true;
                }
            }
            at = end + 1;
        }
        for (const std::string& w : words)
            for (const std::string& bad : book.wrong_paths)
                if (w.compare(0, bad.size(), bad) == 0) out.faults.push_back({first_line, printable(line, 120), fmt::format("no system has {}...", bad)});
    }
    return out;
}

}  // namespace oomlab::grader
