// What the attention kernels share: the tensors, and how a block finds its sequence.
#pragma once

#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {

template <class T, class C>
struct AttentionShape {
    const T* qkv;                      // [rows, (heads + 2 kv_heads) * head_dim]
    const C* cache;                    // [kv_blocks, 2, block_size, kv_heads, head_dim]
    T* out;                            // [rows, heads, head_dim]
    const std::int32_t* row_begin;     // [seqs + 1]
    const std::int32_t* context_len;   // [seqs]
    const std::int32_t* block_tables;  // [seqs, max_blocks]
    // 32 bits where they suffice: a 64-bit division is a subroutine, and costs registers besides.
    u32 seqs, max_blocks, heads, kv_heads, head_dim, block_size, window, row_width;
    float scale;                       // 1 / sqrt(head_dim)

    // Element offset of a token's key in the cache; its value stands value_step() further on.
    __device__ u64 key_offset(u32 seq, u32 position, u32 kv_head) const {
        const u32 index = position / block_size;
        const std::int32_t kv_block = block_tables[static_cast<u64>(seq) * max_blocks + index];
        const body::PagedShape paged{block_size, kv_heads, head_dim};
        return paged.key(static_cast<u64>(kv_block), position - index * block_size, kv_head);
    }
    __device__ u64 value_step() const { return static_cast<u64>(block_size) * kv_heads * head_dim; }
    __device__ const T* q_of(u32 row, u32 head) const {
        return qkv + static_cast<u64>(row) * row_width + head * head_dim;
    }
    __device__ T* out_of(u32 row, u32 head) const {
        return out + (static_cast<u64>(row) * heads + head) * head_dim;
    }
    __device__ u32 first_position(u32 position) const {
        return static_cast<u32>(body::first_position(position, window));
    }
};

// The sequence whose rows contain `row`.
__device__ inline u32 sequence_of(const std::int32_t* row_begin, u32 seqs, u32 row) {
    u32 low = 0, high = seqs;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (static_cast<u32>(row_begin[middle]) <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

template <class T, class C>
AttentionShape<T, C> shape_of(const AttentionArgs& a) {
    const auto u = [](u64 n) { return static_cast<u32>(n); };   // checked by attention()
    return {at<T>(a.qkv), at<C>(a.cache), at<T>(a.out), at<std::int32_t>(a.row_begin),
            at<std::int32_t>(a.context_len), at<std::int32_t>(a.block_tables), u(a.seqs),
            u(a.max_blocks), u(a.heads), u(a.kv_heads), u(a.head_dim), u(a.block_size), u(a.window),
            u((a.heads + 2 * a.kv_heads) * a.head_dim),
            1.0f / sqrtf(static_cast<float>(a.head_dim))};
}

}  // namespace oomlab::kernel
