// Looking inside without changing anything: the map of blocks, the recount, the running totals.
#include <algorithm>

#include "labs/server/memory/detail/allocator_impl.hpp"

namespace oomlab {
namespace {

// Every counter of the statistics, so that totals and recounts cannot forget one.
template <class Visit>
void for_each_stat(Visit visit) {
    using S = AllocatorStats;
    for (PoolStat S::*stat :
         {&S::allocation, &S::segment, &S::active, &S::inactive_split, &S::allocated_bytes,
          &S::reserved_bytes, &S::active_bytes, &S::inactive_split_bytes, &S::requested_bytes}) {
        for (std::size_t pool = 0; pool < 3; ++pool) {
            visit([ stat, pool ](auto& stats) -> auto& { return (stats.*stat)[pool]; });
        }
    }
    visit([](auto& stats) -> auto& { return stats.oversize_allocations; });
    visit([](auto& stats) -> auto& { return stats.oversize_segments; });
}

}  // namespace

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

std::string CachingAllocator::Impl::check_invariants() const {
    AllocatorStats recount;
    std::array<u64, kOwners> owned{};
    u64 recomputed = 0, pending = 0, live_blocks = 0, free_blocks = 0, indexed_blocks = 0;
    for (const Block* block : blocks_by_address()) {
        const StatPool pool = pool_of(block).stat();
        const Block* next = block->next;
        if (block->bytes == 0 || block->bytes % memory::kMinBlockBytes != 0) {
            return "a block is not a multiple of 512 bytes";
        }
        if (next != nullptr && (next->prev != block || next->home != block->home ||
                                next->expandable != block->expandable)) {
            return "neighbours disagree";
        }
        if (next != nullptr && next->address != block->address + block->bytes) {
            return "the blocks of a segment leave a gap or overlap";
        }
        const bool hole = block->state == BlockState::unmapped;
        const bool free = block->state == BlockState::free;
        if (next != nullptr && (free || hole) && next->state == block->state) {
            return "two neighbours of a kind are not merged";
        }
        if (block->expandable && block->prev == nullptr &&
            block->address != range_of(block).address) {
            return "an expandable segment is not covered from its start";
        }
        if (block->expandable && next == nullptr &&
            block->address + block->bytes != range_of(block).end()) {
            return "an expandable segment is not covered to its end";
        }
        recomputed ^= print_of(*block);
        if (hole) {
            if (home_of(block).unmapped.count(const_cast<Block*>(block)) != 1)
                return "a hole is lost";
            continue;
        }
        increase(recount.reserved_bytes, pool, block->bytes);
        if (!block->expandable && block->prev == nullptr) {
            increase(recount.segment, pool, 1);
        }
        if (free) {
            ++free_blocks;
            if (block->is_split() && !block->expandable) {
                increase(recount.inactive_split, pool, 1);
                increase(recount.inactive_split_bytes, pool, block->bytes);
            }
            continue;
        }
        increase(recount.active, pool, 1);
        increase(recount.active_bytes, pool, block->bytes);
        increase(recount.requested_bytes, pool, block->requested_or_age);
        if (block->state == BlockState::pending) {
            pending += block->bytes;
            continue;
        }
        ++live_blocks;
        if (live.find(block->address) != block) return "an allocation is not in the address map";
        increase(recount.allocation, pool, 1);
        increase(recount.allocated_bytes, pool, block->bytes);
        if (block->bytes >= conf.max_split_bytes) recount.oversize_allocations.increase(1);
        owned[static_cast<std::size_t>(block->owner)] += block->bytes;
    }
    // Counted apart: a segment's size is not a block's.
    recount.oversize_segments.current = stats.oversize_segments.current;
    std::string broken;
    for_each_stat([&](auto of) {
        const Stat& is = of(stats);
        if (is.current != of(recount).current) broken = "a statistic differs from the recount";
        if (is.current > is.peak) broken = "a peak is below its current value";
        if (is.current < 0) broken = "a statistic is negative";
    });
    for_each_pool([&](const Pool& pool) {
        for (const auto& home : pool.homes) {
            indexed_blocks += home->size();
            if (const char* error = home->check()) broken = error;
        }
    });
    if (!broken.empty()) return broken;
    if (live_blocks != live.size()) return "the address map holds what is not allocated";
    if (free_blocks != indexed_blocks) return "a free block is not in its index";
    if (pending != pending_bytes) return "the pending bytes are wrong";
    if (owned != owned_bytes) return "the owners do not add up";
    if (recomputed != print) return "the fingerprint is wrong";
    return "";
}

void CachingAllocator::reset_peak_stats() {
    for_each_stat([&](auto of) { of(impl_->stats).peak = of(impl_->stats).current; });
}

void CachingAllocator::replay_totals(const AllocatorStats& before, const AllocatorStats& after,
                                     u64 times) {
    const i64 n = static_cast<i64>(times);
    AllocatorStats& stats = impl_->stats;
    for_each_stat([&](auto of) {
        OOMLAB_CHECK(of(before).current == of(after).current);  // a pattern ends where it began
        of(stats).allocated += n * (of(after).allocated - of(before).allocated);
        of(stats).freed += n * (of(after).freed - of(before).freed);
    });
    for (i64 AllocatorStats::*count :
         {&AllocatorStats::num_alloc_retries, &AllocatorStats::num_ooms,
          &AllocatorStats::num_sync_all_streams, &AllocatorStats::num_device_alloc,
          &AllocatorStats::num_device_free}) {
        stats.*count += n * (after.*count - before.*count);
    }
}

double fragmentation(const AllocatorStats& stats) {
    const i64 reserved = stats.reserved_bytes[kStatAll].peak;
    if (reserved == 0) return 0;
    return 1 -
           static_cast<double>(stats.active_bytes[kStatAll].peak) / static_cast<double>(reserved);
}

}  // namespace oomlab
