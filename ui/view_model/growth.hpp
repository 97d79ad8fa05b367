// Is it growing? A straight line through the floors of a series, with an interval that allows for
// neighbours being alike, and the moment at which it meets the ceiling.
//
// Floors, because a server's memory goes up and down with its load: what never comes back down is
// what a leak is made of.
#pragma once

#include <span>

#include "ui/view_model/tiers.hpp"

namespace oomlab::view {

struct Growth {
    bool known = false;            // false: fewer than eight buckets, or no time passed
    double per_minute = 0;         // bytes
    double low = 0, high = 0;      // 95% interval of the slope, bytes a minute
    double at_begin = 0;           // the line's value at begin_us, bytes
    i64 begin_us = 0, end_us = 0;
    bool rising() const { return known && low > 0; }
    double value_at(i64 time_us) const {
        return at_begin + per_minute * static_cast<double>(time_us - begin_us) / 60e6;
    }
    // When the line reaches `ceiling_bytes`; -1 when it does not rise.
    i64 meets_us(u64 ceiling_bytes) const;
};

enum class GrowthOf { allocated, gap, outside };   // outside: used - reserved
Growth growth(std::span<const Bucket> buckets, GrowthOf what);

}  // namespace oomlab::view
