// The inside of the caching allocator, shared by its sources:
//   caching_allocator.cpp  the warm path: search, split, hand out, free, merge
//   segments.cpp           new segments, retries, release, collection, the figures of a failure
//   expandable_pages.cpp   the same for expandable segments: where to grow, what to unmap
//   events.cpp             frees that wait for other streams
//   inspect.cpp            snapshot, published statistics, running totals
//   invariants.cpp         the recount
//
// Every block is in exactly one place at a time: the index of its home (free), the address map
// (allocated), among the pending ones, or in the set of holes (unmapped).
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "labs/server/memory/caching_allocator.hpp"
#include "labs/server/memory/detail/address_map.hpp"
#include "labs/server/memory/detail/counters.hpp"
#include "labs/server/memory/detail/expandable_segment.hpp"
#include "labs/server/memory/detail/rounding.hpp"
#include "labs/server/memory/detail/size_index.hpp"

namespace oomlab::memory {

// Small or large blocks; of everybody, or of the graphs that share a private pool.
struct Pool {
    bool small = false;
    u32 private_id = 0;  // 0: the default pools
    u64 lookups = 0;     // best-fit searches, counted while collection is on: ages
    std::vector<std::unique_ptr<SizeIndex>> homes{};  // by stream

    StatPool stat() const { return small ? kStatSmall : kStatLarge; }
};

struct PrivatePool {
    Pool small, large;
    bool in_use = true;  // its graphs live; else what is free may go back to the driver
};

// A malloc that found nothing in the cache.
struct Request {
    u64 requested_bytes = 0;
    u64 rounded_bytes = 0;
    u64 segment_bytes = 0;
    SizeIndex* home = nullptr;
    Block* block = nullptr;              // the answer, in none of the places
    std::optional<DeviceError> error{};  // the driver's last word
    bool capped = false;                 // refused by the cap, the driver was not asked
    bool fatal = false;                  // not an out of memory that a release may cure
};

}  // namespace oomlab::memory

namespace oomlab {

struct CachingAllocator::Impl {
    using Block = memory::Block;
    using BlockState = memory::BlockState;
    using Pool = memory::Pool;
    using SizeIndex = memory::SizeIndex;
    using Request = memory::Request;

    Impl(Device& chip, const AllocConf& settings, AllocatorObserver* watcher);
    ~Impl();

    // [WARM PATH] caching_allocator.cpp
    Result<Allocation, AllocFailure> malloc(u64 bytes, StreamId stream, Owner owner, u32 request);
    void free(u64 address);
    Result<Allocation, AllocFailure> malloc_new(SizeIndex& home, u64 bytes, u64 rounded_bytes,
                                                Owner owner, u32 request);
    Result<Allocation, AllocFailure> malloc_odd(u64 bytes, Owner owner);
    SizeIndex& home_for(u64 rounded_bytes, StreamId stream) {
        // Nearly always the one used last; those of the default pools are never gone.
        SizeIndex* const last = last_home[memory::is_small(rounded_bytes) ? 0 : 1];
        if (last != nullptr && last->stream == stream && capture_pool == 0) return *last;
        return find_home(rounded_bytes, stream);
    }
    SizeIndex& find_home(u64 rounded_bytes, StreamId stream);
    SizeIndex& add_home(Pool& pool, StreamId stream);
    Block* best_fit(SizeIndex& home, u64 rounded_bytes);
    Block* expandable_fit(const SizeIndex& home, Block* found) const;
    bool should_split(const Block& block, const Pool& pool, u64 rounded_bytes) const;
    Block* split(Block* block, u64 front_bytes);
    Allocation hand_out(SizeIndex& home, Block* block, u64 requested_bytes, u64 rounded_bytes,
                        Owner owner, u32 request);
    void complete_free(Block* block);
    // The neighbour is taken in when it is of the same kind; returns its size, or 0.
    u64 merge(SizeIndex& home, Block* block, Block* neighbour);
    SizeIndex& home_of(const Block* block) const { return *homes[block->home]; }
    Pool& pool_of(const Block* block) const { return home_of(block).pool; }

    // [DRIVER] segments.cpp, expandable_pages.cpp. `error` is set to the driver's first refusal;
    // what it refused to take back stays in the cache.
    using MaybeError = std::optional<DeviceError>;
    AllocFailure failed(const Request& r, Owner owner);
    bool obtain(Request& r);
    bool new_segment(Request& r);
    bool retry_after_release(Request& r);
    Block* grow_expandable(Request& r);
    Block* find_growable(Request& r);
    bool map_front(Request& r, Block* hole, u64 bytes);
    void unmap(Block* block);
    void drop_expandable(Block* hole);
    memory::ExpandableSegment& range_of(const Block* block) const;
    void drop_homes(Pool& pool);
    void release_segment(Block* block, MaybeError& error);
    bool release_oversize(Request& r);
    void release_cached(MaybeError& error);
    void release_pool(Pool& pool, MaybeError& error);
    void collect_garbage(MaybeError& error);
    void close_everything();
    std::optional<u64> cap_of(double fraction) const;

    // [STREAMS] events.cpp. Each returns the first error; what could not be done is tried again.
    void record_stream(Block* block, StreamId stream);
    void start_waiting(Block* block);
    MaybeError record_events(Block* block);
    MaybeError record_deferred();
    MaybeError poll_events();
    MaybeError wait_for_events();
    void event_done(Block* block);

    // [INSPECTION] inspect.cpp
    std::vector<const Block*> blocks_by_address() const;
    std::string check_invariants() const;  // invariants.cpp
    std::string compare_with(const AllocatorStats& recount) const;
    u64 indexed_blocks() const;
    std::vector<SegmentInfo> snapshot() const;
    u64 largest_free() const;
    u64 private_free_bytes() const;
    template <class Visit>
    void for_each_pool(Visit visit) const {
        visit(large);
        visit(small);
        for (const auto& [id, pool] : private_pools) {
            visit(pool.large);
            visit(pool.small);
        }
    }

    // [PLACES] The home is the block's own: neighbours share it.
    static void enter_free(SizeIndex& home, Block* block) {
        block->state = BlockState::free;
        block->requested_or_age = home.pool.lookups;
        home.insert(block);
    }
    static void leave_free(SizeIndex& home, Block* block) { home.erase(block); }
    static void enter_unmapped(SizeIndex& home, Block* block) {
        block->state = BlockState::unmapped;
        home.unmapped.insert(block);
    }
    static void leave_unmapped(SizeIndex& home, Block* block) { home.unmapped.erase(block); }

    // [FINGERPRINT] Segments, mapped pages, and blocks in use; what is free is what they leave,
    // since free neighbours are always merged. Each is added and removed by the same xor.
    static u64 print_of(const Block& block);  // REQUIRES: in use
    static u64 print_of_segment(u64 address, u64 bytes, memory::HomeId home);
    static u64 print_of_pages(u64 address, u64 bytes, u64 page_bytes);

    u64 reserved() const { return static_cast<u64>(counters.reserved_bytes.current()); }
    bool collects() const { return allowed.has_value() && conf.garbage_collection_threshold > 0; }

    Device& device;
    AllocConf conf;
    AllocatorObserver* observer;
    const bool divides;  // whether any request is rounded to a part of a power of two
    memory::Counters counters;
    // The scalars and the oversize figures live here; the rest is published on request.
    mutable AllocatorStats stats{};
    const AllocatorStats& publish() const;
    std::optional<u64> allowed;  // bytes under the per-process fraction
    std::array<u64, kOwners> owned_bytes{};
    u64 print = 0;
    bool capturing = false;
    u32 capture_pool = 0;

    memory::BlockArena arena;
    memory::AddressMap live{arena.all()};
    std::vector<SizeIndex*> homes;          // by id; null: gone with its private pool
    std::array<SizeIndex*, 2> last_home{};  // of the small and the large default pool
    Pool small{.small = true}, large{.small = false};
    std::map<u32, memory::PrivatePool> private_pools;

    // What few blocks need: the streams that still have to be recorded, the events not done yet.
    struct Elsewhere {
        std::vector<StreamId> streams{};
        u32 events = 0;
    };
    std::unordered_map<const Block*, Elsewhere> elsewhere;
    struct Waiting {
        EventId event;
        Block* block;
    };
    std::map<StreamId, std::deque<Waiting>> waiting;  // by the stream waited for, oldest first
    u64 outstanding = 0;                              // entries of waiting
    std::vector<Block*> deferred;                     // freed during capture: no event yet
    std::vector<std::unique_ptr<memory::ExpandableSegment>> ranges;
    std::vector<std::unique_ptr<memory::ExpandableSegment>>
        unclosed;  // tried again at each release
};

}  // namespace oomlab
