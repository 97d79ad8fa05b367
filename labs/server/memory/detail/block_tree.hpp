// An intrusive red-black tree of free blocks, ordered by (size, address), with its least element at
// hand. The links are the blocks' own, so nothing is allocated and removing a block needs no
// search.
//
// REQUIRES: a free neighbour of a block in its segment is in the same tree when its size is the
// same. Every call is given `all`, the blocks by id; all[0] is the leaf of every tree and always
// black.
//
// Invariants: (1) in order, keys ascend; (2) a red block has no red child; (3) every path from the
// root down meets as many black blocks.
#pragma once

#include "labs/server/memory/detail/block.hpp"

namespace oomlab::memory {

class BlockTree {
  public:
    bool empty() const { return root_ == 0; }
    // The least block, null when empty.
    Block* first(Block* all) const { return first_ == 0 ? nullptr : &all[first_]; }
    Block* last(Block* all) const;
    // The least block of at least this size, null when there is none.
    Block* lower_bound(Block* all, u64 bytes) const;

    void insert(Block* all, Block* block) {
        const BlockId id = static_cast<BlockId>(block - all);
        if (root_ != 0) return insert_below(all, id);
        block->left = block->right = block->parent = 0;
        block->red = false;
        root_ = first_ = id;
    }
    // REQUIRES: the block is in this tree.
    void erase(Block* all, Block* block) {
        if ((block->left | block->right | block->parent) == 0) {
            root_ = first_ = 0;
            return;
        }
        erase_linked(all, static_cast<BlockId>(block - all));
    }

    // The next in order, null at the end; and the one before.
    static Block* next(Block* all, Block* block);
    static Block* previous(Block* all, Block* block);

    // Whether the invariants hold (tests). Counts the blocks.
    bool check(Block* all, u64& count) const;

  private:
    enum class Side { left, right };
    struct Place {
        BlockId parent;
        Side side;
    };
    void insert_below(Block* all, BlockId z);
    Place place_of(const Block* all, BlockId z) const;
    static Place place_beside_neighbour(const Block* all, BlockId z);
    void erase_linked(Block* all, BlockId z);
    void rebalance_inserted(Block* all, BlockId z);
    void rebalance_erased(Block* all, BlockId x);
    void rotate_left(Block* all, BlockId x);
    void rotate_right(Block* all, BlockId x);
    // Puts `heir` (or nobody) where `old_child` was.
    void replace(Block* all, BlockId old_child, BlockId heir);

    BlockId root_ = 0;
    BlockId first_ = 0;
};

}  // namespace oomlab::memory
