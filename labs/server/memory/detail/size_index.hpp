// The free blocks of one pool and one stream, found by size.
//
// Order is PyTorch's: (size, address), best fit takes the first that is large enough. Blocks are
// spread over buckets, one to each size below 2 MiB and 64 to each power of two above, with a
// bitmap of the ones that are not empty and a tree inside each; so a search costs a few
// instructions, whether there are ten holes or a hundred thousand. The home of a block: it names
// pool and stream.
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
    SizeIndex(Block* all_blocks, Pool& home_pool, StreamId home_stream, HomeId home_id)
        : pool(home_pool), stream(home_stream), id(home_id), all_(all_blocks) {}
    SizeIndex(const SizeIndex&) = delete;
    SizeIndex& operator=(const SizeIndex&) = delete;

    Pool& pool;
    const StreamId stream;
    const HomeId id;
    std::set<Block*, ByAddress> unmapped;  // holes of this home's expandable segments

    void insert(Block* block) {
        const u32 b = bucket_of(block->bytes);
        buckets_[b].insert(all_, block);
        occupied_[b / 64] |= u64{1} << (b % 64);
        summary_[b / 4096] |= u64{1} << (b / 64 % 64);
        ++blocks_;
    }
    // REQUIRES: the block is here, with the size it was inserted with.
    void erase(Block* block) {
        const u32 b = bucket_of(block->bytes);
        buckets_[b].erase(all_, block);
        --blocks_;
        if (!buckets_[b].empty()) return;
        occupied_[b / 64] &= ~(u64{1} << (b % 64));
        if (occupied_[b / 64] == 0) summary_[b / 4096] &= ~(u64{1} << (b / 64 % 64));
    }

    // The first block of at least this size, null when there is none.
    Block* lower_bound(u64 bytes) const {
        const u32 b = bucket_of(bytes);
        if (Block* least = buckets_[b].first(all_); least != nullptr) {
            if (least->bytes >= bytes) return least;
            if (Block* found = buckets_[b].lower_bound(all_, bytes)) return found;
        }
        return first_from(b + 1);
    }
    Block* first() const { return first_from(0); }
    Block* last() const;
    // The one after this, null at the end; and the one before, null at the start.
    Block* next(Block* block) const;
    Block* previous(Block* block) const;
    u64 size() const { return blocks_; }

    // The first broken invariant, or null (tests).
    const char* check() const;

  private:
    static constexpr u32 kExact = 4096;  // quanta of 512 B with a bucket of their own
    static constexpr u32 kExactLog2 = 12;
    static constexpr u32 kSubBits = 6;   // 64 buckets to each power of two above
    static constexpr u32 kMaxLog2 = 52;  // of quanta: sizes below 2^61
    static constexpr u32 kBuckets = kExact + ((kMaxLog2 - kExactLog2) << kSubBits);
    static constexpr u32 kWords = kBuckets / 64;
    static constexpr u32 kSummaries = (kWords + 63) / 64;

    static u32 bucket_of(u64 bytes) {
        const u64 quanta = bytes / 512;
        if (quanta < kExact) return static_cast<u32>(quanta);
        const u32 log2 = static_cast<u32>(std::bit_width(quanta)) - 1;
        return kExact + ((log2 - kExactLog2) << kSubBits) +
               static_cast<u32>((quanta >> (log2 - kSubBits)) & ((1u << kSubBits) - 1));
    }
    Block* first_from(u32 b) const {
        if (b >= kBuckets) return nullptr;
        u32 word = b / 64;
        u64 bits = occupied_[word] & (~u64{0} << (b % 64));
        if (bits == 0) {
            word = occupied_word_from(word + 1);
            if (word == kWords) return nullptr;
            bits = occupied_[word];
        }
        return buckets_[word * 64 + static_cast<u32>(std::countr_zero(bits))].first(all_);
    }
    u32 occupied_word_from(u32 word) const {
        for (u32 s = word / 64; s < kSummaries; ++s) {
            u64 words = summary_[s];
            if (s == word / 64) words &= ~u64{0} << (word % 64);
            if (words != 0) return s * 64 + static_cast<u32>(std::countr_zero(words));
        }
        return kWords;
    }
    // The last occupied bucket before b, kBuckets when there is none.
    u32 occupied_before(u32 b) const;

    Block* all_;
    u64 blocks_ = 0;
    std::array<u64, kSummaries> summary_{};
    std::array<u64, kWords> occupied_{};
    std::array<BlockTree, kBuckets> buckets_{};
};

}  // namespace oomlab::memory
