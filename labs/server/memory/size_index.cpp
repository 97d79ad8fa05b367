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

Block* SizeIndex::previous(Block* block) const {
    if (Block* found = BlockTree::previous(block)) return found;
    const u32 b = occupied_before(bucket_of(block->bytes));
    return b == kBuckets ? nullptr : buckets_[b].last();
}

Block* SizeIndex::last() const {
    const u32 b = occupied_before(kBuckets);
    return b == kBuckets ? nullptr : buckets_[b].last();
}

const char* SizeIndex::check() const {
    u64 count = 0;
    for (u32 b = 0; b < kBuckets; ++b) {
        if (!buckets_[b].check(count)) return "a tree of free blocks is out of order";
        const bool marked = (occupied_[b / 64] >> (b % 64) & 1) != 0;
        if (marked == buckets_[b].empty()) return "the bitmap of free blocks is wrong";
        for (Block* at = buckets_[b].first(); at != nullptr; at = BlockTree::next(at)) {
            if (bucket_of(at->bytes) != b) return "a free block is in the wrong bucket";
            if (at->state != BlockState::free) return "a block in the index is not free";
            if (at->home != this) return "a free block is in another home's index";
        }
    }
    for (u32 w = 0; w < kWords; ++w) {
        if ((summary_ >> w & 1) != (occupied_[w] != 0 ? 1u : 0u)) return "the summary is wrong";
    }
    return count == blocks_ ? nullptr : "the count of free blocks is wrong";
}

}  // namespace oomlab::memory
