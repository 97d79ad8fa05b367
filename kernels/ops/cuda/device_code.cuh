// What every kernel file stands on: launching, vectors of 16 bytes, sums over a warp and a thread
// block, and the choice of a C++ type for a DType.
//
// With OOMLAB_EMULATOR defined (to a header) the same files compile as plain C++ and the kernels run
// on the host, thread by thread: tests/ops holds every kernel against the host ops that way, without
// a GPU.
#pragma once

#ifdef OOMLAB_EMULATOR
#include OOMLAB_EMULATOR
#else
#include <cuda_runtime.h>

namespace oomlab::kernel {
// Returns the number of the launch's own error, read before any other call.
template <class... P, class... A>
int launch(void (*kernel)(P...), dim3 grid, dim3 block, void* stream, A... arguments) {
    kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(static_cast<P>(arguments)...);
    return static_cast<int>(cudaGetLastError());
}
}  // namespace oomlab::kernel
#endif

#include <algorithm>

#include "kernels/ops/bodies/elementwise.hpp"
#include "kernels/ops/bodies/paged.hpp"
#include "kernels/ops/bodies/softmax.hpp"
#include "kernels/ops/cuda/kernels.hpp"

namespace oomlab::kernel {

inline constexpr int kInvalidValue = 1, kNotSupported = 801;   // cudaError_t
inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// N elements that travel in one instruction. REQUIRES: an address aligned to the whole.
template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
    T x[N];
};
template <class T>
inline constexpr int kVec = 16 / sizeof(T);   // elements of T in 16 bytes

template <class T, int N>
__device__ inline Vec<T, N> load(const T* from) {
    return *reinterpret_cast<const Vec<T, N>*>(from);
}
template <class T, int N>
__device__ inline void store(T* to, const Vec<T, N>& v) {
    *reinterpret_cast<Vec<T, N>*>(to) = v;
}

__device__ inline float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
    return x;
}

// The sum over a thread block of whole warps, to every thread. Its order is fixed.
__device__ inline float block_sum(float x) {
    __shared__ float of_warp[32];
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    x = warp_sum(x);
    if (lane == 0) of_warp[warp] = x;
    __syncthreads();
    x = warp_sum(lane < blockDim.x / kWarp ? of_warp[lane] : 0.0f);
    __syncthreads();   // of_warp may be used again
    return x;
}

__device__ inline body::Candidate warp_best(body::Candidate c) {
    for (int step = 16; step > 0; step /= 2) {
        const body::Candidate other{__shfl_xor_sync(kAllLanes, c.logit, step),
                                    __shfl_xor_sync(kAllLanes, c.id, step)};
        c = body::better(c, other);
    }
    return c;
}

template <class T>
T* at(u64 address) {
    return reinterpret_cast<T*>(address);
}

// Activations: f(T{}) for f32, f16 and bf16; anything else is an invalid value.
template <class F>
int with_float(DType type, F&& f) {
    switch (type) {
        case DType::f32: return f(float{});
        case DType::f16: return f(number::f16{});
        case DType::bf16: return f(number::bf16{});
        default: return kInvalidValue;
    }
}
// Activations and cache: f(T{}, C{}) where the cache has the activations' type or is fp8.
template <class F>
int with_cache(DType type, DType cache_type, F&& f) {
    return with_float(type, [&](auto t) {
        if (cache_type == DType::fp8) return f(t, number::fp8{});
        return cache_type == type ? f(t, t) : kInvalidValue;
    });
}

inline bool aligned(u64 address) { return address % 16 == 0; }
inline unsigned blocks_for(u64 n, u64 each) {
    const u64 blocks = (n + each - 1) / each;
    return static_cast<unsigned>(blocks < 0x7fffffff ? blocks : 0x7fffffff);
}

}  // namespace oomlab::kernel
