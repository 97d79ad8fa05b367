// The paged KV cache: which KvBlocks a sequence holds, with prefix caching. It does the bookkeeping
// of blocks; the bytes behind them belong to the engine (one pool), or are taken block by block
// (on demand). KvBlock 0 is the null block and never handed out, as in vLLM.
//
// Prefix caching (engines.md 2.2): only full blocks; a block that nobody uses keeps its content and
// counts as free; the free list is in order of release, a finished sequence returns its blocks
// tail first, so that a common beginning survives longest.
//
// Invariants: (1) used + free = blocks - 1; (2) a block is in the free list exactly when its
// reference count is 0; (3) a content key names at most one block. Not thread safe.
#pragma once

#include <unordered_map>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::server {

// What a sequence's tokens are, as far as caching is concerned: equal keys mean equal content.
struct ContentKey {
    u64 own = 0;               // everything after the shared prefix
    u64 prefix = 0;            // group of the shared prefix
    u32 prefix_tokens = 0;
};

class KvPool {
  public:
    // REQUIRES: blocks >= 1, block_size >= 1.
    KvPool(u64 blocks, u64 block_size, bool prefix_caching);

    u64 blocks() const { return next_.size(); }
    u64 usable() const { return blocks() - 1; }
    u64 free_blocks() const { return free_count_; }
    u64 used_blocks() const { return usable() - free_count_; }
    u64 cached_blocks() const { return cached_free_; }   // free, with content that may be found again
    double usage() const { return usable() == 0 ? 0 : static_cast<double>(used_blocks()) / static_cast<double>(usable()); }
    u64 block_size() const { return block_size_; }

    // The blocks of the longest cached beginning of `tokens` tokens (whole blocks, at most tokens - 1
    // tokens, so that one remains to compute). Takes nothing.
    struct Hit {
        std::vector<u32> blocks;
        u64 evictable = 0;     // of them, in the free list now
    };
    Hit find_prefix(const ContentKey& key, u64 tokens) const;
    // Takes references on the blocks of a hit.
    void take_hit(const Hit& hit);

    // Appends `count` fresh blocks to `out`. Returns false, taking nothing, when fewer are free.
    bool allocate(u64 count, std::vector<u32>& out);
    // Names the content of a full block. No effect when caching is off or the content has a block.
    void publish(const ContentKey& key, u64 index, u32 block);
    // Gives all blocks of a sequence back, tail first, and clears the list.
    void release(std::vector<u32>& blocks);
    // A bug's effect: blocks that are used by nobody and never come back.
    void lose(u64 count);

    const char* check_invariants() const;   // "" or the first that does not hold

  private:
    static constexpr u32 kNone = 0xffffffffu;
    u64 content_hash(const ContentKey& key, u64 index) const;
    void push_back(u32 block);
    void unlink(u32 block);
    u32 pop_front();

    u64 block_size_;
    bool caching_;
    std::vector<u32> next_, prev_, references_;
    std::vector<u64> content_;               // 0: none
    std::unordered_map<u64, u32> by_content_;
    u32 head_ = kNone, tail_ = kNone;
    u64 free_count_ = 0, cached_free_ = 0;
};

}  // namespace oomlab::server
