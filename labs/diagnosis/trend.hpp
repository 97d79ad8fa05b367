// Does a sampled memory series grow? A floor rule with an interval: pure functions on (time,
// value).
//
// Least squares and rank tests call most healthy series a leak, because memory noise is correlated,
// warms up, steps with load and moves in cycles. So: drop the warm-up, look at the floor (the level
// that stretches come back to), take out a cycle and level changes, fit a robust slope, and give it
// an interval that knows how few independent points there are. Growth counts only if both halves
// show it and it is more than the allocator's quantum.
#pragma once

#include <string>
#include <vector>

namespace oomlab::diagnosis {

struct TrendSample {
    double t_s = 0, value = 0;
};

struct TrendOptions {
    double warm_up_share = 0.25;         // of every stretch between restarts
    double quantum = 2.0 * 1024 * 1024;  // growth up to this is no growth
    double confidence = 0.95;
    std::vector<double> restarts_s;  // known restarts; others are found
    bool find_restarts = true;
};

enum class TrendKind { rising, falling, flat, level_change, not_long_enough };
const char* trend_name(TrendKind kind);

struct FloorPoint {
    double t_s = 0, value = 0;
    int stretch = 0;  // between which restarts
};

struct Trend {
    TrendKind kind = TrendKind::not_long_enough;
    double slope_per_hour = 0, low_per_hour = 0, high_per_hour = 0;
    double from_s = 0, to_s = 0;          // what was looked at
    double floor_from = 0, floor_to = 0;  // the line's ends
    double noise = 0;            // robust spread of the samples around their block's median
    double growth = 0;           // slope over what was looked at
    double autocorrelation = 0;  // lag 1 of the residuals, corrected
    double effective_points = 0;
    double period_s = 0;  // of a cycle that was taken out, 0: none
    std::vector<double> restarts_s, level_changes_s;
    std::vector<FloorPoint> floor;   // as drawn: before cycle and level changes are taken out
    double more_seconds_needed = 0;  // for not_long_enough: a rough figure
    std::string why;                 // in words
    bool rising() const { return kind == TrendKind::rising; }
};

// `samples` in any order; equal times and non-finite values are dropped.
Trend find_trend(std::vector<TrendSample> samples, const TrendOptions& options = {});

// Time from `now_value` until `limit`, from the slope's interval; negative: never (no growth).
struct TimeToLimit {
    double seconds = -1, earliest_s = -1, latest_s = -1;
};
TimeToLimit time_to_limit(const Trend& trend, double now_value, double limit);

}  // namespace oomlab::diagnosis
