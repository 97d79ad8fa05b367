// The host's memory, really: bytes that are touched, and a checkpoint that passes through them.
// What is done here the kernel counts against the process's cgroup; over the limit it kills.
//
// It never takes more than kHostBytesMax in all: a lab must not hurt the machine it runs on.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/server/failure.hpp"

namespace oomlab::server {

inline constexpr u64 kHostBytesMax = 1280 * kMiB;

class HostMemory {
  public:
    HostMemory() = default;
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    // Maps and touches `bytes`; kept until drop_all() or the process ends.
    // On failure (the host says no): a Failure of kind host_alloc.
    Outcome<void> keep(u64 bytes);
    // Takes and gives back: the tokenizer's buffers for one prompt.
    Outcome<void> pass(u64 bytes);
    u64 kept_bytes() const { return kept_; }
    void drop_all();

  private:
    struct Range {
        void* at;
        u64 bytes;
    };
    std::vector<Range> ranges_;
    u64 kept_ = 0;
};

// The checkpoint on its way to the device, in one of the contract's four ways. load() is called
// between tensors with the share that is done; what it maps goes with the object.
class HostLoad {
  public:
    explicit HostLoad(const Scenario::Host& host);
    ~HostLoad();
    // Real bytes that stand for the checkpoint (64 MiB streamed when the scenario says nothing).
    u64 checkpoint_bytes() const { return bytes_; }
    // Brings the next shard into memory. `step` of `steps`.
    Outcome<void> shard(u64 step, u64 steps);

  private:
    Scenario::Host host_;
    u64 bytes_;
    HostMemory memory_;
    void* map_ = nullptr;
    void* staging_ = nullptr;
    int file_ = -1;
};

}  // namespace oomlab::server
