// Fill: element i is a hash of seed and i, scaled.
//   bytes       elements * size, written
//   operations  about 25 integer instructions an element (three 64-bit products)
//   floor       bytes / bandwidth; on cards above 2 TB/s the hash is the limit, not the memory
//
//   kernel1  a thread an element
//   kernel2  a thread 16 bytes, stored at once
#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

constexpr unsigned kThreads = 256;

template <class T>
__global__ void fill_kernel1(T* out, u64 elements, u64 seed, float scale) {
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < elements) out[i] = body::fill_element<T>(seed, i, scale);
}

template <class T>
__global__ void fill_kernel2(T* out, u64 elements, u64 seed, float scale) {
    constexpr int kEach = kVec<T>;
    const u64 first = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x) * kEach;
    if (first + kEach <= elements) {
        Vec<T, kEach> v;
#pragma unroll
        for (int i = 0; i < kEach; ++i) v.x[i] = body::fill_element<T>(seed, first + i, scale);
        store(out + first, v);
    } else {
        for (u64 i = first; i < elements; ++i) out[i] = body::fill_element<T>(seed, i, scale);
    }
}

// --------------------------------------------------------------------------------------------------

template <class T>
int fill_as(const FillArgs& a, Version version, void* stream) {
    T* out = at<T>(a.out);
    if (version == Version::fast && aligned(a.out)) {
        const u64 each = static_cast<u64>(kVec<T>) * kThreads;
        return launch(fill_kernel2<T>, blocks_for(a.elements, each), kThreads, stream, out,
                      a.elements, a.seed, a.scale);
    }
    return launch(fill_kernel1<T>, blocks_for(a.elements, kThreads), kThreads, stream, out,
                  a.elements, a.seed, a.scale);
}

template <class T>
void list_as(KernelList& list) {
    list.push_back({"fill_kernel1", reinterpret_cast<const void*>(&fill_kernel1<T>)});
    list.push_back({"fill_kernel2", reinterpret_cast<const void*>(&fill_kernel2<T>)});
}

}  // namespace

int fill(const FillArgs& a, Version version, void* stream) {
    switch (a.type) {
        case DType::f32: return fill_as<float>(a, version, stream);
        case DType::f16: return fill_as<number::f16>(a, version, stream);
        case DType::bf16: return fill_as<number::bf16>(a, version, stream);
        case DType::i8: return fill_as<std::int8_t>(a, version, stream);
        case DType::fp8: return fill_as<number::fp8>(a, version, stream);
        case DType::i32: return fill_as<std::int32_t>(a, version, stream);
    }
    return kInvalidValue;
}

void list_fill(KernelList& list) {
    list_as<float>(list);
    list_as<number::f16>(list);
    list_as<number::bf16>(list);
    list_as<std::int8_t>(list);
    list_as<number::fp8>(list);
    list_as<std::int32_t>(list);
}

}  // namespace oomlab::kernel
