// The number formats of tensors, for host and device code alike: a value type for each format and
// its conversion to and from float. All conversions round to nearest, ties to even; fp8 is E4M3 as
// KV caches use it (no infinity, 448 is the largest value and larger ones saturate to it).
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define OOMLAB_BOTH __host__ __device__
#else
#define OOMLAB_BOTH
#endif

namespace oomlab::number {

struct f16 {
    std::uint16_t bits;
};
struct bf16 {
    std::uint16_t bits;
};
struct fp8 {
    std::uint8_t bits;
};
static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2 && sizeof(fp8) == 1);

OOMLAB_BOTH inline std::uint32_t bits_of(float x) {
    std::uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
OOMLAB_BOTH inline float float_of(std::uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

OOMLAB_BOTH inline float to_float(float x) { return x; }
OOMLAB_BOTH inline float to_float(std::int8_t x) { return static_cast<float>(x); }
OOMLAB_BOTH inline float to_float(std::int32_t x) { return static_cast<float>(x); }
OOMLAB_BOTH inline float to_float(bf16 x) {
    return float_of(static_cast<std::uint32_t>(x.bits) << 16);
}

OOMLAB_BOTH inline float to_float(f16 x) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(x.bits));
#else
    const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
    const std::uint32_t exponent = (x.bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = x.bits & 0x3ffu;
    if (exponent == 0x1f) return float_of(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {   // subnormal: a count of 2^-24
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
        return float_of(sign | bits_of(magnitude));
    }
    return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
#endif
}

OOMLAB_BOTH inline float to_float(fp8 x) {
    const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x80u) << 24;
    const std::uint32_t magnitude = x.bits & 0x7fu;
    if (magnitude == 0x7f) return float_of(sign | 0x7fc00000u);
    // E4M3 placed into the top of a float's exponent and mantissa is 2^120 too small; the product
    // also gets subnormals right.
    return float_of(sign | bits_of(float_of(magnitude << 20) * 0x1p120f));
}

// from_float<T>(x)
template <class T>
struct FromFloat;

template <>
struct FromFloat<float> {
    OOMLAB_BOTH static float make(float x) { return x; }
};
template <>
struct FromFloat<bf16> {
    OOMLAB_BOTH static bf16 make(float x) {
        const std::uint32_t u = bits_of(x);
        if ((u & 0x7fffffffu) > 0x7f800000u) {
            return {static_cast<std::uint16_t>((u >> 16) | 0x40u)};   // a quiet NaN stays one
        }
        return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
    }
};
template <>
struct FromFloat<f16> {
    OOMLAB_BOTH static f16 make(float x) {
#ifdef __CUDA_ARCH__
        return {__half_as_ushort(__float2half_rn(x))};
#else
        const std::uint32_t u = bits_of(x);
        const std::uint32_t sign = (u >> 16) & 0x8000u;
        std::uint32_t a = u & 0x7fffffffu;
        if (a > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
        if (a >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};   // 65520 and up
        if (a < 0x38800000u) {   // below 2^-14: adding 0.5 rounds to a multiple of 2^-24
            return {static_cast<std::uint16_t>(sign | (bits_of(float_of(a) + 0.5f) - 0x3f000000u))};
        }
        a += 0xfffu + ((a >> 13) & 1u);
        return {static_cast<std::uint16_t>(sign | ((a - 0x38000000u) >> 13))};
#endif
    }
};
template <>
struct FromFloat<fp8> {
    OOMLAB_BOTH static fp8 make(float x) {
        const std::uint32_t u = bits_of(x);
        const std::uint32_t sign = (u >> 24) & 0x80u;
        std::uint32_t a = u & 0x7fffffffu;
        if (a > 0x7f800000u) return {static_cast<std::uint8_t>(sign | 0x7fu)};
        if (a >= 0x43e00000u) return {static_cast<std::uint8_t>(sign | 0x7eu)};   // 448 and up
        if (a < 0x3c800000u) {   // below 2^-6: adding 2^14 rounds to a multiple of 2^-9
            return {static_cast<std::uint8_t>(sign | (bits_of(float_of(a) + 16384.0f) - 0x46800000u))};
        }
        a += 0x7ffffu + ((a >> 20) & 1u);
        return {static_cast<std::uint8_t>(sign | ((a - 0x3c000000u) >> 20))};
    }
};
template <>
struct FromFloat<std::int8_t> {
    OOMLAB_BOTH static std::int8_t make(float x) {
        const float limited = x > 127.0f ? 127.0f : (x < -127.0f ? -127.0f : x);
        return static_cast<std::int8_t>(limited + (limited < 0 ? -0.5f : 0.5f));
    }
};
template <>
struct FromFloat<std::int32_t> {
    OOMLAB_BOTH static std::int32_t make(float x) {
        return static_cast<std::int32_t>(x + (x < 0 ? -0.5f : 0.5f));
    }
};

template <class T>
OOMLAB_BOTH inline T from_float(float x) {
    return FromFloat<T>::make(x);
}

}  // namespace oomlab::number
