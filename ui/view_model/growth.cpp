#include "ui/view_model/growth.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace oomlab::view {
namespace {

constexpr std::size_t kWindows = 64;   // the series is folded to this many floors at most

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
    const std::size_t per = (buckets.size() + kWindows - 1) / kWindows;
    std::vector<double> t, y;
    for (std::size_t i = 0; i + per <= buckets.size(); i += per) {
        double floor = value_of(buckets[i], what);
        i64 at = buckets[i].end_us;
        for (std::size_t j = i; j < i + per; ++j) {
            const double v = value_of(buckets[j], what);
            if (v < floor) {
                floor = v;
                at = buckets[j].end_us;
            }
        }
        t.push_back(static_cast<double>(at - buckets.front().begin_us) / 60e6);
        y.push_back(floor);
    }
    const double n = static_cast<double>(t.size());
    if (t.size() < 8) return g;
    double mean_t = 0, mean_y = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        mean_t += t[i] / n;
        mean_y += y[i] / n;
    }
    double stt = 0, sty = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        stt += (t[i] - mean_t) * (t[i] - mean_t);
        sty += (t[i] - mean_t) * (y[i] - mean_y);
    }
    if (stt <= 0) return g;
    const double slope = sty / stt;
    double residual = 0, lagged = 0, previous = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        const double r = y[i] - mean_y - slope * (t[i] - mean_t);
        residual += r * r;
        if (i > 0) lagged += r * previous;
        previous = r;
    }
    // Alike neighbours count for less: the effective number of points under AR(1).
    const double rho = residual > 0 ? std::clamp(lagged / residual, 0.0, 0.95) : 0.0;
    const double effective = std::max(3.0, n * (1 - rho) / (1 + rho));
    const double error = std::sqrt(residual / std::max(1.0, n - 2) / stt * n / effective);
    const double quantile = effective < 6 ? 3.2 : effective < 12 ? 2.4 : 2.05;
    g.known = true;
    g.per_minute = slope;
    g.low = slope - quantile * error;
    g.high = slope + quantile * error;
    g.begin_us = buckets.front().begin_us;
    g.end_us = buckets.back().end_us;
    g.at_begin = mean_y - slope * mean_t;
    return g;
}

}  // namespace oomlab::view
