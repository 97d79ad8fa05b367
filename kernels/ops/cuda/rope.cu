// Rotary embedding of q and k in place, half-split: element i turns with element i + head_dim/2.
//   bytes       2 * rows * (heads + kv_heads) * head_dim * size, and 4 a row for the position
//   operations  3 an element, and a power, a sine and a cosine for each angle
//   floor       bytes / bandwidth, if the angles are worked out once a row and not once a head
//
//   kernel1  a thread a pair, which works out its own angle
//   kernel2  a thread block a row; a thread keeps its angle and walks the heads
#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

using number::from_float;
using number::to_float;

template <class T>
struct RopeShape {
    T* qkv;                          // [rows, (heads + 2 kv_heads) * head_dim]
    const std::int32_t* positions;   // [rows]
    u64 rows, turned_heads, row_width, head_dim;
    float theta;
};

template <class T>
__global__ void rope_kernel1(RopeShape<T> s) {
    const u64 half = s.head_dim / 2;
    const u64 pair = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (pair >= s.rows * s.turned_heads * half) return;
    const u64 i = pair % half;
    const u64 head = pair / half % s.turned_heads;
    const u64 row = pair / half / s.turned_heads;
    T* x = s.qkv + row * s.row_width + head * s.head_dim + i;
    const body::Pair turned =
        body::rope_pair({to_float(x[0]), to_float(x[half])}, s.positions[row],
                        body::rope_frequency(i, s.head_dim, s.theta));
    x[0] = from_float<T>(turned.first);
    x[half] = from_float<T>(turned.second);
}

// threadIdx.x: the pair i within a head; threadIdx.y: the first head of those it walks.
template <class T>
__global__ void rope_kernel2(RopeShape<T> s) {
    const u64 half = s.head_dim / 2;
    const u64 i = threadIdx.x;
    const float angle = static_cast<float>(s.positions[blockIdx.x]) *
                        body::rope_frequency(i, s.head_dim, s.theta);
    const float c = cosf(angle);
    const float sn = sinf(angle);
    T* row = s.qkv + blockIdx.x * s.row_width + i;
    for (u64 head = threadIdx.y; head < s.turned_heads; head += blockDim.y) {
        T* x = row + head * s.head_dim;
        const float first = to_float(x[0]), second = to_float(x[half]);
        x[0] = from_float<T>(first * c - second * sn);
        x[half] = from_float<T>(second * c + first * sn);
    }
}

// --------------------------------------------------------------------------------------------------

template <class T>
int rope_as(const RopeArgs& a, Version version, void* stream) {
    const RopeShape<T> shape{at<T>(a.qkv), at<std::int32_t>(a.positions), a.rows,
                             a.heads + a.kv_heads, (a.heads + 2 * a.kv_heads) * a.head_dim,
                             a.head_dim, a.theta};
    const u64 half = a.head_dim / 2;
    if (version == Version::fast && half > 0 && half <= 256) {
        const dim3 block(static_cast<unsigned>(half), static_cast<unsigned>(256 / half), 1);
        return launch(rope_kernel2<T>, blocks_for(a.rows, 1), block, stream, shape);
    }
    return launch(rope_kernel1<T>, blocks_for(a.rows * shape.turned_heads * half, 256), 256, stream,
                  shape);
}

template <class T>
void list_as(KernelList& list) {
    list.push_back({"rope_kernel1", reinterpret_cast<const void*>(&rope_kernel1<T>)});
    list.push_back({"rope_kernel2", reinterpret_cast<const void*>(&rope_kernel2<T>)});
}

}  // namespace

int rope(const RopeArgs& a, Version version, void* stream) {
    return with_float(a.type, [&](auto t) { return rope_as<decltype(t)>(a, version, stream); });
}

void list_rope(KernelList& list) {
    list_as<float>(list);
    list_as<number::f16>(list);
    list_as<number::bf16>(list);
}

}  // namespace oomlab::kernel
