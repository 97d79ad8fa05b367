#include "labs/server/memory/detail/block_tree.hpp"

namespace oomlab::memory {
namespace {

bool before(const Block* a, const Block* b) {
    if (a->bytes != b->bytes) return a->bytes < b->bytes;
    return a->address < b->address;
}

bool is_red(const Block* block) {
    return block != nullptr && block->red;
}

// Black height, or -1 where an invariant is broken.
int black_height(const Block* block, const Block* parent, u64& count) {
    if (block == nullptr) return 0;
    ++count;
    if (block->parent != parent || (block->red && is_red(parent))) return -1;
    if (block->left != nullptr && !before(block->left, block)) return -1;
    if (block->right != nullptr && !before(block, block->right)) return -1;
    const int left = black_height(block->left, block, count);
    const int right = black_height(block->right, block, count);
    if (left < 0 || left != right) return -1;
    return left + (block->red ? 0 : 1);
}

}  // namespace

Block* BlockTree::last() const {
    Block* block = root_;
    while (block != nullptr && block->right != nullptr) block = block->right;
    return block;
}

Block* BlockTree::lower_bound(u64 bytes) const {
    Block* found = nullptr;
    for (Block* block = root_; block != nullptr;) {
        if (block->bytes >= bytes) {
            found = block;
            block = block->left;
        } else {
            block = block->right;
        }
    }
    return found;
}

Block* BlockTree::next(Block* block) {
    if (block->right != nullptr) {
        block = block->right;
        while (block->left != nullptr) block = block->left;
        return block;
    }
    while (block->parent != nullptr && block->parent->right == block) block = block->parent;
    return block->parent;
}

Block* BlockTree::previous(Block* block) {
    if (block->left != nullptr) {
        block = block->left;
        while (block->right != nullptr) block = block->right;
        return block;
    }
    while (block->parent != nullptr && block->parent->left == block) block = block->parent;
    return block->parent;
}

void BlockTree::replace_child(Block* old_child, Block* new_child, Block* parent) {
    if (parent == nullptr) {
        root_ = new_child;
    } else if (parent->left == old_child) {
        parent->left = new_child;
    } else {
        parent->right = new_child;
    }
}

void BlockTree::rotate_left(Block* x) {
    Block* const y = x->right;
    x->right = y->left;
    if (y->left != nullptr) y->left->parent = x;
    y->parent = x->parent;
    replace_child(x, y, x->parent);
    y->left = x;
    x->parent = y;
}

void BlockTree::rotate_right(Block* x) {
    Block* const y = x->left;
    x->left = y->right;
    if (y->right != nullptr) y->right->parent = x;
    y->parent = x->parent;
    replace_child(x, y, x->parent);
    y->right = x;
    x->parent = y;
}

void BlockTree::insert_below(Block* block) {
    Block* parent = nullptr;
    bool on_left = true;
    if (before(block, first_)) {
        // The common case of a block that goes back where the next search takes it from.
        parent = first_;
        first_ = block;
    } else {
        for (Block* at = root_; at != nullptr;) {
            parent = at;
            on_left = before(block, at);
            at = on_left ? at->left : at->right;
        }
    }
    block->left = block->right = nullptr;
    block->parent = parent;
    block->red = true;
    (on_left ? parent->left : parent->right) = block;
    rebalance_inserted(block);
}

void BlockTree::rebalance_inserted(Block* block) {
    while (block != root_ && block->parent->red) {
        Block* parent = block->parent;
        Block* const grand = parent->parent;  // a red parent is not the root
        const bool parent_is_left = grand->left == parent;
        Block* const uncle = parent_is_left ? grand->right : grand->left;
        if (is_red(uncle)) {
            parent->red = uncle->red = false;
            grand->red = true;
            block = grand;
            continue;
        }
        if (parent_is_left) {
            if (block == parent->right) {
                rotate_left(parent);
                parent = block;
            }
            rotate_right(grand);
        } else {
            if (block == parent->left) {
                rotate_right(parent);
                parent = block;
            }
            rotate_left(grand);
        }
        parent->red = false;
        grand->red = true;
        break;
    }
    root_->red = false;
}

void BlockTree::erase_linked(Block* block) {
    if (first_ == block) first_ = next(block);
    Block* child = nullptr;   // takes the place that falls vacant
    Block* parent = nullptr;  // of that place
    bool vacated_red = block->red;
    if (block->left != nullptr && block->right != nullptr) {
        Block* heir = block->right;
        while (heir->left != nullptr) heir = heir->left;
        vacated_red = heir->red;
        child = heir->right;
        parent = heir->parent;
        if (parent == block) {
            parent = heir;
        } else {
            parent->left = child;
            if (child != nullptr) child->parent = parent;
            heir->right = block->right;
            heir->right->parent = heir;
        }
        heir->left = block->left;
        heir->left->parent = heir;
        heir->red = block->red;
        heir->parent = block->parent;
        replace_child(block, heir, block->parent);
    } else {
        child = block->left != nullptr ? block->left : block->right;
        parent = block->parent;
        if (child != nullptr) child->parent = parent;
        replace_child(block, child, parent);
    }
    if (!vacated_red) rebalance_erased(child, parent);
}

// The path through `child` is one black short.
void BlockTree::rebalance_erased(Block* child, Block* parent) {
    while (child != root_ && !is_red(child)) {
        const bool on_left = parent->left == child;
        Block* sibling = on_left ? parent->right : parent->left;
        if (sibling->red) {
            sibling->red = false;
            parent->red = true;
            if (on_left) {
                rotate_left(parent);
                sibling = parent->right;
            } else {
                rotate_right(parent);
                sibling = parent->left;
            }
        }
        Block* near = on_left ? sibling->left : sibling->right;
        Block* far = on_left ? sibling->right : sibling->left;
        if (!is_red(near) && !is_red(far)) {
            sibling->red = true;
            child = parent;
            parent = parent->parent;
            continue;
        }
        if (!is_red(far)) {
            near->red = false;
            sibling->red = true;
            if (on_left) {
                rotate_right(sibling);
                sibling = parent->right;
                far = sibling->right;
            } else {
                rotate_left(sibling);
                sibling = parent->left;
                far = sibling->left;
            }
        }
        sibling->red = parent->red;
        parent->red = false;
        far->red = false;
        if (on_left) {
            rotate_left(parent);
        } else {
            rotate_right(parent);
        }
        break;
    }
    if (child != nullptr) child->red = false;
}

bool BlockTree::check(u64& count) const {
    if (root_ == nullptr) return first_ == nullptr;
    if (root_->red || black_height(root_, nullptr, count) < 0) return false;
    // The order of the whole, not only of each parent and child.
    const Block* previous_block = nullptr;
    for (Block* block = first_; block != nullptr; block = next(block)) {
        if (previous_block != nullptr && !before(previous_block, block)) return false;
        previous_block = block;
    }
    return first_->left == nullptr && previous_block == last();
}

}  // namespace oomlab::memory
