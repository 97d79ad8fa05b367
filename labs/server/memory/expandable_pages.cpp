// Expandable segments from the allocator's side: where to grow, which pages to give back.
#include <algorithm>

#include "labs/server/memory/detail/allocator_impl.hpp"

namespace oomlab {

using memory::ExpandableSegment;

// Candidates are runs of free and unmapped blocks, from the lowest address.
CachingAllocator::Impl::Block* CachingAllocator::Impl::find_growable(Request& r) {
    for (Block* hole : r.home->unmapped) {
        Block* const before = hole->prev;
        Block* const start = before != nullptr && before->state == BlockState::free ? before : hole;
        u64 room = 0;
        for (const Block* at = start; at != nullptr && room < r.rounded_bytes; at = at->next) {
            if (at->state != BlockState::free && at->state != BlockState::unmapped) break;
            room += at->bytes;
        }
        if (room >= r.rounded_bytes) return start;
    }
    const Pool& pool = r.home->pool;
    auto range = ExpandableSegment::open(
        device, pool.small ? memory::kSmallSegmentBytes : conf.large_segment_bytes);
    if (!range) {
        r.error = std::move(range.error());
        r.fatal = true;
        return nullptr;
    }
    Block* const hole = arena.take();
    hole->address = (*range)->address;
    hole->bytes = (*range)->bytes;
    hole->home = r.home->id;
    hole->expandable = true;
    ranges.push_back(std::move(*range));
    print ^= print_of_segment(hole->address, hole->bytes, hole->home);
    enter_unmapped(*r.home, hole);
    return hole;
}

CachingAllocator::Impl::Block* CachingAllocator::Impl::grow_expandable(Request& r) {
    Block* block = find_growable(r);
    if (block == nullptr) return nullptr;
    // No device is as large as its range of addresses, but a request may be.
    if (block->state == BlockState::unmapped && block->bytes < r.rounded_bytes &&
        block->next == nullptr) {
        if (!block->is_split()) drop_expandable(block);
        r.error = DeviceError{.code = DeviceErrc::memory_allocation,
                              .call = DeviceCall::create,
                              .bytes = r.rounded_bytes};
        return nullptr;
    }
    if (block->state == BlockState::unmapped &&
        !map_front(r, block, std::min(block->bytes, r.rounded_bytes))) {
        return nullptr;
    }
    while (block->bytes < r.rounded_bytes) {
        Block* const hole = block->next;
        if (!map_front(r, hole, std::min(r.rounded_bytes - block->bytes, hole->bytes))) {
            return nullptr;
        }
        block = hole;  // has taken in what was before it
    }
    leave_free(*r.home, block);
    return block;
}

// Maps pages from the front of a hole; they join free neighbours. On failure nothing changed.
bool CachingAllocator::Impl::map_front(Request& r, Block* hole, u64 bytes) {
    ExpandableSegment& range = range_of(hole);
    auto mapped = range.map({hole->address, bytes});
    if (!mapped) {
        DeviceError& error = mapped.error();
        // Only a page that cannot be made is a lack of memory; the rest is an error of the driver.
        r.fatal = !(error.out_of_memory() && error.call == DeviceCall::create);
        r.error = std::move(error);
        return false;
    }
    print ^= print_of_pages(mapped->address, mapped->bytes, range.page_bytes);
    SizeIndex& home = home_of(hole);
    leave_unmapped(home, hole);
    if (mapped->bytes < hole->bytes) enter_unmapped(home, split(hole, mapped->bytes));
    hole->state = BlockState::free;
    (void)merge(home, hole, hole->prev);
    (void)merge(home, hole, hole->next);
    enter_free(home, hole);
    const Pool& pool = home.pool;
    counters.reserved_bytes.increase(pool.stat(), mapped->bytes);
    ++stats.num_device_alloc;
    if (observer != nullptr) {
        observer->segment_map(mapped->address, mapped->bytes, home.stream, pool.small);
    }
    return true;
}

// Unmaps the whole pages inside a free block; what is left of it on either side stays free.
void CachingAllocator::Impl::unmap(Block* block) {
    ExpandableSegment& range = range_of(block);
    const memory::AddressRange gone = range.unmap({block->address, block->bytes});
    if (gone.bytes == 0) return;
    print ^= print_of_pages(gone.address, gone.bytes, range.page_bytes);
    SizeIndex& home = home_of(block);
    leave_free(home, block);
    const u64 before = gone.address - block->address;
    Block* hole = block;
    if (before > 0) {
        hole = split(block, before);
        enter_free(home, block);
    }
    if (gone.bytes < hole->bytes) enter_free(home, split(hole, gone.bytes));
    hole->state = BlockState::unmapped;
    (void)merge(home, hole, hole->prev);
    (void)merge(home, hole, hole->next);
    enter_unmapped(home, hole);
    counters.reserved_bytes.decrease(home.pool.stat(), gone.bytes);
    ++stats.num_device_free;
    if (observer != nullptr) {
        observer->segment_unmap(gone.address, gone.bytes, home.stream, home.pool.small);
    }
    if (!hole->is_split()) drop_expandable(hole);
}

memory::ExpandableSegment& CachingAllocator::Impl::range_of(const Block* block) const {
    const auto at = std::find_if(ranges.begin(), ranges.end(), [&](const auto& range) {
        return block->address >= range->address && block->address < range->end();
    });
    OOMLAB_CHECK(at != ranges.end());
    return **at;
}

// REQUIRES: the hole is all there is of its range.
void CachingAllocator::Impl::drop_expandable(Block* hole) {
    ExpandableSegment& range = range_of(hole);
    OOMLAB_CHECK(hole->bytes == range.bytes);
    leave_unmapped(home_of(hole), hole);
    print ^= print_of_segment(hole->address, hole->bytes, hole->home);
    const auto at = std::find_if(ranges.begin(), ranges.end(),
                                 [&](const auto& other) { return other.get() == &range; });
    if (!range.close()) unclosed.push_back(std::move(*at));
    ranges.erase(at);
    arena.give_back(hole);
}

}  // namespace oomlab
