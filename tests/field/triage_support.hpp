// Cases of triage: a log, and which types, causes and lines are right. Transforms that must not
// change a verdict.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/field/triage/triage.hpp"

namespace oomlab::triage_test {

struct Case {
    std::string name;
    std::string text;
    std::vector<std::string> types, causes;
    std::set<std::uint64_t> lines;  // that prove it; empty: not stated
};

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::string> split(const std::string& text, char by) {
    std::vector<std::string> out;
    std::string part;
    std::istringstream in(text);
    while (std::getline(in, part, by)) out.push_back(part);
    return out;
}

// Rows of an index: file, types, causes, lines at the given columns. Empty when it is absent.
struct Columns {
    std::size_t file, types, causes, lines;
};
inline std::vector<Case> read_index(const std::string& folder, Columns at) {
    std::vector<Case> out;
    const auto rows = split(read_file(folder + "/index.tsv"), '\n');
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const auto cells = split(rows[i], '\t');
        if (cells.size() <= std::max({at.file, at.types, at.causes, at.lines})) continue;
        Case c;
        c.name = cells[at.file];
        c.text = read_file(folder + "/" + c.name);
        c.types = split(cells[at.types], ',');
        c.causes = split(cells[at.causes], ',');
        for (const auto& n : split(cells[at.lines], ',')) c.lines.insert(std::stoull(n));
        out.push_back(std::move(c));
    }
    return out;
}

// The same without the reporter's remark on line 1.
inline Case without_note(Case c) {
    if (c.text.rfind("note:", 0) != 0) return c;
    c.text.erase(0, c.text.find('\n') + 1);
    std::set<std::uint64_t> moved;
    for (const auto n : c.lines) moved.insert(n - 1);
    c.lines = std::move(moved);
    return c;
}

struct Verdict {
    bool type = false, cause = false, line = false;
};
inline Verdict judge(const Case& c, const triage::Report& r) {
    Verdict v;
    const auto in = [](const std::vector<std::string>& all, const std::string& one) {
        return std::find(all.begin(), all.end(), one) != all.end();
    };
    v.type = r.type && in(c.types, std::to_string(*r.type));
    v.cause = r.type && in(c.causes, r.cause);
    v.line =
        c.lines.empty() || std::any_of(r.evidence.begin(), r.evidence.end(),
                                       [&](const auto& e) { return c.lines.count(e.line) != 0; });
    return v;
}

// [TRANSFORMS]
template <class F>
std::string each_line(const std::string& text, F&& change) {
    std::string out;
    std::uint64_t n = 0;
    for (const auto& line : split(text, '\n')) out += change(line, ++n) + "\n";
    return out;
}

inline std::string with_colours(const std::string& text) {
    return each_line(text, [](const std::string& line, std::uint64_t) {
        return "\x1b[36m" + line.substr(0, line.size() / 3) + "\x1b[0m" +
               line.substr(line.size() / 3) + "\x1b[0;39m";
    });
}
inline std::string with_crlf(const std::string& text) {
    return each_line(text, [](const std::string& line, std::uint64_t) { return line + "\r"; });
}
inline std::string as_docker_json(const std::string& text) {
    return each_line(text, [](const std::string& line, std::uint64_t n) {
        std::string escaped;
        for (const char ch : line) {
            if (ch == '"' || ch == '\\') escaped += '\\';
            if (ch == '\t') {
                escaped += "\\t";
                continue;
            }
            escaped += ch;
        }
        return "{\"log\":\"" + escaped +
               "\\n\",\"stream\":\"stderr\",\"time\":\"2026-05-01T10:00:" +
               std::to_string(10 + n % 50) + ".000000000Z\"}";
    });
}
inline std::string as_cri(const std::string& text) {
    return each_line(text, [](const std::string& line, std::uint64_t n) {
        return "2026-05-01T10:00:" + std::to_string(10 + n % 50) + ".123456789+00:00 stderr F " +
               line;
    });
}
inline std::string as_compose(const std::string& text) {
    return each_line(text,
                     [](const std::string& line, std::uint64_t) { return "server-1  | " + line; });
}
inline std::string interleaved(const std::string& text) {
    Prng rng(7);
    return each_line(text, [&](const std::string& line, std::uint64_t) {
        std::string noise;
        for (std::uint64_t k = rng.below(4); k > 0; --k)
            noise +=
                "2026-05-01 10:00:00 INFO gateway request id=" + std::to_string(rng.below(100000)) +
                " route=/healthz latency_ms=" + std::to_string(rng.below(90)) + "\n";
        return noise + line;
    });
}
// Thousands of a gateway's lines before, between and after.
inline std::string drowned(const std::string& text) {
    std::string block;
    for (int i = 0; i < 1500; ++i)
        block += "2026-05-01 10:00:00 INFO gateway request id=" + std::to_string(i) +
                 " route=/healthz latency_ms=12\n";
    return each_line(text, [&](const std::string& line, std::uint64_t) { return block + line; });
}
inline std::string eight_ranks(const std::string& text) {
    return each_line(text, [](const std::string& line, std::uint64_t) {
        std::string all;
        for (int rank = 0; rank < 8; ++rank)
            all += "[rank" + std::to_string(rank) + "]: " + line + (rank < 7 ? "\n" : "");
        return all;
    });
}
// Without the first and the last of twelve parts, as far as that leaves lines.
inline std::string cut(const std::string& text, bool head) {
    const auto lines = split(text, '\n');
    const std::size_t drop = lines.size() / 12;
    std::string out;
    for (std::size_t i = head ? drop : 0; i < lines.size() - (head ? 0 : drop); ++i)
        out += lines[i] + "\n";
    return out;
}

}  // namespace oomlab::triage_test
