// Where a token's key and value stand in a paged cache [kv_blocks, 2, block_size, kv_heads, head_dim],
// and which tokens a row of q may look at.
#pragma once

#include <cstdint>

#include "kernels/ops/bodies/number.hpp"

namespace oomlab::body {

struct PagedShape {
    std::uint64_t block_size, kv_heads, head_dim;

    // Element offsets of one token's head, by block and place in the block.
    OOMLAB_BOTH std::uint64_t key(std::uint64_t kv_block, std::uint64_t offset,
                                  std::uint64_t kv_head) const {
        return ((kv_block * 2 * block_size + offset) * kv_heads + kv_head) * head_dim;
    }
    OOMLAB_BOTH std::uint64_t value(std::uint64_t kv_block, std::uint64_t offset,
                                    std::uint64_t kv_head) const {
        return (((kv_block * 2 + 1) * block_size + offset) * kv_heads + kv_head) * head_dim;
    }
};

// A row at `position` attends to [first_position, position]; window 0 is no window.
OOMLAB_BOTH inline std::uint64_t first_position(std::uint64_t position, std::uint64_t window) {
    return window == 0 || position < window ? 0 : position - window + 1;
}

}  // namespace oomlab::body
