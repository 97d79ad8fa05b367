// Prefill attention on tensor cores: the rows of a prompt (or of a chunk of one) against its context.
//   bytes       q and out once; k and v of the context once for each tile of 64 rows and each head
//   operations  4 * heads * head_dim for every pair of a row and a position it attends to
//   floor       operations / tensor rate; scores never leave the registers, so the scratch memory
//               that a naive version needs (rows * context a head) is not there at all
//
//   kernel2  A thread block takes 64 rows of one head, 16 rows a warp, and walks the context in tiles
//            of 64 positions that it stages in shared memory (fp8 is widened on the way). A warp holds
//            q, the scores and the sums in registers; see tensor_core.cuh for who holds what.
#include "kernels/ops/cuda/attention_shape.cuh"
#include "kernels/ops/cuda/tensor_core.cuh"

namespace oomlab::kernel {
namespace {

using number::from_float;
using number::to_float;

constexpr u32 kThreads = 128;
constexpr u32 kRows = 64;    // of q, a thread block
constexpr u32 kTile = 64;    // positions
constexpr u32 kPad = 8;      // elements: rows of a tile start in different banks

// The seq-th sequence's tile that thread block `index` works on; false: none is left.
struct Place {
    u32 seq, first_row, end_row;
};
__device__ inline bool find_place(const std::int32_t* row_begin, u32 seqs, u32 index, Place& place) {
    for (u32 seq = 0; seq < seqs; ++seq) {
        const u32 begin = static_cast<u32>(row_begin[seq]);
        const u32 end = static_cast<u32>(row_begin[seq + 1]);
        if (end - begin < 2) continue;   // a decode: the other kernel's work
        const u32 tiles = (end - begin + kRows - 1) / kRows;
        if (index < tiles) {
            place = {seq, begin + index * kRows, end};
            return true;
        }
        index -= tiles;
    }
    return false;
}

template <class T, class C, u32 kDim>
__global__ void __launch_bounds__(kThreads, 2) prefill_kernel2(AttentionShape<T, C> s) {
    alignas(16) __shared__ T keys[kTile][kDim + kPad];
    alignas(16) __shared__ T values[kTile][kDim + kPad];
    constexpr u32 kSteps = kDim / 16;   // of q times k
    constexpr u32 kParts = kDim / 8;    // columns of the output, 8 at a time
    constexpr u32 kCols = kTile / 8;    // columns of the scores, 8 at a time

    Place place;
    if (!find_place(s.row_begin, s.seqs, blockIdx.x, place)) return;   // the whole block leaves
    const u32 head = blockIdx.y;
    const u32 kv_head = head / (s.heads / s.kv_heads);
    const u32 warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const u32 g = lane / 4, t = lane % 4;

    // This lane's two rows and their positions; rows past the end repeat the last one.
    const u32 context = static_cast<u32>(s.context_len[place.seq]);
    u32 row[2], position[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
        const u32 wanted = place.first_row + warp * 16 + g + i * 8;
        row[i] = wanted < place.end_row ? wanted : place.end_row - 1;
        position[i] = context - (place.end_row - row[i]);
    }
    unsigned q[kSteps][4];
#pragma unroll
    for (u32 k = 0; k < kSteps; ++k) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            q[k][i] = load_pair(s.q_of(row[i % 2], head) + k * 16 + t * 2 + i / 2 * 8);
        }
    }
    float sum[kParts][4] = {};
    float max[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};

    // From the first position that the block's first row needs to the last of its last row.
    const u32 last_row =
        place.first_row + kRows < place.end_row ? place.first_row + kRows - 1 : place.end_row - 1;
    const u32 last = context - (place.end_row - last_row);
    const u32 start = s.first_position(context - (place.end_row - place.first_row));
    for (u32 tile = start / kTile * kTile; tile <= last; tile += kTile) {
        __syncthreads();
        for (u32 i = threadIdx.x; i < kTile * kParts; i += kThreads) {
            const u32 p = i / kParts, column = i % kParts * 8;
            // Beyond the context zeros are staged: 0 * 0 is harmless where 0 * garbage may be NaN.
            Vec<T, 8> k = {}, v = {};
            if (tile + p < context) {
                const u64 from = s.key_offset(place.seq, tile + p, kv_head) + column;
                const auto key = load<C, 8>(s.cache + from);
                const auto value = load<C, 8>(s.cache + from + s.value_step());
#pragma unroll
                for (u32 e = 0; e < 8; ++e) {
                    k.x[e] = from_float<T>(to_float(key.x[e]));
                    v.x[e] = from_float<T>(to_float(value.x[e]));
                }
            }
            store(&keys[p][column], k);
            store(&values[p][column], v);
        }
        __syncthreads();

        float score[kCols][4] = {};
#pragma unroll
        for (u32 n = 0; n < kCols; ++n) {
#pragma unroll
            for (u32 k = 0; k < kSteps; ++k) {
                const T* from = &keys[n * 8 + g][k * 16 + t * 2];
                const unsigned b[2] = {load_pair(from), load_pair(from + 8)};
                multiply_add(score[n], q[k], b, T{});
            }
        }
        // Scale, mask, and the running maximum of each of the lane's two rows.
        float new_max[2] = {max[0], max[1]};
#pragma unroll
        for (u32 n = 0; n < kCols; ++n) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                const u32 p = tile + n * 8 + t * 2 + i % 2;
                const u32 at_row = position[i / 2];
                const bool seen = p <= at_row && p >= s.first_position(at_row);
                score[n][i] = seen ? score[n][i] * s.scale : -INFINITY;
                new_max[i / 2] = fmaxf(new_max[i / 2], score[n][i]);
            }
        }
        float keep[2];
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            new_max[i] = fmaxf(new_max[i], __shfl_xor_sync(kAllLanes, new_max[i], 1));
            new_max[i] = fmaxf(new_max[i], __shfl_xor_sync(kAllLanes, new_max[i], 2));
            // A row that has seen nothing yet has no maximum: exp(-inf - -inf) must not be asked.
            const bool none = new_max[i] == -INFINITY;
            keep[i] = none ? 1.0f : expf(max[i] - new_max[i]);
            max[i] = new_max[i];
            total[i] *= keep[i];
        }
#pragma unroll
        for (u32 n = 0; n < kCols; ++n) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                score[n][i] = score[n][i] == -INFINITY ? 0.0f : expf(score[n][i] - max[i / 2]);
                total[i / 2] += score[n][i];
            }
        }
#pragma unroll
        for (u32 d = 0; d < kParts; ++d) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) sum[d][i] *= keep[i / 2];
        }
        // The scores of 16 positions are, as they lie, the left side of the next product.
#pragma unroll
        for (u32 n = 0; n < kCols; n += 2) {
            const unsigned a[4] = {pair_of<T>(score[n][0], score[n][1]),
                                   pair_of<T>(score[n][2], score[n][3]),
                                   pair_of<T>(score[n + 1][0], score[n + 1][1]),
                                   pair_of<T>(score[n + 1][2], score[n + 1][3])};
#pragma unroll
            for (u32 d = 0; d < kParts; ++d) {
                unsigned b[2];
                load_transposed(b, &values[n * 8 + lane % 16][d * 8]);
                multiply_add(sum[d], a, b, T{});
            }
        }
    }

#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
        total[i] += __shfl_xor_sync(kAllLanes, total[i], 1);
        total[i] += __shfl_xor_sync(kAllLanes, total[i], 2);
        const u32 wanted = place.first_row + warp * 16 + g + i * 8;
        if (wanted >= place.end_row) continue;
        T* out = s.out_of(row[i], head) + t * 2;
#pragma unroll
        for (u32 d = 0; d < kParts; ++d) {
            out[d * 8] = from_float<T>(sum[d][i * 2] / total[i]);
            out[d * 8 + 1] = from_float<T>(sum[d][i * 2 + 1] / total[i]);
        }
    }
}

// --------------------------------------------------------------------------------------------------

template <class T, class C>
int prefill_typed(const AttentionArgs& a, void* stream) {
    // Each sequence may end in a tile that is not full.
    const dim3 grid(static_cast<unsigned>(a.rows / kRows + a.seqs), static_cast<unsigned>(a.heads), 1);
    const auto shape = shape_of<T, C>(a);
    if (a.head_dim == 64) return launch(prefill_kernel2<T, C, 64>, grid, kThreads, stream, shape);
    return launch(prefill_kernel2<T, C, 128>, grid, kThreads, stream, shape);
}

template <class T, class C>
void list_as(KernelList& list) {
    list.push_back({"prefill_kernel2", reinterpret_cast<const void*>(&prefill_kernel2<T, C, 64>)});
    list.push_back({"prefill_kernel2", reinterpret_cast<const void*>(&prefill_kernel2<T, C, 128>)});
}

}  // namespace

bool prefill_takes(const AttentionArgs& a) { return decode_takes(a) && a.heads <= 65535; }

int attention_prefill(const AttentionArgs& a, void* stream) {
    const bool fp8 = a.cache_type == DType::fp8;
    if (a.type == DType::f16) {
        return fp8 ? prefill_typed<number::f16, number::fp8>(a, stream)
                   : prefill_typed<number::f16, number::f16>(a, stream);
    }
    return fp8 ? prefill_typed<number::bf16, number::fp8>(a, stream)
               : prefill_typed<number::bf16, number::bf16>(a, stream);
}

void list_attention_prefill(KernelList& list) {
    list_as<number::f16, number::f16>(list);
    list_as<number::f16, number::fp8>(list);
    list_as<number::bf16, number::bf16>(list);
    list_as<number::bf16, number::fp8>(list);
}

}  // namespace oomlab::kernel
