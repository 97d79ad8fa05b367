// Gated activation: out = silu(gate) * up, gate and up side by side in [rows, 2 * width].
//   bytes       3 * rows * width * size
//   operations  5 an element
//   floor       bytes / bandwidth
//
//   kernel1  a thread an element
//   kernel2  a thread 16 bytes of gate and 16 of up
#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

using number::from_float;
using number::to_float;

constexpr unsigned kThreads = 256;

template <class T>
__global__ void gated_act_kernel1(const T* gate_up, T* out, u64 rows, u64 width) {
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= rows * width) return;
    const T* gate = gate_up + i / width * 2 * width + i % width;
    out[i] = from_float<T>(body::silu(to_float(gate[0])) * to_float(gate[width]));
}

// REQUIRES: width a multiple of kVec<T>, addresses aligned to 16 bytes.
template <class T>
__global__ void gated_act_kernel2(const T* gate_up, T* out, u64 rows, u64 width) {
    constexpr int kEach = kVec<T>;
    const u64 i = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x) * kEach;
    if (i >= rows * width) return;
    const T* from = gate_up + i / width * 2 * width + i % width;
    const auto gate = load<T, kEach>(from);
    const auto up = load<T, kEach>(from + width);
    Vec<T, kEach> y;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
        y.x[e] = from_float<T>(body::silu(to_float(gate.x[e])) * to_float(up.x[e]));
    }
    store(out + i, y);
}

// --------------------------------------------------------------------------------------------------

template <class T>
int gated_act_as(const GatedActArgs& a, Version version, void* stream) {
    const u64 elements = a.rows * a.width;
    const bool fits = a.width % kVec<T> == 0 && aligned(a.gate_up) && aligned(a.out);
    if (version == Version::fast && fits) {
        return launch(gated_act_kernel2<T>, blocks_for(elements, kThreads * u64{kVec<T>}), kThreads,
                      stream, at<T>(a.gate_up), at<T>(a.out), a.rows, a.width);
    }
    return launch(gated_act_kernel1<T>, blocks_for(elements, kThreads), kThreads, stream,
                  at<T>(a.gate_up), at<T>(a.out), a.rows, a.width);
}

template <class T>
void list_as(KernelList& list) {
    list.push_back({"gated_act_kernel1", reinterpret_cast<const void*>(&gated_act_kernel1<T>)});
    list.push_back({"gated_act_kernel2", reinterpret_cast<const void*>(&gated_act_kernel2<T>)});
}

}  // namespace

int gated_act(const GatedActArgs& a, Version version, void* stream) {
    return with_float(a.type, [&](auto t) { return gated_act_as<decltype(t)>(a, version, stream); });
}

void list_gated_act(KernelList& list) {
    list_as<float>(list);
    list_as<number::f16>(list);
    list_as<number::bf16>(list);
}

}  // namespace oomlab::kernel
