// The statistics as they are kept while running. What can be worked out is not kept: "all" is the
// sum of the small and the large pool, what was ever freed is what was ever allocated less what is
// there, and active is allocated plus pending. Only peaks are figures of their own.
//
// A malloc raises three of them and a free lowers three: a good part of what they cost.
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

// Allocated and pending together. While nothing is pending its peak is that of allocated.
class ActiveCounter {
  public:
    explicit ActiveCounter(const Counter& allocated) : allocated_(allocated) {}

    // To be called after a rise of allocated while something is pending.
    void note_peak() {
        const PoolStat allocated = allocated_.published(), pending = pending_.published();
        for (std::size_t pool = 0; pool < peak_.size(); ++pool) {
            peak_[pool] = std::max(peak_[pool], allocated[pool].current + pending[pool].current);
        }
    }
    void begin_pending(StatPool pool, u64 n) { pending_.increase(pool, n); }
    void end_pending(StatPool pool, u64 n) { pending_.decrease(pool, n); }
    void reset_peak() {
        peak_ = {};
        note_peak();
    }
    PoolStat published() const {
        PoolStat stat = allocated_.published();
        const PoolStat pending = pending_.published();
        for (std::size_t pool = 0; pool < stat.size(); ++pool) {
            stat[pool].current += pending[pool].current;
            stat[pool].freed -= pending[pool].current;
            stat[pool].peak = std::max(stat[pool].peak, peak_[pool]);
        }
        return stat;
    }
    u64 pending() const { return static_cast<u64>(pending_.current()); }

  private:
    const Counter& allocated_;
    Counter pending_;
    std::array<i64, 3> peak_{};
};

struct Counters {
    Counters() = default;
    Counters(const Counters&) = delete;
    Counters& operator=(const Counters&) = delete;

    Counter allocation, allocated_bytes, requested_bytes;
    Counter inactive_split, inactive_split_bytes, segment, reserved_bytes;
    ActiveCounter active{allocation}, active_bytes{allocated_bytes};

    void publish(AllocatorStats& stats) const {
        stats.active = active.published();
        stats.active_bytes = active_bytes.published();
        for_each([&](auto counter, auto place) { stats.*place = (this->*counter).published(); });
    }
    void reset_peaks() {
        for_each([&](auto counter, auto) { (this->*counter).reset_peak(); });
        active.reset_peak();
        active_bytes.reset_peak();
    }
    // Those that are kept, each with its place in the published statistics.
    template <class Visit>
    static void for_each(Visit visit) {
        visit(&Counters::allocation, &AllocatorStats::allocation);
        visit(&Counters::allocated_bytes, &AllocatorStats::allocated_bytes);
        visit(&Counters::requested_bytes, &AllocatorStats::requested_bytes);
        visit(&Counters::inactive_split, &AllocatorStats::inactive_split);
        visit(&Counters::inactive_split_bytes, &AllocatorStats::inactive_split_bytes);
        visit(&Counters::segment, &AllocatorStats::segment);
        visit(&Counters::reserved_bytes, &AllocatorStats::reserved_bytes);
    }
};

}  // namespace oomlab::memory
