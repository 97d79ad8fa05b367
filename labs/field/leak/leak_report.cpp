#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "labs/field/leak/leak.hpp"
#include "labs/field/picture/canvas.hpp"

namespace oomlab::field {
namespace {

using diagnosis::Trend;
using diagnosis::TrendSample;
using Json = nlohmann::ordered_json;

std::string size_text(double bytes) {
    const double a = std::fabs(bytes);
    if (a >= 1073741824.0) return fmt::format("{:.2f} GiB", bytes / 1073741824.0);
    if (a >= 1048576.0) return fmt::format("{:.1f} MiB", bytes / 1048576.0);
    return fmt::format("{:.0f} KiB", bytes / 1024.0);
}

std::string time_text(double seconds) {
    if (seconds < 0) return "never";
    if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
    if (seconds < 172800) return fmt::format("{:.1f} h", seconds / 3600);
    return fmt::format("{:.1f} days", seconds / 86400);
}

std::string slope_text(const Trend& t) {
    return fmt::format("{}/h [{}, {}]", size_text(t.slope_per_hour), size_text(t.low_per_hour),
                       size_text(t.high_per_hour));
}

struct Range {
    double from = 0, to = 1, low = 0, high = 1;
};
Range range_of(const std::vector<TrendSample>& samples) {
    Range r{samples.front().t_s, samples.front().t_s, samples.front().value, samples.front().value};
    for (const TrendSample& s : samples) {
        r.from = std::min(r.from, s.t_s), r.to = std::max(r.to, s.t_s);
        r.low = std::min(r.low, s.value), r.high = std::max(r.high, s.value);
    }
    if (r.to <= r.from) r.to = r.from + 1;
    const double room = std::max((r.high - r.low) * 0.05, std::fabs(r.high) * 1e-6 + 1);
    r.low -= room, r.high += room;
    return r;
}

// Columns of characters: '.' where samples are, '*' the floor, '-' the line of a trend.
std::string terminal_plot(const SeriesFinding& s) {
    constexpr int kWide = 64, kHigh = 12;
    if (s.samples.size() < 2) return "";
    const Range r = range_of(s.samples);
    std::vector<std::string> rows(kHigh, std::string(kWide, ' '));
    const auto x_of = [&](double t) {
        return std::clamp(static_cast<int>((t - r.from) / (r.to - r.from) * (kWide - 1)), 0,
                          kWide - 1);
    };
    const auto y_of = [&](double v) {
        return std::clamp(static_cast<int>((r.high - v) / (r.high - r.low) * (kHigh - 1) + 0.5), 0,
                          kHigh - 1);
    };
    for (const TrendSample& p : s.samples)
        rows[static_cast<std::size_t>(y_of(p.value))][static_cast<std::size_t>(x_of(p.t_s))] = '.';
    const Trend& t = s.trend;
    if (t.rising())
        for (int x = x_of(t.from_s); x <= x_of(t.to_s); ++x) {
            const double at = r.from + (r.to - r.from) * x / (kWide - 1),
                         v = t.floor_from + (t.floor_to - t.floor_from) * (at - t.from_s) /
                                                std::max(1.0, t.to_s - t.from_s);
            rows[static_cast<std::size_t>(y_of(v))][static_cast<std::size_t>(x)] = '-';
        }
    for (const auto& p : t.floor)
        rows[static_cast<std::size_t>(y_of(p.value))][static_cast<std::size_t>(x_of(p.t_s))] = '*';
    for (double restart : t.restarts_s)
        rows[kHigh - 1][static_cast<std::size_t>(x_of(restart))] = '^';
    std::string out = "  " + s.name + "\n";
    for (int y = 0; y < kHigh; ++y) {
        const std::string label = y == 0 || y == kHigh - 1 || y == kHigh / 2
                                      ? size_text(r.high - (r.high - r.low) * y / (kHigh - 1))
                                      : "";
        out += fmt::format("  {:>11} |{}\n", label, rows[static_cast<std::size_t>(y)]);
    }
    out += fmt::format("  {:>11} +{}\n  {:>11}  0{:>{}}\n", "", std::string(kWide, '-'), "",
                       time_text(r.to - r.from), kWide - 1);
    out += "               . samples  * floor" + std::string(t.rising() ? "  - trend" : "") +
           (t.restarts_s.empty() ? "" : "  ^ restart") + "\n";
    return out;
}

Json trend_json(const SeriesFinding& s) {
    const Trend& t = s.trend;
    Json j;
    j["column"] = s.name;
    j["role"] = s.kind;
    j["trend"] = diagnosis::trend_name(t.kind);
    j["why"] = t.why;
    j["slope_bytes_per_hour"] = t.slope_per_hour;
    j["interval_95"] = {t.low_per_hour, t.high_per_hour};
    j["growth_bytes"] = t.growth;
    j["noise_bytes"] = t.noise;
    j["samples"] = s.samples.size();
    j["restarts"] = t.restarts_s.size();
    j["level_changes"] = t.level_changes_s.size();
    j["period_s"] = t.period_s;
    return j;
}

Json group_json(const GroupFinding& g) {
    Json j;
    j["group"] = g.group;
    j["verdict"] = leak_verdict_name(g.verdict);
    j["where"] = g.where;
    j["reason"] = g.reason;
    if (g.decisive >= 0) {
        const Trend& t = g.series[static_cast<std::size_t>(g.decisive)].trend;
        j["column"] = g.series[static_cast<std::size_t>(g.decisive)].name;
        j["slope_bytes_per_hour"] = t.slope_per_hour;
        j["interval_95"] = {t.low_per_hour, t.high_per_hour};
        if (g.verdict == LeakVerdict::not_long_enough)
            j["more_seconds_needed"] = t.more_seconds_needed;
    }
    if (g.limit_bytes > 0) j["limit_bytes"] = g.limit_bytes;
    if (g.until_limit.seconds >= 0)
        j["time_to_oom_s"] = g.until_limit.seconds,
        j["time_to_oom_interval_s"] = {g.until_limit.earliest_s, g.until_limit.latest_s};
    else
        j["time_to_oom_s"] = nullptr;
    if (g.bytes_per_1000_requests != 0) j["bytes_per_1000_requests"] = g.bytes_per_1000_requests;
    j["series"] = Json::array();
    for (const SeriesFinding& s : g.series) j["series"].push_back(trend_json(s));
    j["notes"] = g.notes;
    j["ask_for"] = g.ask_for;
    return j;
}

}  // namespace

std::string leak_text(const LeakReport& report, bool plot) {
    std::string out;
    const GroupFinding& worst = report.decisive();
    for (std::size_t i = 0; i < report.groups.size(); ++i) {
        const GroupFinding& g = report.groups[i];
        if (report.groups.size() > 1 || !g.group.empty())
            out += fmt::format("{}: ", g.group.empty() ? "all" : g.group);
        out += fmt::format("{}{}\n",
                           g.verdict == LeakVerdict::not_long_enough ? "not long enough"
                                                                     : leak_verdict_name(g.verdict),
                           g.where.empty() ? "" : " (" + g.where + ")");
        out += "  " + g.reason + "\n";
        for (const SeriesFinding& s : g.series)
            out += fmt::format("  {:<28} {:<15} {}\n", s.name.substr(0, 28),
                               diagnosis::trend_name(s.trend.kind),
                               s.trend.floor.empty() ? "" : slope_text(s.trend));
        if (g.decisive >= 0 && g.series[static_cast<std::size_t>(g.decisive)].trend.rising()) {
            if (g.until_limit.seconds >= 0)
                out += fmt::format("  full in {} [{} to {}]: {} of {} are used ({})\n",
                                   time_text(g.until_limit.seconds),
                                   time_text(g.until_limit.earliest_s),
                                   time_text(g.until_limit.latest_s), size_text(g.now_bytes),
                                   size_text(g.limit_bytes), g.limit_source);
            if (g.bytes_per_1000_requests > 0)
                out += fmt::format("  {} a 1,000 requests\n", size_text(g.bytes_per_1000_requests));
        }
        for (const std::string& n : g.notes) out += "  note: " + n + "\n";
        for (const std::string& n : g.ask_for) out += "  would decide more: " + n + "\n";
    }
    if (plot && worst.decisive >= 0)
        out += "\n" + terminal_plot(worst.series[static_cast<std::size_t>(worst.decisive)]);
    for (const std::string& n : report.notes) out += "note: " + n + "\n";
    if (report.bad_rows > 0)
        out += fmt::format("note: {} of {} rows could not be read\n", report.bad_rows,
                           report.rows + report.bad_rows);
    return out;
}

std::string leak_json(const LeakReport& report) {
    Json j = group_json(report.decisive());
    j["format"] = report.format;
    j["rows"] = report.rows;
    j["bad_rows"] = report.bad_rows;
    if (report.groups.size() > 1) {
        j["groups"] = Json::array();
        for (const GroupFinding& g : report.groups) j["groups"].push_back(group_json(g));
    }
    for (const std::string& n : report.notes) j["notes"].push_back(n);
    return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<void> leak_png(const LeakReport& report, const std::string& path) {
    const GroupFinding& g = report.decisive();
    std::vector<const SeriesFinding*> drawn;
    for (const SeriesFinding& s : g.series)
        if (s.samples.size() >= 2 && drawn.size() < 4) drawn.push_back(&s);
    constexpr int kWide = 1000, kPanel = 220, kLeft = 130, kTop = 70;
    constexpr Colour ink{32, 32, 40}, soft{170, 170, 180}, dots{120, 150, 200}, red{200, 60, 60},
        green{60, 140, 80};
    Canvas canvas(kWide,
                  kTop + kPanel * static_cast<int>(std::max<std::size_t>(1, drawn.size())) + 10);
    canvas.text(
        20, 16,
        fmt::format("{}: {}", g.group.empty() ? "verdict" : g.group, leak_verdict_name(g.verdict)),
        g.verdict == LeakVerdict::flat ? ink : red, 3);
    canvas.text(20, 46, g.reason.substr(0, 78), ink, 2);
    int top = kTop;
    for (const SeriesFinding* s : drawn) {
        const Range r = range_of(s->samples);
        const int wide = kWide - kLeft - 20, high = kPanel - 60;
        const auto x = [&](double t) { return kLeft + (t - r.from) / (r.to - r.from) * wide; };
        const auto y = [&](double v) { return top + 24 + (r.high - v) / (r.high - r.low) * high; };
        canvas.text(kLeft, top + 4,
                    fmt::format("{}: {}", s->name.substr(0, 30),
                                s->trend.floor.empty() ? diagnosis::trend_name(s->trend.kind)
                                                       : slope_text(s->trend)),
                    ink, 2);
        canvas.frame(kLeft, top + 24, wide, high, soft);
        canvas.text(6, top + 26, size_text(r.high), ink, 1);
        canvas.text(6, top + 16 + high, size_text(r.low), ink, 1);
        canvas.text(kLeft, top + 30 + high, "0", ink, 1);
        canvas.text(kWide - 90, top + 30 + high, time_text(r.to - r.from), ink, 1);
        for (const TrendSample& p : s->samples)
            canvas.fill(static_cast<int>(x(p.t_s)), static_cast<int>(y(p.value)), 2, 2, dots);
        for (const auto& p : s->trend.floor)
            canvas.fill(static_cast<int>(x(p.t_s)) - 2, static_cast<int>(y(p.value)) - 2, 5, 5,
                        green);
        for (double t : s->trend.restarts_s)
            canvas.line(x(t), top + 24, x(t), top + 24 + high, red);
        for (double t : s->trend.level_changes_s)
            canvas.line(x(t), top + 24, x(t), top + 24 + high, soft);
        if (s->trend.rising())
            canvas.line(x(s->trend.from_s), y(s->trend.floor_from), x(s->trend.to_s),
                        y(s->trend.floor_to), red);
        top += kPanel;
    }
    return canvas.write_png(path);
}

}  // namespace oomlab::field
