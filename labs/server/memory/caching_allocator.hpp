// The caching allocator: PyTorch's rules, byte for byte (shared reference: caching_allocator.md).
//
// The same sequence of requests gives the same allocated, reserved, segments and inactive-split
// figures as torch.cuda. It is not a general allocator: one device, one thread, no interior
// pointers. Segments get strictly increasing addresses from the simulated chip; on a real chip only
// ties between equal free blocks may fall differently.
//
// Invariants: (1) the blocks of a segment cover it without gap or overlap; (2) reserved = sum of
// segments (mapped pages when expandable); (3) allocated <= active <= reserved; (4) two free
// neighbours never stay unmerged; (5) a failed call leaves the figures as before, but for the
// retry counters and what the release of the cache gave back.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/device.hpp"
#include "labs/server/memory/alloc_failure.hpp"

namespace oomlab {

// PYTORCH_ALLOC_CONF. Defaults are PyTorch's.
struct AllocConf {
    u64 large_segment_bytes = 20 * kMiB;
    u64 max_split_bytes = UINT64_MAX;
    u64 max_non_split_rounding_bytes = 20 * kMiB;
    std::array<u64, 16> roundup_power2_divisions{};
    double garbage_collection_threshold = 0;
    bool expandable_segments = false;
    double per_process_memory_fraction = 1.0;   // 1.0: no cap
};
// "max_split_size_mb:200,expandable_segments:True,roundup_power2_divisions:[256:1,512:2,>:8]".
// On failure: Error::parse naming the key, what it takes, and the nearest known key.
Result<AllocConf> parse_alloc_conf(std::string_view text);

struct Stat {
    i64 current = 0, peak = 0, allocated = 0, freed = 0;
    void increase(i64 n) {
        current += n;
        allocated += n;
        if (current > peak) peak = current;
    }
    void decrease(i64 n) {
        current -= n;
        freed += n;
    }
};
// all, small_pool, large_pool
using PoolStat = std::array<Stat, 3>;
enum StatPool { kStatAll = 0, kStatSmall = 1, kStatLarge = 2 };

struct AllocatorStats {
    PoolStat allocation, segment, active, inactive_split;
    PoolStat allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
    Stat oversize_allocations, oversize_segments;
    i64 num_alloc_retries = 0, num_ooms = 0, num_sync_all_streams = 0;
    i64 num_device_alloc = 0, num_device_free = 0;
};
// 1 - peak active / peak reserved: the share of what was held at worst that no block ever needed.
// 0 when nothing was reserved.
double fragmentation(const AllocatorStats& stats);
// torch.cuda.memory_summary(): the table people know (section 4.3 of the reference).
std::string memory_summary(const AllocatorStats& stats, int device_index = 0);

// An allocation, as its owner holds it. Cheap to copy; free() takes it by address.
struct Allocation {
    u64 address = 0;
    u64 bytes = 0;   // the block: what allocated_bytes grew by
};

struct BlockInfo {       // one block of the snapshot, in address order
    u64 address, bytes, requested_bytes;
    Owner owner;
    u32 request;
    bool active, pending_free, mapped;
};
struct SegmentInfo {
    u64 address, bytes;
    StreamId stream;
    bool small_pool, expandable;
    std::vector<BlockInfo> blocks;
};

// What the allocator tells the black box. Called synchronously; must not call back in.
class AllocatorObserver {
  public:
    virtual ~AllocatorObserver() = default;
    virtual void segment_alloc(u64 address, u64 bytes, StreamId, bool small_pool) = 0;
    virtual void segment_free(u64 address, u64 bytes, StreamId, bool small_pool) = 0;
    virtual void segment_map(u64 address, u64 bytes, StreamId, bool small_pool) = 0;
    virtual void segment_unmap(u64 address, u64 bytes, StreamId, bool small_pool) = 0;
    virtual void retry(u64 asked_bytes, u64 released_bytes, bool succeeded) = 0;
};

class CachingAllocator {
  public:
    CachingAllocator(Device& device, const AllocConf& conf, AllocatorObserver* observer = nullptr);
    ~CachingAllocator();   // returns every segment, also with live blocks; tolerates a dead device
    CachingAllocator(const CachingAllocator&) = delete;
    CachingAllocator& operator=(const CachingAllocator&) = delete;

    // 0 bytes: a null allocation, no statistics. `owner` and `request` are labels for the maps.
    Result<Allocation, AllocFailure> malloc(u64 bytes, StreamId stream = 0,
                                            Owner owner = Owner::activations,
                                            u32 request = 0xffffffffu);
    // REQUIRES: an address from malloc, not freed since (anything else is our bug: aborts). 0 is fine.
    void free(u64 address);
    // The block is used on another stream: its free waits for that stream's work.
    void record_stream(u64 address, StreamId stream);
    void empty_cache();
    void set_per_process_memory_fraction(double fraction);   // [0, 1]
    // During capture frees with pending streams are deferred and the cache is not released. With a
    // private pool (any number but 0) allocations come from that pool, as those of a captured graph
    // do; what they leave free serves only captures into the same pool, until its graphs are gone
    // (release_private_pool) and the cache is released.
    void begin_capture(u32 private_pool = 0);
    void end_capture();
    void release_private_pool(u32 private_pool);

    // Valid until the next call of it: the running counters are kept elsewhere, in fewer words.
    const AllocatorStats& stats() const;
    u64 memory_allocated() const;
    u64 memory_reserved() const;
    void reset_peak_stats();

    u64 largest_free_block_bytes() const;
    // Every segment with its blocks, by address.
    std::vector<SegmentInfo> snapshot() const;
    u64 owner_bytes(Owner owner) const;   // live bytes by label, O(1)
    // Changes whenever the arrangement of blocks changes, and returns to the same value with the
    // same arrangement: equal fingerprints mean equal behaviour from here on (statistics aside).
    u64 fingerprint() const;
    // Adds to the running totals what `times` more repeats of a pattern would have added, whose
    // first repeat had the deltas `after - before`. Proven equal by tests.
    void replay_totals(const AllocatorStats& before, const AllocatorStats& after, u64 times);
    // Checks the invariants; returns the first that does not hold, or "" (tests, debug builds).
    std::string check_invariants() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace oomlab
