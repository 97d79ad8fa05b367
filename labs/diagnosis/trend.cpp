#include "labs/diagnosis/trend.hpp"

#include <algorithm>
#include <cmath>

#include "labs/diagnosis/trend_parts.hpp"

namespace oomlab::diagnosis {
namespace {

using namespace trend_parts;

constexpr int kBlocks = 20;  // floor points, more only when stretches are many
constexpr std::size_t kFewestSamples = 40;
constexpr double kShortest_s = 300;

Trend not_long_enough(Trend t, std::string why) {
    t.kind = TrendKind::not_long_enough;
    t.why = std::move(why);
    return t;
}

// The first and the second halves of the stretches rise by at least 30 % of the slope.
bool halves_rise(const std::vector<FloorPoint>& floor, double slope) {
    std::vector<FloorPoint> first, second;
    for (std::size_t from = 0; from < floor.size();) {
        std::size_t to = from;
        while (to < floor.size() && floor[to].stretch == floor[from].stretch) ++to;
        for (std::size_t i = from; i < to; ++i) {
            if (2 * (i - from) <= to - from) first.push_back(floor[i]);
            if (2 * (i - from) + 1 >= to - from) second.push_back(floor[i]);
        }
        from = to;
    }
    return theil_sen(first) >= 0.3 * slope && theil_sen(second) >= 0.3 * slope;
}

void fill_interval(Trend& t, const std::vector<FloorPoint>& floor, double lost_points,
                   double sample_phi, double confidence) {
    const Residuals r = residuals(floor, t.slope_per_hour / 3600.0);
    const double n = static_cast<double>(floor.size());
    double phi = r.lag1 + (2 + 4 * r.lag1) / n;  // what a fitted line hides
    phi = std::clamp(std::max(phi, sample_phi), 0.0, 0.95);
    t.autocorrelation = phi;
    t.effective_points = std::max(3.0, (n - lost_points) * (1 - phi) / (1 + phi));
    const double df = std::max(2.0, t.effective_points - 2);
    const double error = std::sqrt(r.sum_squares / std::max(1.0, n - 2 - lost_points)) *
                         std::sqrt(n / t.effective_points) /
                         std::sqrt(std::max(1e-12, r.time_squares));
    const double half = 1.05 * student_quantile(0.5 + confidence / 2, df) * error * 3600.0;
    t.low_per_hour = t.slope_per_hour - half;
    t.high_per_hour = t.slope_per_hour + half;
}

}  // namespace

const char* trend_name(TrendKind kind) {
    switch (kind) {
        case TrendKind::rising:
            return "rising";
        case TrendKind::falling:
            return "falling";
        case TrendKind::flat:
            return "flat";
        case TrendKind::level_change:
            return "level change";
        case TrendKind::not_long_enough:
            return "not long enough";
    }
    return "flat";
}

Trend find_trend(std::vector<TrendSample> samples, const TrendOptions& options) {
    Trend t;
    tidy(samples);
    if (samples.size() < kFewestSamples || samples.back().t_s - samples.front().t_s < kShortest_s) {
        t.more_seconds_needed = std::max(
            kShortest_s, samples.size() < 2 ? 0.0
                                            : static_cast<double>(kFewestSamples) *
                                                  (samples.back().t_s - samples.front().t_s) /
                                                  static_cast<double>(samples.size()));
        return not_long_enough(std::move(t), "fewer than " + std::to_string(kFewestSamples) +
                                                 " samples or less than 5 minutes");
    }
    std::vector<Stretch> stretches = split_at_restarts(samples, options, t.restarts_s);
    drop_warm_up(samples, stretches, options);
    t.level_changes_s = split_at_level_changes(samples, stretches);
    t.floor = floor_points(samples, stretches, kBlocks, t.noise);
    if (t.floor.size() < 8) {
        t.more_seconds_needed = samples.back().t_s - samples.front().t_s;
        return not_long_enough(
            std::move(t),
            "restarts or level changes leave no stretch long enough to see a trend in");
    }
    t.from_s = t.floor.front().t_s;
    t.to_s = t.floor.back().t_s;
    t.period_s = take_out_cycle(samples, stretches);
    const std::vector<FloorPoint> floor =
        t.period_s > 0 ? floor_points(samples, stretches, kBlocks, t.noise) : t.floor;
    const double lost = (t.period_s > 0 ? 5 : 0) +
                        static_cast<double>(stretches.empty() ? 0 : stretches.size() - 1);
    t.slope_per_hour = theil_sen(floor) * 3600.0;
    // What the samples say about neighbouring floor points: the few points themselves say too
    // little.
    const double rho = sample_correlation(samples, stretches, t.slope_per_hour / 3600.0),
                 sample_phi = std::pow(rho, samples_per_point(stretches, floor.size()));
    fill_interval(t, floor, lost, sample_phi, options.confidence);
    const double hours = (t.to_s - t.from_s) / 3600.0;
    t.growth = t.slope_per_hour * hours;
    const double middle = middle_value(floor), middle_t = (t.from_s + t.to_s) / 2;
    t.floor_from = middle - t.slope_per_hour / 3600.0 * (middle_t - t.from_s);
    t.floor_to = middle + t.slope_per_hour / 3600.0 * (t.to_s - middle_t);

    const bool material = t.growth > options.quantum && t.growth > 0.5 * t.noise;
    // Correlated points hide how few they are: the more correlation is seen, the more must be
    // shown.
    const double caution = 1 + 0.2 * t.autocorrelation + 3.5 * std::max(0.0, rho - 0.9) +
                           (t.period_s > 0 ? 0.25 : 0.0) +
                           0.15 * static_cast<double>(t.restarts_s.size());
    const double shown = t.slope_per_hour - caution * (t.slope_per_hour - t.low_per_hour);
    if (shown > 0 && material && halves_rise(floor, t.slope_per_hour / 3600.0)) {
        t.kind = TrendKind::rising;
        t.why = "the floor rises in both halves and its interval excludes 0";
    } else if (t.high_per_hour < 0 && -t.growth > options.quantum && -t.growth > 0.5 * t.noise) {
        t.kind = TrendKind::falling;
        t.why = "the floor falls";
    } else if (!t.level_changes_s.empty()) {
        t.kind = TrendKind::level_change;
        t.why = "the level changed and stays: a step, not a trend";
    } else {
        // A slope that is likely but not proven, and would matter within a day.
        const double likely = t.slope_per_hour - 0.45 * (t.slope_per_hour - t.low_per_hour);
        if (shown <= 0 && likely > 0 && material &&
            t.slope_per_hour * 24 > 0.02 * std::fabs(middle)) {
            const double short_by = (t.slope_per_hour - shown) / std::max(1e-9, t.slope_per_hour);
            t.more_seconds_needed =
                (t.to_s - t.from_s) * (std::pow(std::min(8.0, 1.2 * short_by), 2.0 / 3.0) - 1);
            t.more_seconds_needed = std::max(t.more_seconds_needed, 0.25 * (t.to_s - t.from_s));
            return not_long_enough(std::move(t), "growth is likely but not proven yet");
        }
        t.kind = TrendKind::flat;
        t.why = "the interval of the floor's slope includes 0";
        if (t.low_per_hour > 0)
            t.why = "the rise is within the allocator's quantum and the noise, or in one half only";
    }
    return t;
}

TimeToLimit time_to_limit(const Trend& trend, double now_value, double limit) {
    TimeToLimit out;
    if (!trend.rising() || limit <= now_value) return out;
    const double room = limit - now_value;
    out.seconds = room / trend.slope_per_hour * 3600.0;
    out.earliest_s = room / trend.high_per_hour * 3600.0;
    out.latest_s = room / trend.low_per_hour * 3600.0;
    return out;
}

}  // namespace oomlab::diagnosis
