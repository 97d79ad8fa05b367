// Paged decode attention: one new token a sequence against its whole context, split over the context.
//   bytes       2 * context * kv_heads * head_dim * cache size a sequence, read once; q and out besides
//   operations  4 * heads * head_dim * context: 1 to 8 a byte, so memory is the limit
//   floor       bytes / bandwidth
//
//   kernel2  A thread block takes one kv head of one sequence, all query heads that share it (so k and
//            v are read once for them), and one split of the context. Threads work in teams of
//            head_dim/8, 16 bytes of a key a thread. For a tile of 128 positions: score them, update
//            the running maximum and sum of each head, add up the values.
//   kernel3  joins the splits of a head, in order.
#include "kernels/ops/cuda/attention_shape.cuh"

namespace oomlab::kernel {
namespace {

using number::from_float;
using number::to_float;

constexpr u32 kThreads = 128;
constexpr u32 kTile = 128;       // positions
constexpr u32 kEach = 8;         // elements of a key that a thread reads at once
constexpr u64 kSplitsMax = 64;
constexpr u64 kBlocksWanted = 1024;

// One split's result for one head: its maximum, its sum, and head_dim sums of values.
struct Partials {
    float* state;    // [seqs, heads, splits, 2]
    float* values;   // [seqs, heads, splits, head_dim]
    u32 splits;
};

// Thread blocks that should fit on a multiprocessor: as few registers as that asks for, none spilled.
constexpr u32 resident(u32 heads) { return heads == 1 ? 8 : heads <= 4 ? 4 : 2; }

// blockIdx.x: (seq * kv_heads + kv_head) * groups + group; blockIdx.y: the split.
template <class T, class C, u32 kDim, u32 kHeads>
__global__ void __launch_bounds__(kThreads, resident(kHeads))
decode_kernel2(AttentionShape<T, C> s, u32 groups, Partials partials) {
    constexpr u32 kTeam = kDim / kEach;          // threads that share a key
    constexpr u32 kTeams = kThreads / kTeam;
    __shared__ float weights[kHeads][kTile];
    __shared__ float keep[kHeads];
    __shared__ float joined[kHeads][kDim];

    const u32 group = blockIdx.x % groups;
    const u32 kv_head = blockIdx.x / groups % s.kv_heads;
    const u32 seq = blockIdx.x / groups / s.kv_heads;
    const u32 row = static_cast<u32>(s.row_begin[seq]);
    if (static_cast<u32>(s.row_begin[seq + 1]) != row + 1) return;   // a prompt: prefill's work
    const u32 per_kv_head = s.heads / s.kv_heads;
    const u32 first_head = kv_head * per_kv_head + group * kHeads;
    const u32 left = per_kv_head - group * kHeads;
    const u32 heads = left < kHeads ? left : kHeads;

    const u32 context = static_cast<u32>(s.context_len[seq]);
    const u32 start = s.first_position(context - 1);
    const u32 each = (context - start + partials.splits - 1) / partials.splits;
    const u32 first = start + blockIdx.y * each;
    const u32 last = first + each < context ? first + each : context;   // one past

    const u32 lane = threadIdx.x % kTeam, team = threadIdx.x / kTeam;
    const u32 warp = threadIdx.x / kWarp, warp_lane = threadIdx.x % kWarp;
    float q[kHeads][kEach];
#pragma unroll
    for (u32 h = 0; h < kHeads; ++h) {
        const bool used = h < heads;
        const auto v = load<T, kEach>(s.q_of(row, first_head + (used ? h : 0)) + lane * kEach);
#pragma unroll
        for (u32 e = 0; e < kEach; ++e) q[h][e] = used ? to_float(v.x[e]) * s.scale : 0.0f;
    }
    float sum[kHeads][kEach] = {};
    // Warp w keeps the running maximum and sum of heads w and w + 4.
    constexpr u32 kWarps = kThreads / kWarp;
    static_assert(kHeads <= 2 * kWarps);
    body::OnlineSoftmax state[2];

    for (u32 tile = first; tile < last; tile += kTile) {
        const u32 count = last - tile < kTile ? last - tile : kTile;
        for (u32 p = team; p < kTile; p += kTeams) {   // whole teams go together
            float score[kHeads] = {};
            if (p < count) {
                const auto key =
                    load<C, kEach>(s.cache + s.key_offset(seq, tile + p, kv_head) + lane * kEach);
#pragma unroll
                for (u32 e = 0; e < kEach; ++e) {
                    const float k = to_float(key.x[e]);
#pragma unroll
                    for (u32 h = 0; h < kHeads; ++h) score[h] += q[h][e] * k;
                }
            }
#pragma unroll
            for (u32 h = 0; h < kHeads; ++h) {
#pragma unroll
                for (u32 step = kTeam / 2; step > 0; step /= 2) {
                    score[h] += __shfl_xor_sync(kAllLanes, score[h], static_cast<int>(step));
                }
                if (lane == 0) weights[h][p] = p < count ? score[h] : -INFINITY;
            }
        }
        __syncthreads();
#pragma unroll
        for (u32 turn = 0; turn < 2; ++turn) {
            const u32 h = warp + turn * kWarps;
            if (h >= kHeads) break;
            body::OnlineSoftmax& mine = state[turn];
            float max = mine.max;
            for (u32 p = warp_lane; p < kTile; p += kWarp) {
                max = fmaxf(max, weights[h][p]);
            }
            for (int step = 16; step > 0; step /= 2) {
                max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, step));
            }
            float total = 0.0f;
            for (u32 p = warp_lane; p < kTile; p += kWarp) {
                weights[h][p] = expf(weights[h][p] - max);
                total += weights[h][p];
            }
            total = warp_sum(total);
            const float factor = expf(mine.max - max);
            mine.sum = mine.sum * factor + total;
            mine.max = max;
            if (warp_lane == 0) keep[h] = factor;
        }
        __syncthreads();
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) {
            const float factor = keep[h];
#pragma unroll
            for (u32 e = 0; e < kEach; ++e) sum[h][e] *= factor;
        }
        // Each team reads the weights of the positions that it scored itself and overwrites no others in
        // the next tile, so no barrier is needed in between.
        for (u32 p = team; p < count; p += kTeams) {
            const auto value = load<C, kEach>(s.cache + s.key_offset(seq, tile + p, kv_head) +
                                              s.value_step() + lane * kEach);
#pragma unroll
            for (u32 e = 0; e < kEach; ++e) {
                const float v = to_float(value.x[e]);
#pragma unroll
                for (u32 h = 0; h < kHeads; ++h) sum[h][e] += weights[h][p] * v;
            }
        }
    }

    // The teams' sums, joined in order.
    for (u32 turn = 0; turn < kTeams; ++turn) {
        if (team == turn) {
#pragma unroll
            for (u32 h = 0; h < kHeads; ++h) {
#pragma unroll
                for (u32 e = 0; e < kEach; ++e) {
                    float& to = joined[h][lane * kEach + e];
                    to = turn == 0 ? sum[h][e] : to + sum[h][e];
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 turn = 0; turn < 2; ++turn) {
        const u32 h = warp + turn * kWarps;
        if (h >= heads) break;
        const body::OnlineSoftmax& mine = state[turn];
        const u32 head = first_head + h;
        if (partials.splits == 1) {
            T* out = s.out_of(row, head);
            for (u32 i = warp_lane; i < kDim; i += kWarp) {
                out[i] = from_float<T>(joined[h][i] / mine.sum);
            }
            continue;
        }
        const u64 slot =
            (static_cast<u64>(seq) * s.heads + head) * partials.splits + blockIdx.y;
        for (u32 i = warp_lane; i < kDim; i += kWarp) {
            partials.values[slot * kDim + i] = joined[h][i];
        }
        if (warp_lane == 0) {
            partials.state[slot * 2] = mine.max;
            partials.state[slot * 2 + 1] = mine.sum;
        }
    }
}

// blockIdx.x: seq * heads + head; a thread an element.
template <class T, class C>
__global__ void decode_kernel3(AttentionShape<T, C> s, Partials partials) {
    const u32 seq = blockIdx.x / s.heads, head = blockIdx.x % s.heads;
    const u32 row = static_cast<u32>(s.row_begin[seq]);
    if (static_cast<u32>(s.row_begin[seq + 1]) != row + 1) return;
    const u64 slot = (static_cast<u64>(seq) * s.heads + head) * partials.splits;
    body::OnlineSoftmax state;
    float sum = 0.0f;
    for (u32 split = 0; split < partials.splits; ++split) {
        const body::OnlineSoftmax part{partials.state[(slot + split) * 2],
                                       partials.state[(slot + split) * 2 + 1]};
        const body::SoftmaxStep step = body::softmax_join(state, part);
        if (step.weight != 0.0f) {   // an empty split left no values
            sum = sum * step.keep +
                  partials.values[(slot + split) * s.head_dim + threadIdx.x] * step.weight;
        }
    }
    s.out_of(row, head)[threadIdx.x] = from_float<T>(sum / state.sum);
}

// --------------------------------------------------------------------------------------------------

template <class T, class C, u32 kDim, u32 kHeads>
int decode_as(const AttentionArgs& a, Workspace work, void* stream) {
    const u64 groups = div_ceil(a.heads / a.kv_heads, kHeads);
    const u64 blocks = a.seqs * a.kv_heads * groups;
    // Enough thread blocks to fill a card, splits of one tile at least, and what the workspace holds.
    const u64 split_bytes = a.seqs * a.heads * (a.head_dim + 2) * sizeof(float);
    u64 splits = div_ceil(kBlocksWanted, blocks);
    splits = std::min({splits, kSplitsMax, div_ceil(a.max_blocks * a.block_size, kTile),
                       work.bytes / split_bytes});
    splits = std::max<u64>(splits, 1);
    float* state = at<float>(work.address);
    const Partials partials{state, state + a.seqs * a.heads * splits * 2, static_cast<u32>(splits)};
    const auto shape = shape_of<T, C>(a);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(splits), 1);
    if (const int error = launch(decode_kernel2<T, C, kDim, kHeads>, grid, kThreads, stream, shape,
                                 static_cast<u32>(groups), partials)) {
        return error;
    }
    if (splits == 1) return 0;
    return launch(decode_kernel3<T, C>, blocks_for(a.seqs * a.heads, 1), kDim, stream, shape,
                  partials);
}

template <class T, class C>
int decode_typed(const AttentionArgs& a, Workspace work, void* stream) {
    const u64 group = a.heads / a.kv_heads;
    if (a.head_dim == 64) {
        if (group == 1) return decode_as<T, C, 64, 1>(a, work, stream);
        if (group <= 4) return decode_as<T, C, 64, 4>(a, work, stream);
        return decode_as<T, C, 64, 8>(a, work, stream);
    }
    if (group == 1) return decode_as<T, C, 128, 1>(a, work, stream);
    if (group <= 4) return decode_as<T, C, 128, 4>(a, work, stream);
    return decode_as<T, C, 128, 8>(a, work, stream);
}

template <class T, class C, u32 kDim>
void list_dim(KernelList& list) {
    list.push_back({"decode_kernel2", reinterpret_cast<const void*>(&decode_kernel2<T, C, kDim, 1>)});
    list.push_back({"decode_kernel2", reinterpret_cast<const void*>(&decode_kernel2<T, C, kDim, 4>)});
    list.push_back({"decode_kernel2", reinterpret_cast<const void*>(&decode_kernel2<T, C, kDim, 8>)});
}
template <class T, class C>
void list_as(KernelList& list) {
    list_dim<T, C, 64>(list);
    list_dim<T, C, 128>(list);
    list.push_back({"decode_kernel3", reinterpret_cast<const void*>(&decode_kernel3<T, C>)});
}

}  // namespace

bool decode_takes(const AttentionArgs& a) {
    return (a.type == DType::bf16 || a.type == DType::f16) &&
           (a.cache_type == a.type || a.cache_type == DType::fp8) &&
           (a.head_dim == 64 || a.head_dim == 128) && aligned(a.qkv) && aligned(a.cache);
}

int attention_decode(const AttentionArgs& a, Workspace work, void* stream) {
    const bool fp8 = a.cache_type == DType::fp8;
    if (a.type == DType::f16) {
        return fp8 ? decode_typed<number::f16, number::fp8>(a, work, stream)
                   : decode_typed<number::f16, number::f16>(a, work, stream);
    }
    return fp8 ? decode_typed<number::bf16, number::fp8>(a, work, stream)
               : decode_typed<number::bf16, number::bf16>(a, work, stream);
}

void list_attention_decode(KernelList& list) {
    list_as<number::f16, number::f16>(list);
    list_as<number::f16, number::fp8>(list);
    list_as<number::bf16, number::bf16>(list);
    list_as<number::bf16, number::fp8>(list);
}

}  // namespace oomlab::kernel
