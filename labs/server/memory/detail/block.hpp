// A block of the caching allocator, and where blocks live.
//
// A block is a contiguous piece of a segment. Its neighbours in the segment form a list by address;
// while it is free it also stands in the tree of its size (block_tree.hpp). The first cache line
// holds what a search and a merge touch.
#pragma once

#include <memory>
#include <vector>

#include "kernels/device/device.hpp"
#include "kernels/device/owner.hpp"

namespace oomlab::memory {

class SizeIndex;
struct ExpandableSegment;

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
    Block* left = nullptr;
    Block* right = nullptr;
    Block* parent = nullptr;
    BlockState state = BlockState::unused;
    bool red = false;
    Owner owner = Owner::unattributed;
    u32 request = 0;

    u64 requested_bytes = 0;
    SizeIndex* home = nullptr;  // its pool and stream
    ExpandableSegment* expandable = nullptr;
    u64 age_base = 0;                             // lookups of its pool when it became free
    std::unique_ptr<std::vector<StreamId>> uses;  // other streams that use it
    u32 events = 0;                               // not done yet

    bool is_split() const { return prev != nullptr || next != nullptr; }
};
static_assert(sizeof(Block) == 128);

// Storage of blocks: slabs that never move, and a list of the unused. Blocks that died last are
// reused first, while they are warm. Not thread safe.
class BlockArena {
  public:
    Block* take() {
        if (unused_ == nullptr) grow();
        Block* block = unused_;
        unused_ = block->next;
        block->next = nullptr;
        return block;
    }
    void give_back(Block* block) {
        block->state = BlockState::unused;
        block->prev = nullptr;
        block->expandable = nullptr;
        block->home = nullptr;
        block->next = unused_;
        unused_ = block;
    }
    // Every block in use, in no particular order.
    template <class Visit>
    void for_each(Visit visit) const {
        for (const auto& slab : slabs_) {
            for (u64 i = 0; i < kSlabBlocks; ++i) {
                if (slab[i].state != BlockState::unused) visit(&slab[i]);
            }
        }
    }

  private:
    static constexpr u64 kSlabBlocks = 512;

    void grow() {
        slabs_.push_back(std::make_unique<Block[]>(kSlabBlocks));
        Block* slab = slabs_.back().get();
        for (u64 i = kSlabBlocks; i-- > 0;) give_back(&slab[i]);
    }

    std::vector<std::unique_ptr<Block[]>> slabs_;
    Block* unused_ = nullptr;
};

}  // namespace oomlab::memory
