// The floor of a figure over completed requests: where a leak cannot hide, and load does not show.
//
// A server that is healthy comes back to the same level between steps, whatever it was asked to do.
// So the smallest value in each stretch of completed requests is looked at, not the curve. Rules of
// the room: the warm-up quarter is dropped, both halves of the rest must rise, the growth must be
// more than one quantum of the allocator, and a single step is a level change, not a rise.
#pragma once

#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::diagnosis {

// Minima of a series in bins of equal numbers of completed requests. Bounded: when the bins run out,
// neighbours are merged. Time and completed only ever grow. Not thread safe.
class FloorSeries {
  public:
    static constexpr std::size_t kBins = 128;
    struct Bin {
        u64 completed = 0;       // at the bin's last sample
        i64 time_us = 0;         // of its last sample
        u64 low = 0;
    };

    void add(u64 completed, i64 time_us, u64 value);
    const std::vector<Bin>& bins() const { return bins_; }
    bool empty() const { return bins_.empty(); }
    u64 first() const { return bins_.empty() ? 0 : bins_.front().low; }
    u64 last() const { return bins_.empty() ? 0 : bins_.back().low; }

  private:
    std::vector<Bin> bins_;
    u64 per_bin_ = 1, origin_ = 0, index_ = 0;
    bool any_ = false;
};

struct Rise {
    bool risen = false;
    bool level_change = false;     // it is higher, but by one step: not a trend
    u64 from_bytes = 0, to_bytes = 0;
    u64 completed = 0;             // requests over which it was looked at
    double seconds = 0;
    double bytes_per_request = 0, bytes_per_hour = 0;

    u64 grown_bytes() const { return to_bytes - (to_bytes < from_bytes ? to_bytes : from_bytes); }
};

// Growth of at most `quantum_bytes` is no growth. Too short a series is never a rise.
Rise rise_of(const FloorSeries& series, u64 quantum_bytes);

}  // namespace oomlab::diagnosis
