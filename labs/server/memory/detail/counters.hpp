// The statistics as they are kept while running: nine figures, each for the small and the large
// pool. What can be worked out is not kept: "all" is the sum of the two, and what was ever freed is
// what was ever allocated less what is there. Only peaks of the sum are a figure of their own.
//
// A malloc raises five of them and a free lowers five: this is a good part of what they cost.
#pragma once

#include <algorithm>
#include <array>

#include "labs/server/memory/caching_allocator.hpp"

namespace oomlab::memory {

class Counter {
  public:
    void increase(StatPool pool, u64 n) {
        const std::size_t own = index(pool);
        const i64 now = current_[own] += static_cast<i64>(n);
        total_[own] += static_cast<i64>(n);
        peak_[pool] = std::max(peak_[pool], now);
        peak_[kStatAll] = std::max(peak_[kStatAll], now + current_[1 - own]);
    }
    void decrease(StatPool pool, u64 n) { current_[index(pool)] -= static_cast<i64>(n); }

    i64 current() const { return current_[0] + current_[1]; }
    PoolStat published() const {
        PoolStat stat;
        for (const StatPool pool : {kStatSmall, kStatLarge}) {
            const std::size_t own = index(pool);
            stat[pool] = {.current = current_[own],
                          .peak = peak_[pool],
                          .allocated = total_[own],
                          .freed = total_[own] - current_[own]};
        }
        stat[kStatAll] = {.current = current(),
                          .peak = peak_[kStatAll],
                          .allocated = total_[0] + total_[1],
                          .freed = total_[0] + total_[1] - current()};
        return stat;
    }
    void reset_peak() { peak_ = {current(), current_[0], current_[1]}; }
    // What was ever allocated, and freed again, besides.
    void add_to_total(StatPool pool, i64 n) { total_[index(pool)] += n; }

  private:
    static_assert(kStatSmall == 1 && kStatLarge == 2);
    static std::size_t index(StatPool pool) { return static_cast<std::size_t>(pool) - 1; }

    std::array<i64, 2> current_{}, total_{};  // small, large
    std::array<i64, 3> peak_{};               // by StatPool
};

struct Counters {
    Counter allocation, allocated_bytes, active, active_bytes, requested_bytes;
    Counter inactive_split, inactive_split_bytes, segment, reserved_bytes;
};

// Each counter with its place in the published statistics.
template <class Visit>
void for_each_counter(Visit visit) {
    using C = Counters;
    using S = AllocatorStats;
    visit(&C::allocation, &S::allocation);
    visit(&C::allocated_bytes, &S::allocated_bytes);
    visit(&C::active, &S::active);
    visit(&C::active_bytes, &S::active_bytes);
    visit(&C::requested_bytes, &S::requested_bytes);
    visit(&C::inactive_split, &S::inactive_split);
    visit(&C::inactive_split_bytes, &S::inactive_split_bytes);
    visit(&C::segment, &S::segment);
    visit(&C::reserved_bytes, &S::reserved_bytes);
}

}  // namespace oomlab::memory
