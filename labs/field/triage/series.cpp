// Figures sampled over time, as people log them: "rss=9.31GiB", "GPU 0 18.1 GiB", a line of `top`,
// a column of a table, "3.1 -> 9.8 -> 18 GB".
#include "labs/field/triage/facts.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "labs/field/triage/lines.hpp"

namespace oomlab::triage {
namespace {

constexpr double kMiBd = 1024.0 * 1024;
constexpr std::size_t kColumnsMax = 16;
constexpr std::size_t kRowsMax = 64;
constexpr std::size_t kStrangersMax = 6;
constexpr std::uint64_t kReadsDense = 20000;

struct Patterns {
    RE2::Options options = [] {
        RE2::Options o;
        o.set_case_sensitive(false);
        o.set_log_errors(false);
        return o;
    }();
    // A name, then a size with its unit.
    RE2 pair{
        R"(([a-z_][a-z_. -]{0,22}[0-9]{0,2})\s*(?:\([^)]{0,16}\))?\s*([=:| ])\s*([0-9]+(?:\.[0-9]+)?)\s?([KMGT]i?B|[GMgm]i?)\b)",
        options};
    // A name that carries its unit: rss_mb=1234, memory_allocated_gb: 12.3, Prometheus' _bytes.
    RE2 suffixed{
        R"(([a-z_]{2,40})_(gib|gb|mib|mb|kb|bytes)(?:\{[^}]{0,200}\})?\W{1,3}([0-9]+(?:\.[0-9]+)?(?:e[+]?[0-9]+)?))",
        options};
    // Bytes without a unit, told by their length: memory_allocated()=15237894144.
    RE2 bare{R"(([a-z_.]{3,40})(?:\([^)]{0,12}\))?\s*[=:]\s*([0-9]{9,15})\b)", options};
    // PID USER PR NI VIRT RES SHR S …
    RE2 top{
        R"((?:^|\s|\")([0-9]+)\s+[a-z_]\S*\s+(?:-?[0-9]+|rt)\s+-?[0-9]+\s+[0-9.]+[gmt]?\s+([0-9.]+[gmt]?)\s+[0-9.]+[gmt]?\s+[RSDZTI]\s)",
        options};
    // Used of total, with some mark of time or progress on the line.
    RE2 used_of{R"(([0-9]+) ?MiB ?/ ?([0-9]+) ?MiB)", options};
    RE2 clock{
        R"([0-9]{1,2}:[0-9]{2}|\b(?:step|epoch|iter\w*|req\w*|run|after|hour|day|min|t)\b ?[=#:]? ?[0-9]+)",
        options};
    // a -> b -> c with one unit at the end or one each
    RE2 chain{
        R"(([a-z_][a-z_. ]{1,30}[0-9]?)\W{1,4}((?:[0-9]+(?:\.[0-9]+)?\s?(?:[KMGT]i?B?)?\s*(?:->|→|--+|=>|,)\s*){2,}[0-9]+(?:\.[0-9]+)?\s?([KMGT]i?B?)))",
        options};
    RE2 number{R"(([0-9]+(?:\.[0-9]+)?))", options};
    RE2 any_size{R"(([0-9]+(?:\.[0-9]+)?)\s?([KMG]i?B)\b)", options};
    RE2 event{
        R"((?:kv cache|buffer|model|weights?|allocating|allocate|free|avail|total|took|load|shard|download|fetch|limit|requires?|need|host memory for|capacity|expected|estimated))",
        options};
    RE2 cell{R"(^([0-9]+(?:[.,][0-9]+)*)\s*([KMGT]i?B?\b)?)", options};
    RE2 unit{R"([(\[_ /-](gib|gb|mib|mb|kib|kb|bytes|g|m)(?:[)\]]|$))", options};
};

const Patterns& patterns() {
    static const Patterns kPatterns;
    return kPatterns;
}

std::string lower(std::string_view text) {
    std::string out;
    for (const char c : text)
        out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    return out;
}

std::string trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return std::string(text);
}

double to_number(std::string_view text) {
    std::string digits;
    for (const char c : text)
        if (c != ',') digits.push_back(c);
    double value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

Series::Kind kind_of(const std::string& key) {
    const auto has = [&](std::string_view word) { return key.find(word) != std::string::npos; };
    if (key.starts_with("mem usage"))
        return Series::Kind::host;  // docker stats: "MEM USAGE / LIMIT"
    for (const std::string_view word :
         {"limit", "total", "capacity", "max",       "peak",   "asked",      "tried",  "swap",
          "free",  "avail", "buffer",   "shm",       "size",   "weight",     "usable", "took",
          "cache", "vms",   "virt",     "threshold", "utiliz", "usage_perc", "%mem"})
        if (has(word)) return Series::Kind::other;
    if (has("reserved")) return Series::Kind::reserved;
    if (has("nvidia") || has("vram") || has("gpu") || has("cuda") || has("device") ||
        has("memory.used") || has("used_memory") || has("smi")) {
        if (has("alloc")) return Series::Kind::allocated;
        return Series::Kind::device;
    }
    if (has("alloc")) return Series::Kind::allocated;
    for (const std::string_view word : {"rss",
                                        "resident",
                                        "working set",
                                        "committed",
                                        "private",
                                        "uss",
                                        "pss",
                                        "host",
                                        "memory.current",
                                        "anon",
                                        " ram",
                                        "mem used",
                                        "memusage",
                                        "mem usage",
                                        "memory(bytes)",
                                        "working_set",
                                        "container_memory",
                                        "cpu mem",
                                        "cpu_mem",
                                        "sys mem",
                                        "process mem"})
        if (has(word)) return Series::Kind::host;
    if (key == "res" || key == "ram" || key == "mem" || key == "memory") return Series::Kind::host;
    if (key == "used" || key == "mem_used") return Series::Kind::device;
    return Series::Kind::other;
}

// Cells of a row: by '|', by commas or tabs, else by runs of blanks (two or more in a heading).
std::vector<std::string> cells(std::string_view line, char by) {
    std::vector<std::string> out;
    std::string part;
    const auto push = [&] {
        out.push_back(trimmed(part));
        part.clear();
    };
    for (std::size_t i = 0; i < line.size() && out.size() <= kColumnsMax; ++i) {
        const char c = line[i];
        const bool gap =
            by == ' ' ? (c == ' ' && i + 1 < line.size() && line[i + 1] == ' ') : c == by;
        if (!gap) {
            part.push_back(c);
            continue;
        }
        if (by == ' ') {
            while (i + 1 < line.size() && line[i + 1] == ' ') ++i;
            if (trimmed(part).empty()) continue;
        }
        push();
    }
    if (!trimmed(part).empty() || by != ' ') push();
    // "| a | b |" has empty ends.
    if (by == '|' && !out.empty() && out.front().empty()) out.erase(out.begin());
    if (by == '|' && !out.empty() && out.back().empty()) out.pop_back();
    return out;
}

std::vector<std::string> words(std::string_view line) {
    std::vector<std::string> out;
    std::string part;
    for (const char c : line) {
        if (c != ' ' && c != '\t') {
            part.push_back(c);
        } else if (!part.empty()) {
            out.push_back(std::move(part));
            part.clear();
        }
        if (out.size() > kColumnsMax) break;
    }
    if (!part.empty()) out.push_back(part);
    return out;
}

}  // namespace

bool Series::rising() const {
    return best.samples >= 3 && best.last - best.first >= 96 * kMiBd &&
           best.last >= best.first * 1.06;
}

bool Series::flat() const {
    return samples >= 2 && !rising() &&
           (highest - lowest <= 0.06 * highest || highest - lowest <= 160 * kMiBd);
}

void SeriesBook::add(Series::Kind kind, std::string key, double bytes, Place place) {
    if (kind == Series::Kind::other || !(bytes >= 0) || bytes > 1e18) return;
    auto at = std::find_if(series_.begin(), series_.end(),
                           [&](const Series& s) { return s.file == place.file && s.key == key; });
    if (at == series_.end()) {
        if (series_.size() >= kSeriesMax) return;
        Series s;
        s.kind = kind;
        s.key = std::move(key);
        s.file = place.file;
        s.lowest = s.highest = bytes;
        series_.push_back(std::move(s));
        at = series_.end() - 1;
    }
    Series& s = *at;
    s.samples += 1;
    s.lowest = std::min(s.lowest, bytes);
    s.highest = std::max(s.highest, bytes);
    // A small dip is noise, a large one a restart or a new run.
    if (s.run.samples == 0 || bytes < s.last * 0.93 - 32 * kMiBd) s.run = {bytes, bytes, 0, {}};
    s.run.samples += 1;
    s.run.last = bytes;
    if (s.run.lines.size() < 8) {
        s.run.lines.push_back(place.line);
    } else {
        s.run.lines.back() = place.line;
    }
    s.last = bytes;
    if (s.run.last - s.run.first >= s.best.last - s.best.first) s.best = s.run;
}

bool SeriesBook::read_pairs(std::string_view line, Place place) {
    const Patterns& p = patterns();
    const re2::StringPiece whole(line.data(), line.size());
    std::string key, number, unit, sign;
    bool any = false;
    const std::string folded = lower(line);
    // "Allocated 3 GiB for X" is an event; a sample names both figures, or has a sign between.
    const bool both =
        folded.find("alloc") != std::string::npos && folded.find("reserv") != std::string::npos;
    re2::StringPiece rest = whole;
    for (int found = 0;
         found < 24 && RE2::FindAndConsume(&rest, p.pair, &key, &sign, &number, &unit); ++found) {
        const std::string clean = trimmed(lower(key));
        auto kind = kind_of(clean);
        if ((kind == Series::Kind::allocated || kind == Series::Kind::reserved) && sign == " " &&
            !both)
            kind = Series::Kind::other;
        if (const auto bytes = size_bytes(number + unit); bytes && kind != Series::Kind::other) {
            add(kind, clean, *bytes, place);
            any = true;
        }
    }
    rest = whole;
    for (int found = 0; found < 24 && RE2::FindAndConsume(&rest, p.suffixed, &key, &unit, &number);
         ++found) {
        const std::string clean = lower(key);
        const auto kind = kind_of(clean);
        const auto scale = size_bytes("1" + (lower(unit) == "bytes" ? std::string("b") : unit));
        if (scale && kind != Series::Kind::other) {
            add(kind, clean, to_number(number) * *scale, place);
            any = true;
        }
    }
    rest = whole;
    for (int found = 0; !any && found < 8 && RE2::FindAndConsume(&rest, p.bare, &key, &number);
         ++found) {
        const std::string clean = lower(key);
        if (const auto kind = kind_of(clean); kind != Series::Kind::other) {
            add(kind, clean, to_number(number), place);
            any = true;
        }
    }
    return any;
}

bool SeriesBook::read_chain(std::string_view line, Place place) {
    const Patterns& p = patterns();
    std::string key, list, unit;
    if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), p.chain, &key, &list, &unit))
        return false;
    std::string clean = trimmed(lower(key));
    auto kind = kind_of(clean);
    if (kind == Series::Kind::other) {
        // "gpu memory after each 1000 requests: 14.2 -> …": what comes before the list says it.
        const auto at = line.find(list.substr(0, list.find_first_of(" -=>,")));
        clean = trimmed(lower(line.substr(0, at == std::string_view::npos ? 0 : at))).substr(0, 60);
        kind = kind_of(clean);
    }
    if (kind == Series::Kind::other) return false;
    const auto scale = size_bytes("1" + unit);
    re2::StringPiece rest(list);
    std::string number;
    for (int n = 0; scale && n < 64 && RE2::FindAndConsume(&rest, p.number, &number); ++n)
        add(kind, clean, to_number(number) * *scale, place);
    return true;
}

bool SeriesBook::read_table(std::string_view heading, std::string_view below, Place place) {
    const Patterns& p = patterns();
    const bool bars = heading.find('|') != std::string_view::npos;
    const char by = bars                                           ? '|'
                    : heading.find('\t') != std::string_view::npos ? '\t'
                    : heading.find(',') != std::string_view::npos  ? ','
                                                                   : ' ';
    std::vector<std::string> names = cells(heading, by);
    bool blanks = false;
    if (by == ' ') {
        // One word a column, as `ps` prints, if the next row has as many words or more.
        const auto single = words(heading);
        const std::string_view row = without_prefix(below.substr(0, below.find('\n')));
        const auto next = words(row);
        if (names.size() < 2 || (single.size() >= 2 && next.size() >= single.size() &&
                                 cells(row, ' ').size() != names.size())) {
            names = single;
            blanks = true;
        }
    }
    if (names.size() < 2 || names.size() > kColumnsMax) return false;
    struct Column {
        Series::Kind kind;
        std::string key;
        double scale;
    };
    std::vector<Column> columns;
    std::size_t label = names.size();
    bool wanted = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string name = lower(names[i]);
        Column c{kind_of(name), name, 0};
        std::string unit;
        if (RE2::PartialMatch(name, p.unit, &unit)) {
            c.scale = size_bytes("1" + (unit == "bytes" ? std::string("b") : unit)).value_or(0);
        } else if (c.kind == Series::Kind::host && name == "rss") {
            c.scale = 1024;  // ps prints kB
        }
        if (label == names.size() && (name == "pid" || name == "gpu" || name == "index" ||
                                      name == "pod" || name == "name" || name == "rank"))
            label = i;
        wanted = wanted || (c.kind != Series::Kind::other && i != label);
        columns.push_back(std::move(c));
    }
    if (!wanted) return false;
    bool any = false;
    std::uint64_t line = place.line;
    std::size_t strangers = 0;
    for (std::size_t row = 0; row < kRowsMax && !below.empty(); ++row) {
        const std::size_t stop = std::min(below.find('\n'), below.size());
        std::string_view text = below.substr(0, stop);
        if (stop == below.size()) break;  // perhaps cut: not read
        below.remove_prefix(stop + 1);
        ++line;
        while (!text.empty() && text.back() == '\r') text.remove_suffix(1);
        const std::string_view whole = text;
        text = without_prefix(text);
        if (const auto tail = text.find("\\n\","); tail != std::string_view::npos)
            text = text.substr(0, tail);
        if (text.find_first_not_of("|-+:= \t") == std::string_view::npos && !text.empty())
            continue;  // a rule
        std::vector<std::string> values = by != ' ' ? cells(text, by)
                                          : blanks  ? words(text)
                                                    : cells(text, by);
        if (by == ' ' && values.size() != names.size()) values = words(text);
        if (blanks && values.size() > names.size() && !values[0].empty() &&
            std::isdigit(static_cast<unsigned char>(values[0][0])) != 0)
            values.resize(names.size());  // the last is a command line
        if (values.size() != names.size()) {
            if (++strangers > kStrangersMax) break;  // other lines between
            continue;
        }
        bool used = false;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (columns[i].kind == Series::Kind::other || i == label) continue;
            std::string number, unit;
            if (!RE2::PartialMatch(values[i], p.cell, &number, &unit)) continue;
            const double scale = !unit.empty()             ? size_bytes("1" + unit).value_or(0)
                                 : columns[i].scale > 0    ? columns[i].scale
                                 : to_number(number) > 1e8 ? 1.0
                                 : to_number(number) > 400 ? kMiBd
                                                           : 1024 * kMiBd;
            const std::string key =
                columns[i].key + (label < values.size() ? " of " + values[label] : "");
            add(columns[i].kind, key, to_number(number) * scale, {place.file, line});
            used = any = true;
        }
        if (!used) {
            if (++strangers > kStrangersMax) break;
            continue;
        }
        strangers = 0;
        keep({place.file, line}, whole);
    }
    return any;
}

// "after request 3: 14880 MiB": one size and a mark of progress; lines alike but for their digits
// are one series.
bool SeriesBook::read_alike(std::string_view line, Place place) {
    const Patterns& p = patterns();
    const re2::StringPiece whole(line.data(), line.size());
    if (!RE2::PartialMatch(whole, p.clock) || RE2::PartialMatch(whole, p.event)) return false;
    re2::StringPiece rest = whole;
    std::string number, unit, more, other;
    if (!RE2::FindAndConsume(&rest, p.any_size, &number, &unit) ||
        RE2::FindAndConsume(&rest, p.any_size, &more, &other))
        return false;
    std::string key;
    for (const char c : lower(line)) {
        const bool digit = (c >= '0' && c <= '9') || c == '.';
        if (!digit)
            key.push_back(c);
        else if (key.empty() || key.back() != '#')
            key.push_back('#');
        if (key.size() >= 80) break;
    }
    const auto has = [&](std::string_view word) { return key.find(word) != std::string::npos; };
    auto kind = Series::Kind::other;
    if (has("rss") || has("host") || has(" ram") || has("cpu")) kind = Series::Kind::host;
    if (kind == Series::Kind::other && (has("gpu") || has("cuda") || has("vram") || has("nvidia") ||
                                        has("mem") || has("request") || has("used")))
        kind = Series::Kind::device;
    if (has("reserved")) kind = Series::Kind::reserved;
    if (has("alloc")) kind = Series::Kind::allocated;
    const auto bytes = size_bytes(number + unit);
    if (!bytes || kind == Series::Kind::other) return false;
    add(kind, key, *bytes, place);
    return true;
}

void SeriesBook::keep(Place place, std::string_view line) {
    if (texts_.size() == kTextsMax) texts_.erase(texts_.begin() + kTextsMax / 2);
    texts_.emplace_back(place, std::string(line.substr(0, 400)));
}

void SeriesBook::read(std::string_view line, std::string_view below, Place place) {
    if (line.find("ried to allocate") != std::string_view::npos) return;  // a failure, not a sample
    // Samples of weeks: a sixteenth of them shows the same slope.
    if (++reads_ > kReadsDense && reads_ % 16 != 0) return;
    const Patterns& p = patterns();
    line = line.substr(0, 1024);
    const re2::StringPiece whole(line.data(), line.size());
    std::string pid, number, total;
    bool any = false;
    if (RE2::PartialMatch(whole, p.top, &pid, &number)) {
        const bool bare =
            !number.empty() && std::isdigit(static_cast<unsigned char>(number.back())) != 0;
        if (const auto bytes = size_bytes(bare ? number + "k" : number)) {
            add(Series::Kind::host, "res of " + pid, *bytes, place);
            any = true;
        }
    } else if (read_chain(line, place)) {
        any = true;
    } else {
        any = read_pairs(line, place);
        if (RE2::PartialMatch(whole, p.used_of, &number, &total) &&
            RE2::PartialMatch(whole, p.clock)) {
            add(Series::Kind::device, "used of " + total + " MiB", to_number(number) * kMiBd,
                place);
            any = true;
        }
        if (!any && !read_table(line, below, place)) any = read_alike(line, place);
    }
    if (any) keep(place, line);
}

const Series* SeriesBook::rising(Series::Kind kind) const {
    const Series* best = nullptr;
    for (const Series& s : series_) {
        if (s.kind != kind || !s.rising()) continue;
        if (best == nullptr || s.best.last - s.best.first > best->best.last - best->best.first)
            best = &s;
    }
    return best;
}

bool SeriesBook::flat(Series::Kind kind) const {
    bool any = false;
    for (const Series& s : series_) {
        if (s.kind != kind) continue;
        if (s.rising()) return false;
        any = any || s.flat();
    }
    return any;
}

std::string_view SeriesBook::text(Place place) const {
    for (const auto& [where, text] : texts_)
        if (where == place) return text;
    return {};
}

}  // namespace oomlab::triage
