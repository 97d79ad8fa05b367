#include "labs/server/memory/detail/block_tree.hpp"

namespace oomlab::memory {
namespace {

bool before(const Block& a, const Block& b) {
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    return a.address < b.address;
}

// Black height, or -1 where an invariant is broken.
int black_height(const Block* all, BlockId id, BlockId parent, u64& count) {
    if (id == 0) return 0;
    const Block& block = all[id];
    ++count;
    if (block.parent != parent || (block.red && all[parent].red)) return -1;
    const int left = black_height(all, block.left, id, count);
    const int right = black_height(all, block.right, id, count);
    if (left < 0 || left != right) return -1;
    return left + (block.red ? 0 : 1);
}

}  // namespace

Block* BlockTree::last(Block* all) const {
    BlockId at = root_;
    if (at == 0) return nullptr;
    while (all[at].right != 0) at = all[at].right;
    return &all[at];
}

Block* BlockTree::lower_bound(Block* all, u64 bytes) const {
    Block* found = nullptr;
    for (BlockId at = root_; at != 0;) {
        Block& block = all[at];
        const bool fits = block.bytes >= bytes;
        if (fits) found = &block;
        at = fits ? block.left : block.right;
    }
    return found;
}

Block* BlockTree::next(Block* all, Block* block) {
    BlockId at = block->right;
    if (at != 0) {
        while (all[at].left != 0) at = all[at].left;
        return &all[at];
    }
    BlockId child = static_cast<BlockId>(block - all);
    at = block->parent;
    while (at != 0 && all[at].right == child) {
        child = at;
        at = all[at].parent;
    }
    return at == 0 ? nullptr : &all[at];
}

Block* BlockTree::previous(Block* all, Block* block) {
    BlockId at = block->left;
    if (at != 0) {
        while (all[at].right != 0) at = all[at].right;
        return &all[at];
    }
    BlockId child = static_cast<BlockId>(block - all);
    at = block->parent;
    while (at != 0 && all[at].left == child) {
        child = at;
        at = all[at].parent;
    }
    return at == 0 ? nullptr : &all[at];
}

void BlockTree::replace(Block* all, BlockId old_child, BlockId heir) {
    const BlockId parent = all[old_child].parent;
    if (parent == 0) {
        root_ = heir;
    } else if (all[parent].left == old_child) {
        all[parent].left = heir;
    } else {
        all[parent].right = heir;
    }
    all[heir].parent = parent;  // also of nobody: rebalancing climbs from there
}

void BlockTree::rotate_left(Block* all, BlockId x) {
    const BlockId y = all[x].right;
    replace(all, x, y);
    all[x].right = all[y].left;
    if (all[y].left != 0) all[all[y].left].parent = x;
    all[y].left = x;
    all[x].parent = y;
}

void BlockTree::rotate_right(Block* all, BlockId x) {
    const BlockId y = all[x].left;
    replace(all, x, y);
    all[x].left = all[y].right;
    if (all[y].right != 0) all[all[y].right].parent = x;
    all[y].right = x;
    all[x].parent = y;
}

void BlockTree::insert_below(Block* all, BlockId z) {
    Place place{first_, Side::left};
    if (before(all[z], all[first_])) {
        // The common case of a block that goes back where the next search takes it from.
        first_ = z;
    } else {
        place = place_of(all, z);
    }
    all[z].left = all[z].right = 0;
    all[z].parent = place.parent;
    all[z].red = true;
    (place.side == Side::left ? all[place.parent].left : all[place.parent].right) = z;
    if (all[place.parent].red) rebalance_inserted(all, z);
}

// Where a new block hangs. The upper levels of a tree are warm; below them each level is a cache
// miss, so in a deep tree a neighbour in the segment is asked first.
BlockTree::Place BlockTree::place_of(const Block* all, BlockId z) const {
    constexpr int kWarmLevels = 6;
    Place place{root_, Side::left};
    int level = 0;
    for (BlockId at = root_; at != 0; ++level) {
        if (level == kWarmLevels) {
            const Place beside = place_beside_neighbour(all, z);
            if (beside.parent != 0) return beside;
        }
        place = {at, before(all[z], all[at]) ? Side::left : Side::right};
        at = place.side == Side::left ? all[at].left : all[at].right;
    }
    return place;
}

// Blocks of one size are ordered by address. The nearest free block of the same size in the
// segment, on either side, is thus next to this one in the tree as well. Nobody (parent 0) when
// none is close.
BlockTree::Place BlockTree::place_beside_neighbour(const Block* all, BlockId z) {
    constexpr int kReach = 6;
    const auto same = [&](const Block* block) {
        return block->state == BlockState::free && block->bytes == all[z].bytes;
    };
    const Block* after = all[z].next;
    for (int i = 0; i < kReach && after != nullptr; ++i, after = after->next) {
        if (!same(after)) continue;
        BlockId at = after->left;
        if (at == 0) return {static_cast<BlockId>(after - all), Side::left};
        while (all[at].right != 0) at = all[at].right;
        return {at, Side::right};
    }
    const Block* ahead = all[z].prev;
    for (int i = 0; i < kReach && ahead != nullptr; ++i, ahead = ahead->prev) {
        if (!same(ahead)) continue;
        BlockId at = ahead->right;
        if (at == 0) return {static_cast<BlockId>(ahead - all), Side::right};
        while (all[at].left != 0) at = all[at].left;
        return {at, Side::left};
    }
    return {0, Side::left};
}

void BlockTree::rebalance_inserted(Block* all, BlockId z) {
    while (all[all[z].parent].red) {
        BlockId parent = all[z].parent;
        const BlockId grand = all[parent].parent;  // a red parent is not the root
        const bool parent_is_left = all[grand].left == parent;
        const BlockId uncle = parent_is_left ? all[grand].right : all[grand].left;
        if (all[uncle].red) {
            all[parent].red = all[uncle].red = false;
            all[grand].red = true;
            z = grand;
            continue;
        }
        if (parent_is_left) {
            if (z == all[parent].right) {
                rotate_left(all, parent);
                parent = z;
            }
            rotate_right(all, grand);
        } else {
            if (z == all[parent].left) {
                rotate_right(all, parent);
                parent = z;
            }
            rotate_left(all, grand);
        }
        all[parent].red = false;
        all[grand].red = true;
        break;
    }
    all[root_].red = false;
}

void BlockTree::erase_linked(Block* all, BlockId z) {
    if (first_ == z) {
        const Block* const after = next(all, &all[z]);
        first_ = after == nullptr ? 0 : static_cast<BlockId>(after - all);
    }
    Block& block = all[z];
    BlockId child = 0;  // moves into the place that falls vacant
    bool vacated_red = block.red;
    if (block.left == 0 || block.right == 0) {
        child = block.left != 0 ? block.left : block.right;
        replace(all, z, child);
    } else {
        BlockId heir = block.right;
        while (all[heir].left != 0) heir = all[heir].left;
        vacated_red = all[heir].red;
        child = all[heir].right;
        if (all[heir].parent == z) {
            all[child].parent = heir;
        } else {
            replace(all, heir, child);
            all[heir].right = block.right;
            all[block.right].parent = heir;
        }
        replace(all, z, heir);
        all[heir].left = block.left;
        all[block.left].parent = heir;
        all[heir].red = block.red;
    }
    if (!vacated_red) rebalance_erased(all, child);
    all[0].parent = 0;
}

// The path through x is one black short.
void BlockTree::rebalance_erased(Block* all, BlockId x) {
    while (x != root_ && !all[x].red) {
        const BlockId parent = all[x].parent;
        const bool on_left = all[parent].left == x;
        BlockId sibling = on_left ? all[parent].right : all[parent].left;
        if (all[sibling].red) {
            all[sibling].red = false;
            all[parent].red = true;
            if (on_left) {
                rotate_left(all, parent);
                sibling = all[parent].right;
            } else {
                rotate_right(all, parent);
                sibling = all[parent].left;
            }
        }
        const BlockId inner = on_left ? all[sibling].left : all[sibling].right;
        BlockId outer = on_left ? all[sibling].right : all[sibling].left;
        if (!all[inner].red && !all[outer].red) {
            all[sibling].red = true;
            x = parent;
            continue;
        }
        if (!all[outer].red) {
            all[inner].red = false;
            all[sibling].red = true;
            if (on_left) {
                rotate_right(all, sibling);
            } else {
                rotate_left(all, sibling);
            }
            outer = sibling;
            sibling = inner;
        }
        all[sibling].red = all[parent].red;
        all[parent].red = false;
        all[outer].red = false;
        if (on_left) {
            rotate_left(all, parent);
        } else {
            rotate_right(all, parent);
        }
        break;
    }
    all[x].red = false;
}

bool BlockTree::check(Block* all, u64& count) const {
    if (all[0].red || all[0].left != 0 || all[0].right != 0 || all[0].parent != 0) return false;
    if (root_ == 0) return first_ == 0;
    u64 here = 0;
    if (all[root_].red || black_height(all, root_, 0, here) < 0) return false;
    const Block* previous_block = nullptr;
    u64 walked = 0;
    for (Block* block = first(all); block != nullptr; block = next(all, block)) {
        if (previous_block != nullptr && !before(*previous_block, *block)) return false;
        previous_block = block;
        ++walked;
    }
    count += here;
    return walked == here && previous_block == last(all);
}

}  // namespace oomlab::memory
