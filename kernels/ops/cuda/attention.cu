// Attention over a paged cache, the readable kernel, and the choice among the three.
//   bytes       q and out once, k and v of every context once a query head and row: with grouped
//               heads and many rows of one prompt that is far more than the floor below
//   operations  4 * heads * head_dim for every pair of a row and a position it attends to
//   floor       decode: 2 * context * kv_heads * head_dim * cache size / bandwidth, each k and v read
//               once (attention_decode.cu); prefill: operations / rate (attention_prefill.cu)
//
//   kernel1  A thread block a row and head. Tiles of 128 positions: each thread scores one position,
//            then each thread adds up one element of the output. Any head_dim up to 256, any types.
#include "kernels/ops/cuda/attention_shape.cuh"

namespace oomlab::kernel {
namespace {

using number::from_float;
using number::to_float;

constexpr unsigned kThreads = 128;
constexpr u32 kDimMax = 256;

__device__ inline float block_max(float x) {
    __shared__ float of_warp[kThreads / kWarp];
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = x;
    __syncthreads();
    for (unsigned w = 0; w < kThreads / kWarp; ++w) x = fmaxf(x, of_warp[w]);
    __syncthreads();
    return x;
}

template <class T, class C>
__global__ void __launch_bounds__(kThreads, 8) attention_kernel1(AttentionShape<T, C> s) {
    __shared__ float q[kDimMax];
    __shared__ float weight[kThreads];
    const u32 row = blockIdx.x / s.heads, head = blockIdx.x % s.heads;
    const u32 kv_head = head / (s.heads / s.kv_heads);
    const u32 seq = sequence_of(s.row_begin, s.seqs, row);
    const u32 end = static_cast<u32>(s.row_begin[seq + 1]);
    const u32 last = static_cast<u32>(s.context_len[seq]) - (end - row);
    const u32 t = threadIdx.x;
    for (u32 i = t; i < s.head_dim; i += kThreads) q[i] = to_float(s.q_of(row, head)[i]) * s.scale;
    float sum[2] = {0.0f, 0.0f};   // elements t and t + 128 of the output
    body::OnlineSoftmax state;
    __syncthreads();
    for (u32 tile = s.first_position(last); tile <= last; tile += kThreads) {
        const u32 count = last + 1 - tile < kThreads ? last + 1 - tile : kThreads;
        float score = -INFINITY;
        if (t < count) {
            const C* key = s.cache + s.key_offset(seq, tile + t, kv_head);
            score = 0.0f;
            for (u32 i = 0; i < s.head_dim; ++i) score += q[i] * to_float(key[i]);
        }
        const float max = fmaxf(state.max, block_max(score));
        const float keep = expf(state.max - max);
        weight[t] = expf(score - max);   // 0 beyond the context
        state.sum = state.sum * keep + block_sum(weight[t]);
        state.max = max;
        for (u32 part = 0; part < 2; ++part) {
            const u32 i = t + part * kThreads;
            if (i >= s.head_dim) continue;
            sum[part] *= keep;
            for (u32 p = 0; p < count; ++p) {
                const C* value = s.cache + s.key_offset(seq, tile + p, kv_head) + s.value_step();
                sum[part] += weight[p] * to_float(value[i]);
            }
        }
        __syncthreads();
    }
    T* out = s.out_of(row, head);
    for (u32 part = 0; part < 2; ++part) {
        const u32 i = t + part * kThreads;
        if (i < s.head_dim) out[i] = from_float<T>(sum[part] / state.sum);
    }
}

// --------------------------------------------------------------------------------------------------

template <class T, class C>
int readable_as(const AttentionArgs& a, void* stream) {
    return launch(attention_kernel1<T, C>, blocks_for(a.rows * a.heads, 1), kThreads, stream,
                  shape_of<T, C>(a));
}

template <class T, class C>
void list_as(KernelList& list) {
    list.push_back({"attention_kernel1", reinterpret_cast<const void*>(&attention_kernel1<T, C>)});
}

}  // namespace

int attention(const AttentionArgs& a, Version version, Workspace work, void* stream) {
    constexpr u64 kSideMax = u64{1} << 31;
    if (a.head_dim > kDimMax || a.kv_heads == 0 || a.heads % a.kv_heads != 0 || a.block_size == 0 ||
        a.rows * a.heads >= kSideMax || a.max_blocks * a.block_size >= kSideMax) {
        return kInvalidValue;
    }
    // A sequence of one row is a decode. Where every sequence is one, there is no prefill to start.
    const bool has_prefill = a.rows > a.seqs;
    if (version == Version::fast && decode_takes(a) && (!has_prefill || prefill_takes(a))) {
        if (const int error = attention_decode(a, work, stream)) return error;
        return has_prefill ? attention_prefill(a, stream) : 0;
    }
    return with_cache(a.type, a.cache_type, [&](auto t, auto c) {
        return readable_as<decltype(t), decltype(c)>(a, stream);
    });
}

void list_attention(KernelList& list) {
    list_as<float, float>(list);
    list_as<float, number::fp8>(list);
    list_as<number::f16, number::f16>(list);
    list_as<number::f16, number::fp8>(list);
    list_as<number::bf16, number::bf16>(list);
    list_as<number::bf16, number::fp8>(list);
}

}  // namespace oomlab::kernel
