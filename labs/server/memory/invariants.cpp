// The recount: everything that the allocator keeps, worked out again from its blocks.
#include "labs/server/memory/detail/allocator_impl.hpp"

namespace oomlab {
namespace {

using memory::Block;
using memory::BlockState;

struct Recount {
    memory::Counters counters;
    AllocatorStats stats;
    std::array<u64, kOwners> owned{};
    u64 print = 0, live = 0, free = 0;
};

// What must hold between a block and the one after it.
const char* check_neighbours(const Block& block) {
    if (block.bytes == 0 || block.bytes % memory::kMinBlockBytes != 0) {
        return "a block is not a multiple of 512 bytes";
    }
    const Block* const next = block.next;
    if (next == nullptr) return nullptr;
    if (next->prev != &block || next->home != block.home || next->expandable != block.expandable) {
        return "neighbours disagree";
    }
    if (next->address != block.address + block.bytes) {
        return "the blocks of a segment leave a gap or overlap";
    }
    const bool merges = block.state == BlockState::free || block.state == BlockState::unmapped;
    if (merges && next->state == block.state) return "two neighbours of a kind are not merged";
    return nullptr;
}

void count_block(Recount& recount, const Block& block, StatPool pool) {
    memory::Counters& counters = recount.counters;
    counters.reserved_bytes.increase(pool, block.bytes);
    if (!block.expandable && block.prev == nullptr) counters.segment.increase(pool, 1);
    if (block.state == BlockState::free) {
        ++recount.free;
        if (block.is_split() && !block.expandable) {
            counters.inactive_split.increase(pool, 1);
            counters.inactive_split_bytes.increase(pool, block.bytes);
        }
        return;
    }
    counters.requested_bytes.increase(pool, block.requested_or_age);
    if (block.state == BlockState::pending) {
        counters.active.begin_pending(pool, 1);
        counters.active_bytes.begin_pending(pool, block.bytes);
        return;
    }
    ++recount.live;
    counters.allocation.increase(pool, 1);
    counters.allocated_bytes.increase(pool, block.bytes);
    recount.owned[static_cast<std::size_t>(block.owner)] += block.bytes;
}

}  // namespace

std::string CachingAllocator::Impl::check_invariants() const {
    Recount recount;
    for (const Block* block : blocks_by_address()) {
        if (const char* broken = check_neighbours(*block)) return broken;
        if (block->prev == nullptr) {
            u64 bytes = 0;
            for (const Block* at = block; at != nullptr; at = at->next) bytes += at->bytes;
            recount.print ^= print_of_segment(block->address, bytes, block->home);
            if (block->expandable &&
                (range_of(block).address != block->address || range_of(block).bytes != bytes)) {
                return "an expandable segment does not cover its range";
            }
        }
        if (block->state == BlockState::unmapped) {
            const auto& holes = home_of(block).unmapped;
            if (holes.count(const_cast<Block*>(block)) != 1) return "a hole is lost";
            continue;
        }
        if (block->expandable) {
            // A page belongs to the block that holds its first byte.
            const u64 page = range_of(block).page_bytes, start = range_of(block).address;
            const u64 first = start + round_up(block->address - start, page);
            const u64 end = block->address + block->bytes;
            if (first < end) recount.print ^= print_of_pages(first, end - first, page);
        }
        if (block->in_use()) recount.print ^= print_of(*block);
        if (block->state == BlockState::allocated) {
            if (live.find(block->address) != block) return "an allocation is not in the map";
            if (block->bytes >= conf.max_split_bytes)
                recount.stats.oversize_allocations.increase(1);
        }
        count_block(recount, *block, pool_of(block).stat());
    }
    recount.counters.publish(recount.stats);
    return compare_with(recount.stats) +
           (recount.live != live.size() ? "the address map holds what is not allocated; " : "") +
           (recount.free != indexed_blocks() ? "a free block is not in its index; " : "") +
           (recount.owned != owned_bytes ? "the owners do not add up; " : "") +
           (recount.print != print ? "the fingerprint is wrong; " : "");
}

std::string CachingAllocator::Impl::compare_with(const AllocatorStats& recount) const {
    std::string broken;
    const AllocatorStats& is = publish();
    const auto compare = [&](const PoolStat& kept, const PoolStat& counted) {
        for (std::size_t pool = 0; pool < kept.size(); ++pool) {
            if (kept[pool].current != counted[pool].current) broken = "a statistic is wrong; ";
            if (kept[pool].current > kept[pool].peak) broken = "a peak is below what there is; ";
        }
    };
    memory::Counters::for_each([&](auto, auto place) { compare(is.*place, recount.*place); });
    compare(is.active, recount.active);
    compare(is.active_bytes, recount.active_bytes);
    if (is.oversize_allocations.current != recount.oversize_allocations.current) {
        broken += "the oversize allocations are wrong; ";
    }
    for_each_pool([&](const Pool& pool) {
        for (const auto& home : pool.homes) {
            if (const char* error = home->check()) broken += error;
        }
    });
    return broken;
}

u64 CachingAllocator::Impl::indexed_blocks() const {
    u64 count = 0;
    for_each_pool([&](const Pool& pool) {
        for (const auto& home : pool.homes) count += home->size();
    });
    return count;
}

}  // namespace oomlab
