// Looking inside: the map of blocks, the statistics as they are published, the running totals.
#include <algorithm>

#include "labs/server/memory/detail/allocator_impl.hpp"

namespace oomlab {
std::vector<const memory::Block*> CachingAllocator::Impl::blocks_by_address() const {
    std::vector<const Block*> blocks;
    arena.for_each([&](const Block* block) { blocks.push_back(block); });
    std::sort(blocks.begin(), blocks.end(), memory::ByAddress{});
    return blocks;
}

std::vector<SegmentInfo> CachingAllocator::Impl::snapshot() const {
    std::vector<SegmentInfo> segments;
    const Block* before = nullptr;  // the mapped block that the last entry ends with
    for (const Block* block : blocks_by_address()) {
        if (block->state == BlockState::unmapped) {
            before = nullptr;
            continue;
        }
        if (before == nullptr || block->prev != before) {
            segments.push_back({.address = block->address,
                                .bytes = 0,
                                .stream = home_of(block).stream,
                                .small_pool = pool_of(block).small,
                                .expandable = block->expandable,
                                .blocks = {}});
        }
        const bool active = block->state == BlockState::allocated;
        const bool pending = block->state == BlockState::pending;
        segments.back().bytes += block->bytes;
        segments.back().blocks.push_back(
            {.address = block->address,
             .bytes = block->bytes,
             .requested_bytes = active || pending ? block->requested_or_age : 0,
             .owner = active || pending ? block->owner : Owner::cached,
             .request = active || pending ? block->request : 0xffffffffu,
             .active = active,
             .pending_free = pending,
             .mapped = true});
        before = block;
    }
    return segments;
}

u64 CachingAllocator::Impl::largest_free() const {
    u64 largest = 0;
    for_each_pool([&](const Pool& pool) {
        for (const auto& home : pool.homes) {
            if (const Block* last = home->last()) largest = std::max(largest, last->bytes);
        }
    });
    return largest;
}

u64 CachingAllocator::Impl::private_free_bytes() const {
    u64 bytes = 0;
    const auto add = [&](const Pool& pool) {
        for (const auto& home : pool.homes) {
            for (Block* b = home->first(); b != nullptr; b = home->next(b)) bytes += b->bytes;
        }
    };
    for (const auto& [id, pool] : private_pools) {
        add(pool.large);
        add(pool.small);
    }
    return bytes;
}

const AllocatorStats& CachingAllocator::Impl::publish() const {
    counters.publish(stats);
    return stats;
}

void CachingAllocator::reset_peak_stats() {
    impl_->counters.reset_peaks();
    for (Stat AllocatorStats::*stat :
         {&AllocatorStats::oversize_allocations, &AllocatorStats::oversize_segments}) {
        (impl_->stats.*stat).peak = (impl_->stats.*stat).current;
    }
}

void CachingAllocator::replay_totals(const AllocatorStats& before, const AllocatorStats& after,
                                     u64 times) {
    const i64 n = static_cast<i64>(times);
    // A pattern ends where it began: what it allocates it frees.
    const auto repeated = [n](const Stat& from, const Stat& to) {
        OOMLAB_CHECK(from.current == to.current);
        return n * (to.allocated - from.allocated);
    };
    memory::Counters::for_each([&](auto counter, auto published) {
        for (const StatPool pool : {kStatSmall, kStatLarge}) {
            (impl_->counters.*counter)
                .add_to_total(pool, repeated((before.*published)[pool], (after.*published)[pool]));
        }
    });
    for (Stat AllocatorStats::*stat :
         {&AllocatorStats::oversize_allocations, &AllocatorStats::oversize_segments}) {
        const i64 more = repeated(before.*stat, after.*stat);
        (impl_->stats.*stat).allocated += more;
        (impl_->stats.*stat).freed += more;
    }
    for (i64 AllocatorStats::*count :
         {&AllocatorStats::num_alloc_retries, &AllocatorStats::num_ooms,
          &AllocatorStats::num_sync_all_streams, &AllocatorStats::num_device_alloc,
          &AllocatorStats::num_device_free}) {
        impl_->stats.*count += n * (after.*count - before.*count);
    }
}

double fragmentation(const AllocatorStats& stats) {
    const i64 reserved = stats.reserved_bytes[kStatAll].peak;
    if (reserved == 0) return 0;
    return 1 -
           static_cast<double>(stats.active_bytes[kStatAll].peak) / static_cast<double>(reserved);
}

}  // namespace oomlab
