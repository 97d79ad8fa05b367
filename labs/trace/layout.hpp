// How a trace lies on disk. Internal to labs/trace: everybody else uses Writer and Reader.
//
//   4 KiB header | virtual log | wall log | ring
//
// A log is a row of frames, each aligned to 8 bytes: Frame, payload, zeros up to the alignment.
// `commit` is the record's number in its log, from 1, and is stored last with release order; 0 means
// "nothing here yet". The checksum covers the frame and the payload, and its seed names the log, so
// a frame of one log never passes in the other. Little-endian machines only.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/base/bytes.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::trace {

static_assert(std::endian::native == std::endian::little, "traces are little-endian");

inline constexpr std::array<char, 8> kMagic = {'o', 'o', 'm', 't', 'r', 'a', 'c', 'e'};
inline constexpr u64 kHeaderBytes = 4096;
inline constexpr u64 kFrameAlign = 8;
inline constexpr u64 kMaxPayloadBytes = 8 * kMiB;   // one record; the largest are block maps
inline constexpr u64 kMaxFileBytes = 4 * kGiB;
inline constexpr u64 kRingBytes = u64{kRingOps} * sizeof(RingOp);
inline constexpr u64 kEvidenceReserveBytes = 128 * kKiB;   // end of the wall log, for the supervisor
inline constexpr u32 kVirtualLog = 1, kWallLog = 2;  // seeds of the checksum

// What does not change after the file was made; `crc` covers what stands before it.
struct FileHeader {
    std::array<char, 8> magic;
    u32 version, header_bytes;
    u64 virtual_offset, virtual_bytes;
    u64 wall_offset, wall_bytes;
    u64 ring_offset, ring_slots;
    u32 compacted, pad;      // compacted: 1, nothing of the virtual part may follow
    u32 crc, pad2;
};
static_assert(sizeof(FileHeader) == 80);

// What does change, one cache line further on each. Written by one side only, read by all.
struct LiveWords {
    alignas(64) u64 dropped;      // samples and maps the writer could not keep
    u64 lost;                     // records that must be kept and were not: a bug or a tiny file
    alignas(64) u64 closed;       // 1: the supervisor has seen the server's end
};
inline constexpr u64 kLiveOffset = 1024;
static_assert(kLiveOffset + sizeof(LiveWords) <= kHeaderBytes);

struct Frame {
    u64 commit;
    i64 time_us;
    u32 payload_bytes;
    std::uint16_t type, flags;
    u32 crc, pad;
};
static_assert(sizeof(Frame) == 32);

constexpr u64 frame_bytes(u64 payload_bytes) {
    return sizeof(Frame) + round_up(payload_bytes, kFrameAlign);
}

}  // namespace oomlab::trace
