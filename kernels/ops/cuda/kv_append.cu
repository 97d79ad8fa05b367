// KV append: k and v of each token go to their slot of the paged cache.
//   bytes       2 * rows * kv_heads * head_dim * (size + cache size), and 4 a row for the slot
//   operations  none, or a conversion to fp8
//   floor       bytes / bandwidth; a slot's k and v are each one contiguous stretch
//
//   kernel1  a thread block a row, an element a thread
//   kernel2  8 elements a thread
#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

using number::from_float;
using number::to_float;

template <class T, class C>
struct AppendShape {
    const T* qkv;                // [rows, (heads + 2 kv_heads) * head_dim]
    C* cache;                    // [kv_blocks, 2, block_size, kv_heads, head_dim]
    const std::int32_t* slots;   // [rows]
    u64 row_width, q_width, kv_width, block_size;
};

// Moves the row in units of kEach elements.
template <class T, class C, int kEach>
__global__ void kv_append_kernel(AppendShape<T, C> s) {
    const std::int32_t slot = s.slots[blockIdx.x];
    if (slot < 0) return;   // padding
    const u64 kv_block = static_cast<u64>(slot) / s.block_size;
    const u64 offset = static_cast<u64>(slot) % s.block_size;
    const T* keys = s.qkv + blockIdx.x * s.row_width + s.q_width;
    C* to_keys = s.cache + (kv_block * 2 * s.block_size + offset) * s.kv_width;
    C* to_values = to_keys + s.block_size * s.kv_width;
    for (u64 i = static_cast<u64>(threadIdx.x) * kEach; i < s.kv_width;
         i += static_cast<u64>(blockDim.x) * kEach) {
        const auto key = load<T, kEach>(keys + i);
        const auto value = load<T, kEach>(keys + s.kv_width + i);
        Vec<C, kEach> cached_key, cached_value;
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            cached_key.x[e] = from_float<C>(to_float(key.x[e]));
            cached_value.x[e] = from_float<C>(to_float(value.x[e]));
        }
        store(to_keys + i, cached_key);
        store(to_values + i, cached_value);
    }
}

// --------------------------------------------------------------------------------------------------

template <class T>
inline constexpr int kMany = sizeof(T) == 4 ? 4 : 8;   // 16 bytes of T at most

template <class T, class C>
int kv_append_as(const KvAppendArgs& a, Version version, void* stream) {
    const u64 kv_width = a.kv_heads * a.head_dim, q_width = a.heads * a.head_dim;
    const AppendShape<T, C> shape{at<T>(a.qkv), at<C>(a.cache), at<std::int32_t>(a.slots),
                                  q_width + 2 * kv_width, q_width, kv_width, a.block_size};
    const bool fits = kv_width % kMany<T> == 0 && q_width % kMany<T> == 0 && aligned(a.qkv) &&
                      aligned(a.cache);
    if (version == Version::fast && fits) {
        const u64 threads = round_up(div_ceil(kv_width, kMany<T>), kWarp);
        return launch(kv_append_kernel<T, C, kMany<T>>, blocks_for(a.rows, 1),
                      static_cast<unsigned>(threads < 256 ? threads : 256), stream, shape);
    }
    return launch(kv_append_kernel<T, C, 1>, blocks_for(a.rows, 1), 256, stream, shape);
}

template <class T, class C>
void list_as(KernelList& list) {
    list.push_back({"kv_append_kernel1", reinterpret_cast<const void*>(&kv_append_kernel<T, C, 1>)});
    list.push_back(
        {"kv_append_kernel2", reinterpret_cast<const void*>(&kv_append_kernel<T, C, kMany<T>>)});
}

}  // namespace

int kv_append(const KvAppendArgs& a, Version version, void* stream) {
    return with_cache(a.type, a.cache_type, [&](auto t, auto c) {
        return kv_append_as<decltype(t), decltype(c)>(a, version, stream);
    });
}

void list_kv_append(KernelList& list) {
    list_as<float, float>(list);
    list_as<float, number::fp8>(list);
    list_as<number::f16, number::f16>(list);
    list_as<number::f16, number::fp8>(list);
    list_as<number::bf16, number::bf16>(list);
    list_as<number::bf16, number::fp8>(list);
}

}  // namespace oomlab::kernel
