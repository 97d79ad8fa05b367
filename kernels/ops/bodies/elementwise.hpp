// One element (or one pair) of the small ops, for host and device code alike.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/ops/bodies/number.hpp"

namespace oomlab::body {

OOMLAB_BOTH inline float silu(float x) { return x / (1.0f + expf(-x)); }

// rms_norm: the factor of a row from its sum of squares, then one element.
OOMLAB_BOTH inline float rms_factor(float sum_of_squares, std::uint64_t width, float epsilon) {
    return 1.0f / sqrtf(sum_of_squares / static_cast<float>(width) + epsilon);
}
OOMLAB_BOTH inline float rms_element(float x, float factor, float weight) {
    return x * factor * weight;
}

// Rotary embedding, the half-split form of Llama checkpoints: element i turns with element
// i + head_dim/2 by position * theta^(-2i/head_dim).
struct Pair {
    float first, second;
};
OOMLAB_BOTH inline float rope_frequency(std::uint64_t i, std::uint64_t head_dim, float theta) {
    return powf(theta, -2.0f * static_cast<float>(i) / static_cast<float>(head_dim));
}
OOMLAB_BOTH inline Pair rope_pair(Pair x, std::int32_t position, float frequency) {
    const float angle = static_cast<float>(position) * frequency;
    const float c = cosf(angle);
    const float s = sinf(angle);
    return {x.first * c - x.second * s, x.second * c + x.first * s};
}

// Element i of a fill: SplitMix64 of seed and i, the top 24 bits as a number in [-1, 1).
OOMLAB_BOTH inline float fill_unit(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return static_cast<float>(z >> 40) * 0x1p-23f - 1.0f;
}
// Floats are scaled; an i8 weight spans its whole range whatever the scale, since its scale is kept
// apart from it; an i32 is the scaled number, rounded.
template <class T>
OOMLAB_BOTH inline T fill_element(std::uint64_t seed, std::uint64_t i, float scale) {
    return number::from_float<T>(fill_unit(seed, i) * scale);
}
template <>
OOMLAB_BOTH inline std::int8_t fill_element<std::int8_t>(std::uint64_t seed, std::uint64_t i, float) {
    return number::from_float<std::int8_t>(fill_unit(seed, i) * 127.0f);
}

// Greedy sampling. A better candidate has a larger logit; among equals the lowest id wins. NaN never
// wins, so a row of NaN gives id 0.
struct Candidate {
    float logit;
    std::int32_t id;
};
OOMLAB_BOTH inline Candidate no_candidate() { return {-INFINITY, 0x7fffffff}; }
OOMLAB_BOTH inline Candidate better(Candidate a, Candidate b) {
    if (b.logit > a.logit) return b;
    if (b.logit == a.logit && b.id < a.id) return b;
    return a;
}
OOMLAB_BOTH inline std::int32_t token_of(Candidate c) { return c.id == 0x7fffffff ? 0 : c.id; }

// FNV-1a, one byte.
inline constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325ULL;
inline constexpr std::uint64_t kFnvPrime = 0x100000001b3ULL;
OOMLAB_BOTH inline std::uint64_t fnv_step(std::uint64_t hash, std::uint8_t byte) {
    return (hash ^ byte) * kFnvPrime;
}

}  // namespace oomlab::body
