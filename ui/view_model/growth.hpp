// Is it growing? The room's trend test (labs/diagnosis/trend.hpp) over the floors of a series, as a line
// that can be drawn: its slope with an interval, and the moment at which it meets the ceiling.
#pragma once

#include <span>

#include "ui/view_model/tiers.hpp"

namespace oomlab::view {

struct Growth {
    bool known = false;            // false: not long enough to say
    bool risen = false;            // the test's verdict
    double more_s = 0;             // until it can be said, roughly; 0 when it can
    double per_minute = 0;         // bytes
    double low = 0, high = 0;      // 95% interval of the slope, bytes a minute
    double at_begin = 0;           // the line's value at begin_us, bytes
    i64 begin_us = 0, end_us = 0;
    bool rising() const { return known && risen && per_minute > 0; }
    double value_at(i64 time_us) const {
        return at_begin + per_minute * static_cast<double>(time_us - begin_us) / 60e6;
    }
    // When the line reaches `ceiling_bytes`; -1 when it does not rise.
    i64 meets_us(u64 ceiling_bytes) const;
};

enum class GrowthOf { allocated, gap, outside };   // outside: used - reserved
Growth growth(std::span<const Bucket> buckets, GrowthOf what);

}  // namespace oomlab::view
