#include "labs/server/memory/detail/size_index.hpp"

namespace oomlab::memory {

u32 SizeIndex::occupied_before(u32 b) const {
    while (b-- > 0) {
        const u64 bits = occupied_[b / 64] & (~u64{0} >> (63 - b % 64));
        if (bits != 0) return b / 64 * 64 + 63 - static_cast<u32>(std::countl_zero(bits));
        b = b / 64 * 64;  // on to the word before
    }
    return kBuckets;
}

Block* SizeIndex::next(Block* block) const {
    if (Block* found = BlockTree::next(all_, block)) return found;
    return first_from(bucket_of(block->bytes) + 1);
}

Block* SizeIndex::previous(Block* block) const {
    if (Block* found = BlockTree::previous(all_, block)) return found;
    const u32 b = occupied_before(bucket_of(block->bytes));
    return b == kBuckets ? nullptr : buckets_[b].last(all_);
}

Block* SizeIndex::last() const {
    const u32 b = occupied_before(kBuckets);
    return b == kBuckets ? nullptr : buckets_[b].last(all_);
}

const char* SizeIndex::check() const {
    u64 count = 0;
    for (u32 b = 0; b < kBuckets; ++b) {
        const bool marked = (occupied_[b / 64] >> (b % 64) & 1) != 0;
        if (marked == buckets_[b].empty()) return "the bitmap of free blocks is wrong";
        if (!marked) continue;
        if (!buckets_[b].check(all_, count)) return "a tree of free blocks is out of order";
        for (Block* at = buckets_[b].first(all_); at != nullptr; at = BlockTree::next(all_, at)) {
            if (bucket_of(at->bytes) != b) return "a free block is in the wrong bucket";
            if (at->state != BlockState::free) return "a block in the index is not free";
            if (at->home != id) return "a free block is in another home's index";
        }
    }
    for (u32 w = 0; w < kWords; ++w) {
        const u64 marked = summary_[w / 64] >> (w % 64) & 1;
        if (marked != (occupied_[w] != 0 ? 1u : 0u)) return "the summary is wrong";
    }
    return count == blocks_ ? nullptr : "the count of free blocks is wrong";
}

}  // namespace oomlab::memory
