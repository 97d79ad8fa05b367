// Figures sampled over time: "rss=9.31GiB", "GPU 0 18.1 GiB", a line of `top`.
#include <re2/re2.h>

#include <algorithm>
#include <cctype>

#include "labs/field/triage/facts.hpp"

namespace oomlab::triage {
namespace {

constexpr double kMiBd = 1024.0 * 1024;

struct Patterns {
    RE2::Options options = [] {
        RE2::Options o;
        o.set_case_sensitive(false);
        o.set_log_errors(false);
        return o;
    }();
    // A name, then a size with its unit.
    RE2 pair{R"(([a-z_][a-z_. ]{0,22}[0-9]{0,2})\s*(?:\([^)]{1,16}\))?\s*([=: ])\s*([0-9]+(?:\.[0-9]+)?)\s?([KMGT]i?B|[GMgm])\b)", options};
    // A name that carries its unit: rss_mb=1234, "memory_allocated_gb: 12.3", rss_bytes=123456.
    RE2 suffixed{R"(([a-z_]{2,24})_(gib|gb|mib|mb|kb|bytes)\W{1,3}([0-9]+(?:\.[0-9]+)?))", options};
    // PID USER PR NI VIRT RES SHR S …
    RE2 top{R"(^\s*([0-9]+)\s+\S+\s+(?:-?[0-9]+|rt)\s+-?[0-9]+\s+[0-9.]+[gmt]?\s+([0-9.]+[gmt]?)\s+[0-9.]+[gmt]?\s+[RSDZTI]\s)", options};
};

const Patterns& patterns() {
    static const Patterns kPatterns;
    return kPatterns;
}

std::string lower(std::string_view text) {
    std::string out;
    for (const char c : text) out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    return out;
}

Series::Kind kind_of(const std::string& key) {
    const auto has = [&](std::string_view word) { return key.find(word) != std::string::npos; };
    if (has("limit") || has("total") || has("capacity") || has("max") || has("peak") || has("asked") ||
        has("tried to") || has("swap") || has("free") || has("avail") || has("buffer") || has("shm") ||
        has("size") || has("weight") || has("usable") || has("took") || has("cache") || has("vms") ||
        has("virt"))
        return Series::Kind::other;
    if (has("reserved")) return Series::Kind::reserved;
    if (has("nvidia") || has("vram") || has("gpu") || has("cuda") || has("device") || has("memory.used")) {
        if (has("alloc")) return Series::Kind::allocated;
        return Series::Kind::device;
    }
    if (has("allocated")) return Series::Kind::allocated;
    if (has("rss") || has("resident") || has("working set") || has("committed") || has("private") ||
        has("uss") || has("pss") || has("host") || has("vmrss") || has("memory.current") || has("anon") ||
        key == "res" || key == "ram" || has("memusage") || has(" ram") || has("mem used"))
        return Series::Kind::host;
    if (key == "used") return Series::Kind::device;
    return Series::Kind::other;
}

}  // namespace

bool Series::rising() const {
    return best.samples >= 3 && best.last - best.first >= 96 * kMiBd && best.last >= best.first * 1.06;
}

bool Series::flat() const {
    return samples >= 2 && !rising() && (highest - lowest <= 0.06 * highest || highest - lowest <= 160 * kMiBd);
}

void SeriesBook::add(Series::Kind kind, std::string key, double bytes, Place place) {
    if (kind == Series::Kind::other || bytes < 0) return;
    auto at = std::find_if(series_.begin(), series_.end(), [&](const Series& s) { return s.file == place.file && s.key == key; });
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

void SeriesBook::read(std::string_view line, Place place) {
    const Patterns& p = patterns();
    const std::size_t known = series_.size();
    bool any = false;
    re2::StringPiece rest(line.data(), std::min<std::size_t>(line.size(), 1024));
    std::string key, number, unit;
    if (RE2::PartialMatch(rest, p.top, &key, &number)) {
        const bool bare = !number.empty() && std::isdigit(static_cast<unsigned char>(number.back())) != 0;
        if (const auto bytes = size_bytes(bare ? number + "k" : number)) {
            add(Series::Kind::host, "res of " + key, *bytes, place);
            any = true;
        }
    } else {
        int found = 0;
        std::string sign;
        const std::string folded = lower(line.substr(0, 1024));
        // "Allocated 3 GiB for X" is an event; a sample names both figures, or has a sign between.
        const bool both = folded.find("alloc") != std::string::npos && folded.find("reserv") != std::string::npos;
        while (found < 24 && RE2::FindAndConsume(&rest, p.pair, &key, &sign, &number, &unit)) {
            ++found;
            std::string clean = lower(key);
            while (!clean.empty() && clean.back() == ' ') clean.pop_back();
            auto kind = kind_of(clean);
            if ((kind == Series::Kind::allocated || kind == Series::Kind::reserved) && sign == " " && !both) kind = Series::Kind::other;
            if (const auto bytes = size_bytes(number + unit); bytes && kind != Series::Kind::other) {
                add(kind, clean, *bytes, place);
                any = true;
            }
        }
        re2::StringPiece again(line.data(), std::min<std::size_t>(line.size(), 1024));
        while (found < 24 && RE2::FindAndConsume(&again, p.suffixed, &key, &unit, &number)) {
            ++found;
            std::string clean = lower(key);
            const auto kind = kind_of(clean);
            const auto bytes = size_bytes(number + (lower(unit) == "bytes" ? "b" : unit));
            if (bytes && kind != Series::Kind::other) {
                add(kind, clean, *bytes, place);
                any = true;
            }
        }
    }
    if (!any && series_.size() == known) return;
    if (texts_.size() == kTextsMax) texts_.erase(texts_.begin() + kTextsMax / 2);
    texts_.emplace_back(place, std::string(line.substr(0, 400)));
}

const Series* SeriesBook::rising(Series::Kind kind) const {
    const Series* best = nullptr;
    for (const Series& s : series_) {
        if (s.kind != kind || !s.rising()) continue;
        if (best == nullptr || s.best.last - s.best.first > best->best.last - best->best.first) best = &s;
    }
    return best;
}

bool SeriesBook::flat(Series::Kind kind) const {
    bool any = false;
    for (const Series& s : series_) {
        if (s.kind != kind) continue;
        if (!s.flat()) return false;
        any = true;
    }
    return any;
}

std::string_view SeriesBook::text(Place place) const {
    for (const auto& [where, text] : texts_)
        if (where == place) return text;
    return {};
}

}  // namespace oomlab::triage
