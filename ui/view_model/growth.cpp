#include "ui/view_model/growth.hpp"

#include <algorithm>

#include "labs/diagnosis/trend.hpp"

namespace oomlab::view {
namespace {

double value_of(const Bucket& b, GrowthOf what) {
    const auto diff = [](u64 a, u64 c) { return static_cast<double>(a - std::min(a, c)); };
    switch (what) {
        case GrowthOf::allocated: return static_cast<double>(b.value[kAllocated].low);
        case GrowthOf::gap: return diff(b.value[kReserved].now, b.value[kAllocated].now);
        case GrowthOf::outside: return diff(b.value[kDeviceUsed].low, b.value[kReserved].low);
    }
    return 0;
}

}  // namespace

i64 Growth::meets_us(u64 ceiling_bytes) const {
    if (!rising()) return -1;
    const double minutes = (static_cast<double>(ceiling_bytes) - at_begin) / per_minute;
    if (!(minutes < 1e9)) return -1;
    return begin_us + static_cast<i64>(minutes * 60e6);
}

Growth growth(std::span<const Bucket> buckets, GrowthOf what) {
    Growth g;
    if (buckets.size() < 8) return g;
    std::vector<diagnosis::TrendSample> samples;
    samples.reserve(buckets.size());
    for (const Bucket& b : buckets)
        samples.push_back({static_cast<double>(b.end_us) / 1e6, value_of(b, what)});
    const diagnosis::Trend trend = diagnosis::find_trend(std::move(samples));
    g.known = trend.kind != diagnosis::TrendKind::not_long_enough;
    g.risen = trend.rising();
    g.more_s = trend.more_seconds_needed;
    g.per_minute = trend.slope_per_hour / 60;
    g.low = trend.low_per_hour / 60;
    g.high = trend.high_per_hour / 60;
    g.at_begin = trend.floor_from;
    g.begin_us = static_cast<i64>(trend.from_s * 1e6);
    g.end_us = static_cast<i64>(trend.to_s * 1e6);
    return g;
}

}  // namespace oomlab::view
