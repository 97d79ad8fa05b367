// An intrusive red-black tree of free blocks, ordered by (size, address), with its least element at
// hand. The links are the blocks' own, so nothing is allocated and removing a block needs no
// search.
//
// Invariants: (1) in order, keys ascend; (2) a red block has no red child; (3) every path from the
// root down meets as many black blocks.
#pragma once

#include "labs/server/memory/detail/block.hpp"

namespace oomlab::memory {

class BlockTree {
  public:
    bool empty() const { return root_ == nullptr; }
    // The least block, null when empty.
    Block* first() const { return first_; }
    Block* last() const;
    // The least block of at least this size, null when there is none.
    Block* lower_bound(u64 bytes) const;

    void insert(Block* block) {
        if (root_ != nullptr) return insert_below(block);
        block->left = block->right = block->parent = nullptr;
        block->red = false;
        root_ = first_ = block;
    }
    // REQUIRES: the block is in this tree.
    void erase(Block* block) {
        if (block->left == nullptr && block->right == nullptr && block->parent == nullptr) {
            root_ = first_ = nullptr;
            return;
        }
        erase_linked(block);
    }

    // The next in order, null at the end; and the one before.
    static Block* next(Block* block);
    static Block* previous(Block* block);

    // Whether the invariants hold (tests). Counts the blocks.
    bool check(u64& count) const;

  private:
    void insert_below(Block* block);
    void erase_linked(Block* block);
    void rebalance_inserted(Block* block);
    void rebalance_erased(Block* child, Block* parent);
    void rotate_left(Block* x);
    void rotate_right(Block* x);
    void replace_child(Block* old_child, Block* new_child, Block* parent);

    Block* root_ = nullptr;
    Block* first_ = nullptr;
};

}  // namespace oomlab::memory
