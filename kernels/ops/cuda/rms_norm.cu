// RMS norm: out = x / sqrt(mean(x^2) + epsilon) * weight, where x is in, or residual += in.
//   bytes       rows * width * size * (2, or 4 with a residual), and the weight once
//   operations  4 an element
//   floor       bytes / bandwidth: at 4 operations for 4 to 8 bytes no card is bound by arithmetic
//
//   kernel1  a thread block a row, read twice: once for the sum of squares, once for the result
//   kernel2  the row stays in registers between the two, so that every byte moves once; 16 bytes a load
#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

using number::from_float;
using number::to_float;

template <class T>
__global__ void rms_norm_kernel1(const T* in, T* residual, const T* weight, T* out, u64 width,
                                 float epsilon) {
    const T* x = in + blockIdx.x * width;   // [width]
    T* y = out + blockIdx.x * width;
    float squares = 0.0f;
    if (residual != nullptr) {
        T* sum = residual + blockIdx.x * width;
        for (u64 i = threadIdx.x; i < width; i += blockDim.x) {
            sum[i] = from_float<T>(to_float(sum[i]) + to_float(x[i]));
        }
        x = sum;   // each thread reads again what it wrote itself
    }
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) squares += to_float(x[i]) * to_float(x[i]);
    const float factor = body::rms_factor(block_sum(squares), width, epsilon);
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) {
        y[i] = from_float<T>(body::rms_element(to_float(x[i]), factor, to_float(weight[i])));
    }
}

// Each thread holds kHeld vectors of the row. REQUIRES: width a multiple of kVec<T>, and no larger
// than blockDim.x * kHeld * kVec<T>; all addresses aligned to 16 bytes.
constexpr int kHeld = 2;

template <class T>
__global__ void rms_norm_kernel2(const T* in, T* residual, const T* weight, T* out, u64 width,
                                 float epsilon) {
    constexpr int kEach = kVec<T>;
    using V = Vec<T, kEach>;
    const u64 row = blockIdx.x * width;
    V held[kHeld];
    float squares = 0.0f;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
        const u64 i = (static_cast<u64>(h) * blockDim.x + threadIdx.x) * kEach;
        if (i >= width) continue;
        held[h] = load<T, kEach>(in + row + i);
        if (residual != nullptr) {
            const V before = load<T, kEach>(residual + row + i);
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                held[h].x[e] = from_float<T>(to_float(before.x[e]) + to_float(held[h].x[e]));
            }
            store(residual + row + i, held[h]);
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) squares += to_float(held[h].x[e]) * to_float(held[h].x[e]);
    }
    const float factor = body::rms_factor(block_sum(squares), width, epsilon);
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
        const u64 i = (static_cast<u64>(h) * blockDim.x + threadIdx.x) * kEach;
        if (i >= width) continue;
        const V w = load<T, kEach>(weight + i);
        V y;
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            y.x[e] = from_float<T>(
                body::rms_element(to_float(held[h].x[e]), factor, to_float(w.x[e])));
        }
        store(out + row + i, y);
    }
}

// --------------------------------------------------------------------------------------------------

template <class T>
int rms_norm_as(const RmsNormArgs& a, Version version, void* stream) {
    const auto run = [&](auto kernel, unsigned threads) {
        return launch(kernel, blocks_for(a.rows, 1), threads, stream, at<T>(a.in),
                      at<T>(a.residual), at<T>(a.weight), at<T>(a.out), a.width, a.epsilon);
    };
    const u64 vectors = a.width / kVec<T>;
    const bool fits = a.width % kVec<T> == 0 && vectors <= 1024 * kHeld && aligned(a.in) &&
                      aligned(a.residual) && aligned(a.weight) && aligned(a.out);
    if (version == Version::fast && fits) {
        const u64 threads = round_up(div_ceil(vectors, kHeld), kWarp);
        return run(rms_norm_kernel2<T>, static_cast<unsigned>(threads));
    }
    return run(rms_norm_kernel1<T>, 256);
}

template <class T>
void list_as(KernelList& list) {
    list.push_back({"rms_norm_kernel1", reinterpret_cast<const void*>(&rms_norm_kernel1<T>)});
    list.push_back({"rms_norm_kernel2", reinterpret_cast<const void*>(&rms_norm_kernel2<T>)});
}

}  // namespace

int rms_norm(const RmsNormArgs& a, Version version, void* stream) {
    return with_float(a.type, [&](auto t) { return rms_norm_as<decltype(t)>(a, version, stream); });
}

void list_rms_norm(KernelList& list) {
    list_as<float>(list);
    list_as<number::f16>(list);
    list_as<number::bf16>(list);
}

}  // namespace oomlab::kernel
