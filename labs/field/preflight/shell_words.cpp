// Words of a command line, as a POSIX shell splits them; nothing is expanded.
#include <cctype>

#include "labs/field/preflight/deployment.hpp"

namespace oomlab::field {

std::vector<std::string> shell_words(std::string_view text) {
    std::vector<std::string> out;
    std::string word;
    bool any = false;
    char quote = 0;
    const auto end = [&] {
        if (any && out.size() < 10000) out.push_back(word);
        word.clear();
        any = false;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else if (c == '\\' && quote == '"' && i + 1 < text.size())
                word += text[++i];
            else
                word += c;
            continue;
        }
        if (c == '\'' || c == '"') {
            quote = c;
            any = true;
        } else if (c == '\\' && i + 1 < text.size()) {
            // A backslash before the line's end joins lines.
            if (text[i + 1] == '\n')
                ++i;
            else if (text[i + 1] == '\r' && i + 2 < text.size() && text[i + 2] == '\n')
                i += 2;
            else
                word += text[++i], any = true;
        } else if (c == '#' && !any && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n')) {
            while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
        } else if (c == ';' || c == '&' || c == '|' || c == '\n') {
            end();
            std::string op(1, c == '\n' ? ';' : c);
            if (i + 1 < text.size() && text[i + 1] == c && (c == '&' || c == '|')) op += c, ++i;
            if (out.size() < 10000) out.push_back(op);
        } else if (std::isspace(static_cast<unsigned char>(c))) {
            end();
        } else {
            word += c;
            any = true;
        }
    }
    end();
    return out;
}

}  // namespace oomlab::field
