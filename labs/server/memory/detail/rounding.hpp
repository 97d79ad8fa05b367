// From the size a caller asks for to the size of a block, and of the segment it may come from.
//
// Constants and steps are those of PyTorch's CUDACachingAllocator.cpp; the order of the rules and
// every border (at most, less than) matter, since a byte decides which segment is taken.
#pragma once

#include <algorithm>
#include <bit>

#include "labs/server/memory/caching_allocator.hpp"

namespace oomlab::memory {

inline constexpr u64 kMinBlockBytes = 512;            // kMinBlockSize: the quantum of all sizes
inline constexpr u64 kSmallRequestBytes = kMiB;       // kSmallSize: at most this is small
inline constexpr u64 kSmallSegmentBytes = 2 * kMiB;   // kSmallBuffer
inline constexpr u64 kOwnSegmentBytes = 10 * kMiB;    // kMinLargeAlloc: from here on, to measure
inline constexpr u64 kLargeRoundingBytes = 2 * kMiB;  // kRoundLarge
inline constexpr u64 kAbsurdBytes = u64{1} << 60;     // "more than 1EB"

// Slot 0 covers everything below 2 MiB, slot 15 everything from 32 GiB on.
constexpr u64 power2_divisions_for(const AllocConf& conf, u64 bytes) {
    constexpr int kFirstSlotLog2 = 20;
    constexpr int kLastSlot = 15;
    const int log2 = static_cast<int>(std::bit_width(bytes)) - 1;
    return conf.roundup_power2_divisions[static_cast<std::size_t>(
        std::clamp(log2 - kFirstSlotLog2, 0, kLastSlot))];
}

constexpr u64 round_to_quantum(u64 bytes) {
    return (bytes + kMinBlockBytes - 1) & ~(kMinBlockBytes - 1);
}

// REQUIRES: 0 < bytes < kAbsurdBytes. Returns a multiple of 512.
constexpr u64 round_size(const AllocConf& conf, u64 bytes) {
    if (bytes < kMinBlockBytes) return kMinBlockBytes;
    const u64 divisions = power2_divisions_for(conf, bytes);
    if (divisions > 1 && bytes > kMinBlockBytes * divisions) {
        if (std::has_single_bit(bytes)) return bytes;
        return round_up(bytes, std::bit_floor(bytes) / divisions);
    }
    return round_to_quantum(bytes);
}

constexpr bool is_small(u64 rounded_bytes) {
    return rounded_bytes <= kSmallRequestBytes;
}

// What a message calls "Tried to allocate".
constexpr u64 segment_size(const AllocConf& conf, u64 rounded_bytes) {
    if (is_small(rounded_bytes)) return kSmallSegmentBytes;
    if (rounded_bytes < kOwnSegmentBytes) return conf.large_segment_bytes;
    return round_up(rounded_bytes, kLargeRoundingBytes);
}

}  // namespace oomlab::memory
