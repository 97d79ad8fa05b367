#include "labs/field/triage/lines.hpp"

#include <algorithm>
#include <cstring>

namespace oomlab::triage {
namespace {

std::uint64_t count_newlines(std::string_view text) {
    // Short inner loops with byte counters: the compiler turns them into vector compares.
    std::uint64_t total = 0;
    std::size_t i = 0;
    while (i < text.size()) {
        const std::size_t stop = std::min(text.size(), i + 255);
        std::uint8_t n = 0;
        for (; i < stop; ++i) n = static_cast<std::uint8_t>(n + (text[i] == '\n'));
        total += n;
    }
    return total;
}

std::size_t line_start(std::string_view text, std::size_t at, std::size_t lowest) {
    const void* p = at > lowest ? memrchr(text.data() + lowest, '\n', at - lowest) : nullptr;
    return p == nullptr ? lowest
                        : static_cast<std::size_t>(static_cast<const char*>(p) - text.data()) + 1;
}

void append_utf8(std::string& out, std::uint32_t c) {
    if (c < 0x80) {
        out.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
        out.push_back(static_cast<char>(0xC0 | (c >> 6)));
        out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    } else {
        out.push_back(static_cast<char>(0xE0 | (c >> 12)));
        out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
        out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    }
}

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Length of a colour sequence at `i`, or 0: ESC [ … letter, or its visible spellings by
// `cat -v` ("^[[31m") and by syslog ("#033[31m").
std::size_t colour_length(std::string_view s, std::size_t i) {
    std::size_t k = i;
    if (s[k] == '\x1b') {
        k += 1;
    } else if (s.substr(k, 2) == "^[") {
        k += 2;
    } else if (s.substr(k, 4) == "#033") {
        k += 4;
    } else {
        return 0;
    }
    if (k >= s.size() || s[k] != '[') return s[i] == '\x1b' ? 1 : 0;
    ++k;
    while (k < s.size() && k - i < 32 &&
           (s[k] == ';' || s[k] == '?' || (s[k] >= '0' && s[k] <= '9')))
        ++k;
    if (k < s.size() && ((s[k] >= 'a' && s[k] <= 'z') || (s[k] >= 'A' && s[k] <= 'Z')))
        return k + 1 - i;
    return s[i] == '\x1b' ? 1 : 0;
}

}  // namespace

std::string unescape_json_line(std::string_view line) {
    std::string out;
    out.reserve(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\\' || i + 1 >= line.size()) {
            out.push_back(line[i]);
            continue;
        }
        const char c = line[++i];
        if (c == 'n' || c == 'r') {
            out.push_back('\n');
        } else if (c == 't') {
            out.push_back('\t');
        } else if (c == 'u' && i + 4 < line.size()) {
            std::uint32_t v = 0;
            bool good = true;
            for (std::size_t k = 1; k <= 4; ++k) {
                const int h = hex(line[i + k]);
                good = good && h >= 0;
                v = v * 16 + static_cast<std::uint32_t>(h < 0 ? 0 : h);
            }
            if (!good) {
                out += "\\u";
                continue;
            }
            i += 4;
            append_utf8(out, v);
        } else {
            out.push_back(c);
        }
    }
    std::string clean;
    clean.reserve(out.size());
    for (std::size_t i = 0; i < out.size();) {
        const std::size_t skip = colour_length(out, i);
        if (skip == 0) clean.push_back(out[i++]);
        i += skip;
    }
    return clean;
}

std::string_view without_prefix(std::string_view line) {
    for (const std::string_view docker : {"{\"log\":\"", "{\"log\": \""})
        if (line.starts_with(docker)) return line.substr(docker.size());
    // 2026-05-01T10:00:00.123456789Z stderr F …
    if (line.size() > 30 && line[4] == '-' && line[10] == 'T') {
        const auto gap = line.find(' ');
        if (gap != std::string_view::npos && gap < 40) {
            const std::string_view rest = line.substr(gap + 1);
            if (rest.starts_with("stdout ") || rest.starts_with("stderr "))
                return rest.size() > 9 ? rest.substr(9) : std::string_view{};
        }
    }
    // service-1  | …
    const auto bar = line.substr(0, 64).find(" | ");
    if (bar != std::string_view::npos && bar > 0) {
        std::size_t end = bar;
        while (end > 0 && line[end - 1] == ' ') --end;
        const std::string_view name = line.substr(0, end);
        const bool word = !name.empty() && name.find_first_of(" \t|:=[(") == std::string_view::npos;
        if (word && name.find_first_not_of("0123456789.") != std::string_view::npos)
            return line.substr(bar + 3);
    }
    // [rank3]: …
    if (line.starts_with("[rank")) {
        const auto close = line.substr(0, 12).find("]: ");
        if (close != std::string_view::npos) return line.substr(close + 3);
    }
    return line;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
    std::string out;
    out.reserve(std::min(text.size(), max_bytes) + 4);
    for (std::size_t i = 0; i < text.size();) {
        if (out.size() >= max_bytes) {
            out += "...";
            break;
        }
        const auto b = static_cast<unsigned char>(text[i]);
        if (b < 0x80) {
            if (b == '\t') {
                out.push_back(' ');
            } else if (b >= 0x20 && b != 0x7F) {
                out.push_back(static_cast<char>(b));
            } else if (b != '\r' && b != '\n') {
                out.push_back('?');
            } else {
                out.push_back(' ');
            }
            ++i;
            continue;
        }
        const std::size_t length = b >= 0xF0 && b < 0xF5   ? 4
                                   : b >= 0xE0 && b < 0xF0 ? 3
                                   : b >= 0xC2 && b < 0xE0 ? 2
                                                           : 0;
        bool good = length != 0 && i + length <= text.size();
        std::uint32_t code = length == 2 ? b & 0x1FU : length == 3 ? b & 0x0FU : b & 0x07U;
        for (std::size_t k = 1; good && k < length; ++k) {
            const auto c = static_cast<unsigned char>(text[i + k]);
            good = (c & 0xC0) == 0x80;
            code = (code << 6) | (c & 0x3FU);
        }
        good = good && !(length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) &&
               !(length == 4 && (code < 0x10000 || code > 0x10FFFF));
        const bool control = code < 0xA0 || (code >= 0x200B && code <= 0x200F) ||
                             (code >= 0x2028 && code <= 0x202E) ||
                             (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
        if (!good) {
            out.push_back('?');
            ++i;
            continue;
        }
        if (control) {
            out.push_back('?');
        } else {
            out.append(text.substr(i, length));
        }
        i += length;
    }
    return out;
}

LineScanner::LineScanner(const LiteralSet& literals, Sink sink)
    : literals_(literals), sink_(std::move(sink)) {}

void LineScanner::begin() {
    buffer_.clear();
    line_ = 1;
    bytes_ = nul_bytes_ = 0;
    open_line_ = false;
    first_ = true;
    utf16_ = utf16_big_ = false;
    half_ = -1;
    escape_ = Escape::none;
}

void LineScanner::feed(std::string_view chunk) {
    while (!chunk.empty()) {
        const std::string_view part = chunk.substr(0, kBlock);
        chunk.remove_prefix(part.size());
        bytes_ += part.size();
        decode(part);
        if (buffer_.size() >= kBlock) process(false);
    }
}

void LineScanner::decode(std::string_view chunk) {
    if (first_) {
        first_ = false;
        if (chunk.size() >= 2) {
            const auto a = static_cast<unsigned char>(chunk[0]);
            const auto b = static_cast<unsigned char>(chunk[1]);
            utf16_ = (a == 0xFF && b == 0xFE) || (a == 0xFE && b == 0xFF);
            utf16_big_ = a == 0xFE;
            if (utf16_) chunk.remove_prefix(2);
        }
        if (chunk.substr(0, 3) == "\xEF\xBB\xBF") chunk.remove_prefix(3);
    }
    if (!utf16_) {
        if (bytes_ <= 4 * kBlock)
            nul_bytes_ += static_cast<std::uint64_t>(std::count(chunk.begin(), chunk.end(), '\0'));
        strip_colours(chunk);
        return;
    }
    std::string text;
    text.reserve(chunk.size());
    for (const char c : chunk) {
        const int b = static_cast<unsigned char>(c);
        if (half_ < 0) {
            half_ = b;
            continue;
        }
        const int unit = utf16_big_ ? half_ * 256 + b : b * 256 + half_;
        half_ = -1;
        append_utf8(text, unit >= 0xD800 && unit < 0xE000 ? '?' : static_cast<std::uint32_t>(unit));
    }
    strip_colours(text);
}

void LineScanner::strip_colours(std::string_view chunk) {
    std::size_t i = 0;
    while (i < chunk.size()) {
        if (escape_ == Escape::none) {
            const void* p = std::memchr(chunk.data() + i, '\x1b', chunk.size() - i);
            const std::size_t stop =
                p == nullptr ? chunk.size()
                             : static_cast<std::size_t>(static_cast<const char*>(p) - chunk.data());
            buffer_.append(chunk.substr(i, stop - i));
            if (p == nullptr) return;
            escape_ = Escape::seen;
            i = stop + 1;
            continue;
        }
        const char c = chunk[i++];
        if (c == '\n') {  // an escape never swallows a line end: numbers would shift
            buffer_.push_back(c);
            escape_ = Escape::none;
            continue;
        }
        switch (escape_) {
            case Escape::seen:
                escape_ = c == '[' ? Escape::csi : c == ']' ? Escape::osc : Escape::none;
                break;
            case Escape::csi:
                if (c >= '@' && c <= '~') escape_ = Escape::none;
                break;
            case Escape::osc:
                if (c == '\a') escape_ = Escape::none;
                if (c == '\x1b') escape_ = Escape::osc_escape;
                break;
            case Escape::osc_escape:
                escape_ = Escape::none;
                break;
            case Escape::none:
                break;
        }
    }
}

void LineScanner::end() {
    process(true);
    open_line_ = !buffer_.empty() && buffer_.back() != '\n';
    buffer_.clear();
}

void LineScanner::process(bool final) {
    if (final) {
        scan(buffer_, {});
        return;
    }
    if (buffer_.size() <= kLookahead) return;
    const std::size_t limit = buffer_.size() - kLookahead;
    const void* p = memrchr(buffer_.data(), '\n', limit);
    if (p != nullptr) {
        const auto cut = static_cast<std::size_t>(static_cast<const char*>(p) - buffer_.data()) + 1;
        const std::string_view all = buffer_;
        scan(all.substr(0, cut), all.substr(cut));
        buffer_.erase(0, cut);
    } else if (buffer_.size() >= 4 * kBlock) {
        // One line longer than a mebibyte: look at what is here, keep a bit for matches that
        // straddle, and go on counting the same line.
        const std::string_view all = buffer_;
        scan(all.substr(0, limit), all.substr(limit));
        buffer_.erase(0, limit > kLookahead ? limit - kLookahead : limit);
    }
}

void LineScanner::scan(std::string_view text, std::string_view after) {
    std::size_t at = 0;
    while (at < text.size()) {
        const LiteralSet::Hit hit = literals_.find_first(text, at);
        if (!hit.found()) break;
        const std::size_t begin = line_start(text, hit.position, at);
        line_ += count_newlines(text.substr(at, begin - at));
        const std::size_t newline = text.find('\n', hit.position);
        const std::size_t end = newline == std::string_view::npos ? text.size() : newline;
        const std::size_t next = newline == std::string_view::npos ? end : end + 1;
        std::string_view lookahead = text.substr(next, kLookahead);
        if (lookahead.size() < 64 && !after.empty()) lookahead = after.substr(0, kLookahead);
        if (end - begin <= kLineMax) {
            emit(text.substr(begin, end - begin), lookahead);
            at = next;
            if (newline != std::string_view::npos) ++line_;
            continue;
        }
        // A long line: a window around the place, then go on behind the window.
        const std::size_t low =
            std::max(begin, hit.position > kLineMax / 4 ? hit.position - kLineMax / 4 : 0);
        const std::size_t high = std::min(end, hit.position + kLineMax / 2);
        emit(text.substr(low, high - low), lookahead);
        at = high;
    }
    line_ += count_newlines(text.substr(std::min(at, text.size())));
}

void LineScanner::emit(std::string_view line, std::string_view lookahead) {
    const bool json =
        line.find("\\\"") != std::string_view::npos ||
        line.find("\\u00") != std::string_view::npos ||
        (line.find("\\n") != std::string_view::npos && line.find('{') != std::string_view::npos);
    const bool visible =
        line.find("^[[") != std::string_view::npos || line.find("#033[") != std::string_view::npos;
    if (json || visible) {
        scratch_ = json ? unescape_json_line(line) : std::string(line);
        if (!json) {
            std::string clean;
            for (std::size_t i = 0; i < scratch_.size();) {
                const std::size_t skip = colour_length(scratch_, i);
                if (skip == 0) clean.push_back(scratch_[i++]);
                i += skip;
            }
            scratch_ = std::move(clean);
        }
        line = scratch_;
    }
    std::size_t at = 0;
    while (at < line.size()) {
        const std::size_t stop = std::min(line.find_first_of("\r\n", at), line.size());
        if (stop > at) {
            const std::string_view rest =
                stop + 1 < line.size() ? line.substr(stop + 1) : std::string_view{};
            // What stands behind the last \n of a runtime's JSON is the runtime's own: the message
            // goes on in the next line.
            const bool own = rest.size() < 160 && rest.starts_with("\",");
            emit_part(line.substr(at, stop - at),
                      rest.empty() || own ? lookahead : rest.substr(0, kLookahead));
        }
        at = stop + 1;
    }
}

void LineScanner::emit_part(std::string_view part, std::string_view lookahead) {
    sink_({part, without_prefix(part), line_, lookahead});
}

}  // namespace oomlab::triage
