#include "labs/field/preflight/yaml_subset.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace oomlab::field {
namespace {

using Kind = YamlNode::Kind;

struct Line {
    std::size_t number = 0, indent = 0;
    std::string_view text;  // without indent and comment
    std::string_view raw;   // as written, for block scalars
};

std::string_view trimmed(std::string_view t) {
    while (!t.empty() && (t.front() == ' ' || t.front() == '\t')) t.remove_prefix(1);
    while (!t.empty() && (t.back() == ' ' || t.back() == '\t' || t.back() == '\r'))
        t.remove_suffix(1);
    return t;
}

// Cuts " # comment" outside of quotes.
std::string_view without_comment(std::string_view t) {
    char quote = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        if (quote != 0) {
            if (quote == '"' && t[i] == '\\')
                ++i;
            else if (t[i] == quote)
                quote = 0;
        } else if ((t[i] == '"' || t[i] == '\'') &&
                   (i == 0 || t[i - 1] == ' ' || t[i - 1] == '[' || t[i - 1] == ',' ||
                    t[i - 1] == '{' || t[i - 1] == ':')) {
            quote = t[i];
        } else if (t[i] == '#' && (i == 0 || t[i - 1] == ' ' || t[i - 1] == '\t')) {
            return t.substr(0, i);
        }
    }
    return t;
}

// The ':' that ends a key: outside quotes and brackets, followed by a space or the end.
std::size_t key_end(std::string_view t) {
    char quote = 0;
    int depth = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        if (quote != 0) {
            if (quote == '"' && t[i] == '\\')
                ++i;
            else if (t[i] == quote)
                quote = 0;
        } else if (i == 0 && (t[i] == '"' || t[i] == '\'')) {
            quote = t[i];
        } else if (t[i] == '[' || t[i] == '{') {
            ++depth;
        } else if (t[i] == ']' || t[i] == '}') {
            --depth;
        } else if (t[i] == ':' && depth <= 0 && (i + 1 == t.size() || t[i + 1] == ' ')) {
            return i;
        }
    }
    return std::string_view::npos;
}

class Parser {
  public:
    Parser(std::string_view text, const std::string& name) : name_(name) {
        std::size_t number = 0;
        while (!text.empty()) {
            const auto end = text.find('\n');
            std::string_view raw = text.substr(0, end);
            text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
            ++number;
            if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
            Line line;
            line.number = number;
            line.raw = raw;
            while (line.indent < raw.size() && raw[line.indent] == ' ') ++line.indent;
            line.text = trimmed(without_comment(raw.substr(line.indent)));
            lines_.push_back(line);
        }
    }

    Result<std::vector<YamlNode>> documents() {
        std::vector<YamlNode> out;
        while (true) {
            skip_blank();
            if (at_ >= lines_.size()) break;
            if (lines_[at_].text == "---" || lines_[at_].text == "...") {
                ++at_;
                continue;
            }
            const std::size_t before = at_;
            YamlNode node = block(lines_[at_].indent, 0);
            if (error_) return fail(std::move(*error_));
            out.push_back(std::move(node));
            if (at_ == before) ++at_;
        }
        return out;
    }

  private:
    void refuse(std::size_t line, const std::string& what) {
        if (!error_) error_ = Error::parse(name_ + ", line " + std::to_string(line) + ": " + what);
        at_ = lines_.size();
    }
    bool count(std::size_t depth) {
        if (++nodes_ > YamlLimits::kNodes)
            refuse(at_ < lines_.size() ? lines_[at_].number : lines_.size(),
                   "too many values for a manifest");
        if (depth > YamlLimits::kDepth)
            refuse(at_ < lines_.size() ? lines_[at_].number : lines_.size(),
                   "nested too deep for a manifest");
        return !error_;
    }
    void skip_blank() {
        while (at_ < lines_.size() && lines_[at_].text.empty()) ++at_;
    }
    bool document_end() const {
        return at_ >= lines_.size() || lines_[at_].text == "---" || lines_[at_].text == "...";
    }

    YamlNode block(std::size_t indent, std::size_t depth) {
        YamlNode node;
        if (!count(depth)) return node;
        skip_blank();
        if (document_end()) return node;
        node.line = lines_[at_].number;
        const std::string_view t = lines_[at_].text;
        if (t == "-" || t.substr(0, 2) == "- ") return list(lines_[at_].indent, depth);
        if (t.front() != '{' && t.front() != '[' && key_end(t) != std::string_view::npos)
            return map(lines_[at_].indent, depth);
        (void)indent;
        return inline_value(std::string(t), depth);
    }

    YamlNode list(std::size_t indent, std::size_t depth) {
        YamlNode node;
        node.kind = Kind::list;
        node.line = lines_[at_].number;
        while (!error_) {
            skip_blank();
            if (document_end() || lines_[at_].indent != indent ||
                !(lines_[at_].text == "-" || lines_[at_].text.substr(0, 2) == "- "))
                break;
            std::string_view rest = trimmed(lines_[at_].text.substr(1));
            if (rest.empty()) {
                ++at_;
                skip_blank();
                node.items.push_back(!document_end() && lines_[at_].indent > indent
                                         ? block(lines_[at_].indent, depth + 1)
                                         : YamlNode{});
                continue;
            }
            const bool nested =
                rest == "-" || rest.substr(0, 2) == "- " ||
                (rest.front() != '{' && rest.front() != '[' && rest.front() != '|' &&
                 rest.front() != '>' && key_end(rest) != std::string_view::npos);
            if (nested) {
                // "- key: value": the rest stands in a block of its own, deeper by the dash.
                Line& line = lines_[at_];
                line.indent += static_cast<std::size_t>(rest.data() - line.text.data());
                line.text = rest;
                node.items.push_back(block(line.indent, depth + 1));
                continue;
            }
            node.items.push_back(value_after(rest, indent, depth + 1));
        }
        return node;
    }

    YamlNode map(std::size_t indent, std::size_t depth) {
        YamlNode node;
        node.kind = Kind::map;
        node.line = lines_[at_].number;
        while (!error_) {
            skip_blank();
            if (document_end() || lines_[at_].indent != indent) break;
            const std::string_view t = lines_[at_].text;
            const std::size_t colon = key_end(t);
            if (colon == std::string_view::npos || t.substr(0, 2) == "- ") {
                if (lines_[at_].indent == indent && t.substr(0, 2) != "- ")
                    refuse(lines_[at_].number, "expected 'key: value'");
                break;
            }
            std::string key = unquote(trimmed(t.substr(0, colon)));
            const std::string_view rest = trimmed(t.substr(colon + 1));
            YamlNode value;
            if (rest.empty()) {
                ++at_;
                skip_blank();
                if (!document_end()) {
                    const bool list_here =
                        lines_[at_].indent == indent &&
                        (lines_[at_].text == "-" || lines_[at_].text.substr(0, 2) == "- ");
                    if (lines_[at_].indent > indent || list_here)
                        value = block(lines_[at_].indent, depth + 1);
                }
            } else {
                value = value_after(rest, indent, depth + 1);
            }
            node.fields.emplace_back(std::move(key), std::move(value));
        }
        return node;
    }

    // A value that starts on this line: a block scalar, a flow value (maybe over lines), or plain.
    YamlNode value_after(std::string_view rest, std::size_t indent, std::size_t depth) {
        if (!count(depth)) return {};
        if (rest.front() == '|' || rest.front() == '>')
            return block_scalar(rest.front() == '|', indent);
        return inline_value(std::string(rest), depth, indent);
    }

    YamlNode block_scalar(bool literal, std::size_t indent) {
        YamlNode node;
        node.kind = Kind::scalar;
        node.line = lines_[at_].number;
        ++at_;
        std::size_t inner = 0;
        while (at_ < lines_.size()) {
            const Line& line = lines_[at_];
            if (trimmed(line.raw).empty()) {
                node.text += '\n';
                ++at_;
                continue;
            }
            if (line.indent <= indent) break;
            if (inner == 0) inner = line.indent;
            node.text += std::string(line.raw.substr(std::min(inner, line.raw.size())));
            node.text += literal ? '\n' : ' ';
            ++at_;
        }
        return node;
    }

    YamlNode inline_value(std::string text, std::size_t depth, std::size_t indent = 0) {
        const std::size_t number = lines_[at_].number;
        ++at_;
        // Flow values and quoted text may go on over lines until they close.
        while (at_ < lines_.size() && !closed(text)) {
            text += ' ';
            text += std::string(lines_[at_].text);
            ++at_;
            if (text.size() > YamlLimits::kBytes) break;
        }
        YamlNode node;
        if (!text.empty() && (text.front() == '[' || text.front() == '{')) {
            std::size_t position = 0;
            node = flow(text, position, depth, number);
        } else {
            // Plain text may be continued by deeper lines.
            while (!text.empty() && text.front() != '"' && text.front() != '\'' &&
                   at_ < lines_.size() && !lines_[at_].text.empty() &&
                   lines_[at_].indent > indent && indent > 0 &&
                   key_end(lines_[at_].text) == std::string_view::npos &&
                   lines_[at_].text.substr(0, 2) != "- ") {
                text += ' ';
                text += std::string(lines_[at_].text);
                ++at_;
            }
            node.kind = text.empty() || text == "null" || text == "~" ? Kind::null : Kind::scalar;
            node.text = unquote(text);
        }
        node.line = number;
        return node;
    }

    static bool closed(const std::string& text) {
        if (text.empty()) return true;
        const bool flow = text.front() == '[' || text.front() == '{',
                   quoted = text.front() == '"' || text.front() == '\'';
        if (!flow && !quoted) return true;
        char quote = 0;
        int depth = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (quote != 0) {
                if (quote == '"' && text[i] == '\\')
                    ++i;
                else if (text[i] == quote)
                    quote = 0;
            } else if (text[i] == '"' || text[i] == '\'') {
                quote = text[i];
            } else if (text[i] == '[' || text[i] == '{') {
                ++depth;
            } else if (text[i] == ']' || text[i] == '}') {
                --depth;
            }
        }
        return quote == 0 && depth <= 0;
    }

    YamlNode flow(const std::string& t, std::size_t& i, std::size_t depth, std::size_t number) {
        YamlNode node;
        node.line = number;
        if (!count(depth)) return node;
        const auto skip = [&] {
            while (i < t.size() && (t[i] == ' ' || t[i] == ',' || t[i] == '\t')) ++i;
        };
        skip();
        if (i >= t.size()) return node;
        if (t[i] == '[') {
            node.kind = Kind::list;
            ++i;
            for (skip(); i < t.size() && t[i] != ']'; skip()) {
                if (error_) return node;
                node.items.push_back(flow(t, i, depth + 1, number));
            }
            if (i < t.size()) ++i;
            return node;
        }
        if (t[i] == '{') {
            node.kind = Kind::map;
            ++i;
            for (skip(); i < t.size() && t[i] != '}'; skip()) {
                if (error_) return node;
                const std::size_t start = i;
                std::string key = flow_text(t, i, true);
                while (i < t.size() && (t[i] == ' ' || t[i] == ':')) ++i;
                YamlNode value;
                if (i < t.size() && t[i] != ',' && t[i] != '}')
                    value = flow(t, i, depth + 1, number);
                node.fields.emplace_back(std::move(key), std::move(value));
                if (i == start) ++i;
            }
            if (i < t.size()) ++i;
            return node;
        }
        const std::size_t start = i;
        node.kind = Kind::scalar;
        node.text = flow_text(t, i, false);
        if (i == start) ++i;  // a stray bracket
        return node;
    }

    static std::string flow_text(const std::string& t, std::size_t& i, bool key) {
        if (t[i] == '"' || t[i] == '\'') {
            const char quote = t[i];
            const std::size_t from = i++;
            while (i < t.size() && t[i] != quote) i += quote == '"' && t[i] == '\\' ? 2 : 1;
            i = std::min(i + 1, t.size());
            return unquote(std::string_view(t).substr(from, i - from));
        }
        const std::size_t from = i;
        while (i < t.size() && t[i] != ',' && t[i] != ']' && t[i] != '}' && !(key && t[i] == ':'))
            ++i;
        return std::string(trimmed(std::string_view(t).substr(from, i - from)));
    }

    static std::string unquote(std::string_view t) {
        if (t.size() < 2 || (t.front() != '"' && t.front() != '\'') || t.back() != t.front())
            return std::string(t);
        std::string out;
        for (std::size_t i = 1; i + 1 < t.size(); ++i) {
            if (t.front() == '"' && t[i] == '\\' && i + 2 < t.size()) {
                ++i;
                out += t[i] == 'n' ? '\n' : t[i] == 't' ? '\t' : t[i];
            } else if (t.front() == '\'' && t[i] == '\'' && i + 2 < t.size() && t[i + 1] == '\'') {
                out += t[i++];
            } else {
                out += t[i];
            }
        }
        return out;
    }

    const std::string& name_;
    std::vector<Line> lines_;
    std::size_t at_ = 0, nodes_ = 0;
    std::optional<Error> error_;
};

}  // namespace

const YamlNode* YamlNode::get(std::string_view key) const {
    for (const auto& [name, value] : fields)
        if (name == key) return &value;
    return nullptr;
}

const YamlNode* YamlNode::at(std::string_view path) const {
    const YamlNode* node = this;
    while (node != nullptr && !path.empty()) {
        const auto dot = path.find('.');
        node = node->get(path.substr(0, dot));
        path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    }
    return node;
}

Result<std::vector<YamlNode>> parse_yaml_subset(std::string_view text, const std::string& name) {
    if (text.size() > YamlLimits::kBytes)
        return fail(Error::parse(name + ": too large for a manifest (limit 4 MiB)"));
    return Parser(text, name).documents();
}

}  // namespace oomlab::field
