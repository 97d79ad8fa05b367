// Long random sequences over every setting. After each step: the allocator's own recount of all its
// invariants, and a second recount here, from the outside, of what the snapshot shows. Each run is
// made twice and must be the same to the last figure. Operations are switched on and off by the
// seed (swarm testing): a mix of everything hides what a few operations can do.
#include <doctest/doctest.h>

#include "kernels/base/prng.hpp"
#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

namespace {

struct Live {
    u64 address, bytes, requested;
};

void recount(const CachingAllocator& allocator, const std::vector<Live>& live, const MemInfo& info,
             u64 capacity) {
    const AllocatorStats& stats = allocator.stats();
    u64 reserved = 0, active = 0, allocated = 0, requested = 0, expandable = 0;
    i64 segments = 0;
    std::size_t found = 0;
    u64 end = 0;
    for (const SegmentInfo& segment : allocator.snapshot()) {
        REQUIRE(segment.address >= end);  // no overlap
        end = segment.address;
        for (const BlockInfo& block : segment.blocks) {
            REQUIRE(block.address == end);  // no gap
            end = block.address + block.bytes;
            if (block.active || block.pending_free) {
                active += block.bytes;
                requested += block.requested_bytes;
            }
            if (block.active) {
                allocated += block.bytes;
                ++found;
            }
        }
        REQUIRE(end == segment.address + segment.bytes);
        reserved += segment.bytes;
        if (segment.expandable) expandable += segment.bytes;
        if (!segment.expandable) ++segments;
    }
    REQUIRE(found == live.size());
    REQUIRE(reserved == allocator.memory_reserved());
    REQUIRE(allocated == allocator.memory_allocated());
    REQUIRE(static_cast<i64>(active) == stats.active_bytes[kStatAll].current);
    REQUIRE(static_cast<i64>(requested) == stats.requested_bytes[kStatAll].current);
    REQUIRE(segments == stats.segment[kStatAll].current);
    REQUIRE(allocated <= active);
    REQUIRE(active <= reserved);
    // The device knows of nothing else.
    REQUIRE(info.free_bytes + reserved == capacity);
    u64 sum = 0;
    for (const Live& one : live) {
        REQUIRE(one.bytes >= one.requested);
        sum += one.bytes;
    }
    REQUIRE(sum == allocated);
    for (const auto* stat : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
                             &stats.allocation, &stats.inactive_split_bytes}) {
        REQUIRE((*stat)[0].current == (*stat)[1].current + (*stat)[2].current);
        REQUIRE((*stat)[0].current == (*stat)[0].allocated - (*stat)[0].freed);
    }
}

struct Swarm {
    double malloc = 1, free = 1, record = 0, work = 0, empty = 0, fraction = 0, capture = 0;
    double total() const { return malloc + free + record + work + empty + fraction + capture; }
};

// Returns a digest of everything that can be seen.
u64 run(u64 seed, const char* conf, int steps) {
    CAPTURE(seed);
    CAPTURE(conf);
    constexpr u64 kCapacity = 1_GiB;
    Prng prng(seed);
    Prng options = prng.fork("swarm");
    Swarm swarm;
    if (options.chance(0.6)) swarm.record = 0.3;
    if (options.chance(0.6)) swarm.work = 0.2;
    if (options.chance(0.5)) swarm.empty = 0.03;
    if (options.chance(0.3)) swarm.fraction = 0.02;
    if (options.chance(0.4)) swarm.capture = 0.05;
    const u64 size_log2 = options.between(12, 28);
    const u64 streams = options.between(1, 3);
    const auto device = open_sim_device(plain_sim_profile(kCapacity));
    for (u64 s = 1; s < streams; ++s) REQUIRE(device->streams().create_stream());
    CachingAllocator allocator(*device, conf_of(conf));
    std::vector<Live> live;
    bool capturing = false;
    u64 digest = seed;
    for (int i = 0; i < steps; ++i) {
        CAPTURE(i);
        double at = prng.uniform() * swarm.total();
        const auto pick = [&](double weight) {
            const bool hit = at >= 0 && at < weight;
            at -= weight;
            return hit;
        };
        const bool growing = i / 100 % 2 == 0;
        if (pick(swarm.malloc + (growing ? 0.3 : -0.3))) {
            const u64 log2 = prng.between(0, size_log2);
            const u64 bytes = prng.between(u64{1} << log2, u64{2} << log2);
            const auto owner = static_cast<Owner>(prng.below(7));
            const u64 before_allocated = allocator.memory_allocated();
            const auto a = allocator.malloc(bytes, prng.below(streams), owner);
            if (a) {
                live.push_back({a->address, a->bytes, bytes});
            } else {
                REQUIRE(a.error().kind == AllocFailure::Kind::out_of_memory);
                REQUIRE(allocator.memory_allocated() == before_allocated);
            }
        } else if (pick(swarm.free + (growing ? -0.3 : 0.3))) {
            if (live.empty()) continue;
            const std::size_t k = prng.below(live.size());
            allocator.free(live[k].address);
            live[k] = live.back();
            live.pop_back();
        } else if (pick(swarm.record)) {
            if (live.empty()) continue;
            allocator.record_stream(live[prng.below(live.size())].address, prng.below(streams));
        } else if (pick(swarm.work)) {
            if (prng.chance(0.5)) {
                REQUIRE(device->ops().account({.flops = 1e9}));
            } else {
                REQUIRE(device->end_step());
            }
        } else if (pick(swarm.empty)) {
            if (!capturing) allocator.empty_cache();
        } else if (pick(swarm.fraction)) {
            allocator.set_per_process_memory_fraction(0.3 + 0.7 * prng.uniform());
        } else if (capturing) {
            allocator.end_capture();
            capturing = false;
        } else {
            allocator.begin_capture(static_cast<u32>(prng.below(3)));
            if (prng.chance(0.3))
                allocator.release_private_pool(static_cast<u32>(prng.between(1, 2)));
            capturing = true;
        }
        REQUIRE(allocator.check_invariants() == "");
        if (i % 4 == 0) recount(allocator, live, *device->memory().mem_info(), kCapacity);
        digest = stable_hash(std::to_string(allocator.fingerprint()) + "/" +
                                 std::to_string(allocator.memory_reserved()) + "/" +
                                 std::to_string(allocator.stats().requested_bytes[0].peak),
                             digest);
    }
    // Everything goes back, and the arrangement is that of a new allocator.
    if (capturing) allocator.end_capture();
    for (const Live& one : live) allocator.free(one.address);
    for (const u32 pool : {1u, 2u}) allocator.release_private_pool(pool);
    REQUIRE(device->end_step());
    allocator.empty_cache();
    REQUIRE(allocator.check_invariants() == "");
    REQUIRE(allocator.memory_reserved() == 0);
    REQUIRE(device->memory().mem_info()->free_bytes == kCapacity);
    allocator.set_per_process_memory_fraction(1);
    // A range of addresses whose first page could not be had stays, costs nothing and is used next.
    if (!conf_of(conf).expandable_segments) {
        CHECK(allocator.fingerprint() == CachingAllocator(*device, {}).fingerprint());
    }
    return digest;
}

void both(u64 first_seed, u64 seeds, const char* conf, int steps = 600) {
    for (u64 seed = first_seed; seed < first_seed + seeds; ++seed) {
        CHECK(run(seed, conf, steps) == run(seed, conf, steps));
    }
}

}  // namespace

TEST_SUITE("property") {
    TEST_CASE("property: default settings") {
        both(100, 10, "");
    }
    TEST_CASE("property: expandable segments") {
        both(200, 10, "expandable_segments:True");
    }
    TEST_CASE("property: a limit on splitting") {
        both(300, 6, "max_split_size_mb:64");
    }
    TEST_CASE("property: a limit on splitting and little tolerance") {
        both(400, 4, "max_split_size_mb:20,max_non_split_rounding_mb:1");
    }
    TEST_CASE("property: garbage collection under a cap") {
        both(500, 6, "garbage_collection_threshold:0.6,per_process_memory_fraction:0.7");
    }
    TEST_CASE("property: rounding and another segment size") {
        both(600, 4, "roundup_power2_divisions:[64:8,256:4,>:2],large_segment_size_mb:12");
    }
    TEST_CASE("property: among thousands of equal holes the lowest is taken") {
        Rig rig("", 4_GiB);
        Prng prng(77);
        std::vector<u64> live;
        for (int i = 0; i < 4000; ++i) {
            live.push_back(rig.allocator.malloc(4_KiB)->address);
            // Runs of live blocks between them: the next hole may be near or far.
            for (u64 n = prng.below(5); n > 0; --n) REQUIRE(rig.allocator.malloc(512));
        }
        const auto expected = [&] {
            std::pair<u64, u64> best{UINT64_MAX, 0};  // size, address
            for (const SegmentInfo& segment : rig.allocator.snapshot()) {
                for (const BlockInfo& block : segment.blocks) {
                    if (block.active || block.bytes < 4_KiB || !segment.small_pool) continue;
                    best = std::min(best, {block.bytes, block.address});
                }
            }
            return best.second;
        };
        for (int i = 0; i < 12'000; ++i) {
            const bool growing = i / 3000 % 2 == 0;
            if (live.size() > 1 && prng.chance(growing ? 0.8 : 0.3)) {
                const std::size_t at = prng.below(live.size());
                rig.allocator.free(live[at]);
                live[at] = live.back();
                live.pop_back();
                continue;
            }
            const u64 wanted = i % 20 == 0 ? expected() : 0;
            live.push_back(rig.allocator.malloc(4_KiB)->address);
            if (wanted != 0) REQUIRE(live.back() == wanted);
            if (i % 50 == 0) rig.check();
        }
        rig.check();
    }
    TEST_CASE("property: expandable segments with a limit on splitting and a cap") {
        both(700, 4,
             "expandable_segments:True,max_split_size_mb:40,per_process_memory_fraction:0.5,"
             "garbage_collection_threshold:0.5");
    }
}
