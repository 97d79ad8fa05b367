// A block of the caching allocator, and where blocks live.
//
// A block is a contiguous piece of a segment. Its neighbours in the segment form a list by address;
// while it is free it also stands in the tree of its size (block_tree.hpp). All of it fits one
// cache line, since what malloc and free cost is mostly the lines they touch.
#pragma once

#include "kernels/device/device.hpp"
#include "kernels/device/owner.hpp"

namespace oomlab::memory {

using BlockId = u32;  // place in the arena; 0 is nobody
using HomeId = std::uint16_t;

enum class BlockState : unsigned char {
    unused,     // not a block: waits in the arena
    free,       // in the size index of its home
    allocated,  // in the address map
    pending,    // freed, but another stream may still use it
    unmapped,   // a hole in an expandable segment's range of addresses
};

struct alignas(64) Block {
    u64 address = 0;
    u64 bytes = 0;
    Block* prev = nullptr;
    Block* next = nullptr;
    BlockId left = 0, right = 0, parent = 0;  // in the tree of free blocks
    BlockState state = BlockState::unused;
    bool red = false;
    bool expandable = false;
    bool used_elsewhere = false;  // other streams: see Impl::elsewhere
    u64 requested_or_age = 0;     // in use: bytes asked; free: lookups when it became so
    u32 request = 0;
    HomeId home = 0;  // its pool and stream
    Owner owner = Owner::unattributed;

    bool is_split() const { return prev != nullptr || next != nullptr; }
    bool in_use() const { return state == BlockState::allocated || state == BlockState::pending; }
};
static_assert(sizeof(Block) == 64);

// Storage of blocks: one stretch of addresses, so that a block has a short name, of which the host
// pays only what was touched. Blocks that died last are reused first, while they are warm.
// Reaching kMaxBlocks aborts. Not thread safe.
class BlockArena {
  public:
    static constexpr u64 kMaxBlocks = u64{1} << 22;  // 256 MiB of addresses

    BlockArena();
    ~BlockArena();
    BlockArena(const BlockArena&) = delete;
    BlockArena& operator=(const BlockArena&) = delete;

    // The block of each id; the first is the trees' nobody.
    Block* all() const { return blocks_; }
    BlockId id_of(const Block* block) const { return static_cast<BlockId>(block - blocks_); }

    Block* take() {
        Block* block = unused_;
        if (block == nullptr) return take_fresh();
        unused_ = block->next;
        block->next = nullptr;
        return block;
    }
    void give_back(Block* block) {
        block->state = BlockState::unused;
        block->prev = nullptr;
        block->expandable = false;
        block->next = unused_;
        unused_ = block;
    }
    // Every block in use, in no particular order.
    template <class Visit>
    void for_each(Visit visit) const {
        for (u64 i = 1; i < touched_; ++i) {
            if (blocks_[i].state != BlockState::unused) visit(&blocks_[i]);
        }
    }

  private:
    Block* take_fresh();

    Block* blocks_;
    u64 capacity_;
    u64 touched_ = 1;
    Block* unused_ = nullptr;
};

}  // namespace oomlab::memory
