// How the real chip's host code starts kernels. kernels/ops/cuda implements it with real launches;
// the fake runtime of tests/cuda implements it with the host ops.
//
// Every call returns CUDA's error number, read right after the launch and before any other call, so
// that nobody is blamed for a neighbour's fault; 0 is success. A launch that succeeds may still
// fault later: the error then shows at the next synchronisation. Addresses are not null: the caller
// skips ops that are only accounted.
#pragma once

#include "kernels/device/ops.hpp"

namespace oomlab {

// Device memory that an op may overwrite. One op at a time uses it, in the order of one stream.
struct Workspace {
    u64 address = 0;
    u64 bytes = 0;
};

class LaunchOps {
  public:
    virtual ~LaunchOps() = default;
    // Loads every kernel now (CUDA would do it at the first launch of each), so that what modules
    // take is seen in one place. May fail for want of memory, as any module load.
    virtual int load() = 0;
    virtual int rms_norm(const RmsNormArgs& a, void* stream) = 0;
    virtual int rope(const RopeArgs& a, void* stream) = 0;
    virtual int kv_append(const KvAppendArgs& a, void* stream) = 0;
    // The workspace holds partial results of rows whose context is split. Any size will do: with less
    // of it a context is split less.
    virtual int attention(const AttentionArgs& a, Workspace work, void* stream) = 0;
    virtual int gated_act(const GatedActArgs& a, void* stream) = 0;
    virtual int embed(const EmbedArgs& a, void* stream) = 0;
    virtual int gather(const GatherArgs& a, void* stream) = 0;
    // The workspace holds the best of each part of a row.
    virtual int sample(const SampleArgs& a, Workspace work, void* stream) = 0;
    virtual int fill(const FillArgs& a, void* stream) = 0;
    // Continues an FNV-1a hash: work[0] holds the hash so far and receives the new one (u64). Takes at
    // most checksum_bytes_max(work) bytes a call.
    virtual int checksum(u64 address, u64 bytes, Workspace work, void* stream) = 0;
    // A kernel that faults for real: illegal_address, device_assert or invalid_configuration.
    // Any other code: cudaErrorNotSupported.
    virtual int provoke(DeviceErrc code, void* stream) = 0;
};

// FNV-1a is worked out for pieces of this size side by side; each needs a table of 256 hashes.
inline constexpr u64 kChecksumPieceBytes = 16 * kKiB;
inline constexpr u64 kChecksumTableBytes = 256 * sizeof(u64);
constexpr u64 checksum_bytes_max(Workspace work) {
    return (work.bytes - kChecksumTableBytes) / kChecksumTableBytes * kChecksumPieceBytes;
}

}  // namespace oomlab
