// The free blocks of one pool and one stream, found by size.
//
// Order is PyTorch's: (size, address), best fit takes the first that is large enough. Blocks are
// spread over buckets, 64 to each power of two (exact up to 32 KiB), with a bitmap of the ones that
// are not empty and a tree inside each; so a search costs a few instructions, whether there are ten
// holes or a hundred thousand. The home of a block: it also names pool and stream.
#pragma once

#include <array>
#include <bit>
#include <set>

#include "labs/server/memory/detail/block_tree.hpp"

namespace oomlab::memory {

struct Pool;

struct ByAddress {
    bool operator()(const Block* a, const Block* b) const { return a->address < b->address; }
};

class SizeIndex {
  public:
    SizeIndex(Pool& home_pool, StreamId home_stream, u64 home_salt)
        : pool(home_pool), stream(home_stream), salt(home_salt) {}
    SizeIndex(const SizeIndex&) = delete;
    SizeIndex& operator=(const SizeIndex&) = delete;

    Pool& pool;
    const StreamId stream;
    const u64 salt;                        // tells homes apart in the fingerprint
    std::set<Block*, ByAddress> unmapped;  // holes of this home's expandable segments

    void insert(Block* block) {
        const u32 b = bucket_of(block->bytes);
        buckets_[b].insert(block);
        occupied_[b / 64] |= u64{1} << (b % 64);
        summary_ |= u64{1} << (b / 64);
        ++blocks_;
    }
    // REQUIRES: the block is here, with the size it was inserted with.
    void erase(Block* block) {
        const u32 b = bucket_of(block->bytes);
        buckets_[b].erase(block);
        --blocks_;
        if (!buckets_[b].empty()) return;
        occupied_[b / 64] &= ~(u64{1} << (b % 64));
        if (occupied_[b / 64] == 0) summary_ &= ~(u64{1} << (b / 64));
    }

    // The first block of at least this size, null when there is none.
    Block* lower_bound(u64 bytes) const {
        const u32 b = bucket_of(bytes);
        if (Block* least = buckets_[b].first(); least != nullptr) {
            if (least->bytes >= bytes) return least;
            if (Block* found = buckets_[b].lower_bound(bytes)) return found;
        }
        return first_from(b + 1);
    }
    Block* first() const { return first_from(0); }
    // The one after this, null at the end.
    Block* next(Block* block) const {
        if (Block* found = BlockTree::next(block)) return found;
        return first_from(bucket_of(block->bytes) + 1);
    }
    // The one before this, null at the start.
    Block* previous(Block* block) const;
    Block* last() const;
    u64 size() const { return blocks_; }

    // The first broken invariant, or null (tests).
    const char* check() const;

  private:
    static constexpr u32 kSubBits = 6;  // 64 buckets to a power of two
    static constexpr u32 kSub = 1u << kSubBits;
    static constexpr u32 kBuckets = (52 - kSubBits) * kSub + kSub;  // sizes below 2^61
    static constexpr u32 kWords = kBuckets / 64;
    static_assert(kWords <= 64, "one summary word");

    static u32 bucket_of(u64 bytes) {
        const u64 quanta = bytes / 512;
        if (quanta < kSub) return static_cast<u32>(quanta);
        const u32 log2 = static_cast<u32>(std::bit_width(quanta)) - 1;
        return ((log2 - kSubBits + 1) << kSubBits) |
               static_cast<u32>((quanta >> (log2 - kSubBits)) & (kSub - 1));
    }
    Block* first_from(u32 b) const {
        u32 word = b / 64;
        if (word >= kWords) return nullptr;
        u64 bits = occupied_[word] & (~u64{0} << (b % 64));
        if (bits == 0) {
            const u64 words = word == 63 ? 0 : summary_ & (~u64{0} << (word + 1));
            if (words == 0) return nullptr;
            word = static_cast<u32>(std::countr_zero(words));
            bits = occupied_[word];
        }
        return buckets_[word * 64 + static_cast<u32>(std::countr_zero(bits))].first();
    }
    // The last occupied bucket before b, kBuckets when there is none.
    u32 occupied_before(u32 b) const;

    u64 summary_ = 0;
    u64 blocks_ = 0;
    std::array<u64, kWords> occupied_{};
    std::array<BlockTree, kBuckets> buckets_{};
};

}  // namespace oomlab::memory
