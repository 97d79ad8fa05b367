// Fingerprints, totals of repeated patterns, owners, snapshot and the observer.
#include <doctest/doctest.h>

#include "kernels/base/prng.hpp"
#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

namespace {

// One step of a server, in small: tensors of several sizes and owners, freed in another order.
void step(CachingAllocator& allocator) {
    std::vector<u64> held;
    for (const u64 bytes : {3_MiB, 700_KiB, 40_MiB, 512_B, 9_MiB, 700_KiB}) {
        const auto a =
            allocator.malloc(bytes, 0, bytes > 8_MiB ? Owner::workspace : Owner::activations);
        REQUIRE(a);
        held.push_back(a->address);
    }
    for (const std::size_t i : {1u, 0u, 3u, 5u, 2u, 4u}) allocator.free(held[i]);
}

bool same(const Stat& a, const Stat& b) {
    return a.current == b.current && a.peak == b.peak && a.allocated == b.allocated &&
           a.freed == b.freed;
}
bool same(const AllocatorStats& a, const AllocatorStats& b) {
    bool equal = same(a.oversize_allocations, b.oversize_allocations) &&
                 same(a.oversize_segments, b.oversize_segments) &&
                 a.num_alloc_retries == b.num_alloc_retries && a.num_ooms == b.num_ooms &&
                 a.num_sync_all_streams == b.num_sync_all_streams &&
                 a.num_device_alloc == b.num_device_alloc && a.num_device_free == b.num_device_free;
    for (std::size_t i = 0; i < 3; ++i) {
        equal = equal && same(a.allocation[i], b.allocation[i]) &&
                same(a.segment[i], b.segment[i]) && same(a.active[i], b.active[i]) &&
                same(a.inactive_split[i], b.inactive_split[i]) &&
                same(a.allocated_bytes[i], b.allocated_bytes[i]) &&
                same(a.reserved_bytes[i], b.reserved_bytes[i]) &&
                same(a.active_bytes[i], b.active_bytes[i]) &&
                same(a.inactive_split_bytes[i], b.inactive_split_bytes[i]) &&
                same(a.requested_bytes[i], b.requested_bytes[i]);
    }
    return equal;
}

struct Log final : AllocatorObserver {
    std::vector<std::string> lines;
    i64 bytes = 0;
    void segment_alloc(u64, u64 n, StreamId, bool small) override { note("alloc", n, small, +1); }
    void segment_free(u64, u64 n, StreamId, bool small) override { note("free", n, small, -1); }
    void segment_map(u64, u64 n, StreamId, bool small) override { note("map", n, small, +1); }
    void segment_unmap(u64, u64 n, StreamId, bool small) override { note("unmap", n, small, -1); }
    void retry(u64 asked, u64 released, bool ok) override {
        lines.push_back("retry " + std::to_string(asked / kMiB) + " " +
                        std::to_string(released / kMiB) + (ok ? " ok" : " failed"));
    }
    void note(const char* what, u64 n, bool small, i64 sign) {
        bytes += sign * static_cast<i64>(n);
        lines.push_back(std::string(what) + " " + std::to_string(n / kMiB) +
                        (small ? " small" : ""));
    }
};

}  // namespace

TEST_SUITE("replay") {
    TEST_CASE("replay: a repeated pattern comes back to the same fingerprint") {
        for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:20"}) {
            Rig rig(conf);
            rig.get(5_MiB);
            const u64 empty = rig.allocator.fingerprint();
            step(rig.allocator);
            const u64 warm = rig.allocator.fingerprint();
            CHECK(warm != empty);  // the cache holds segments now
            for (int i = 0; i < 3; ++i) {
                step(rig.allocator);
                CHECK(rig.allocator.fingerprint() == warm);
            }
            rig.get(512);
            CHECK(rig.allocator.fingerprint() != warm);
        }
    }

    TEST_CASE("replay: the fingerprint knows what a free would change") {
        Rig rig;
        const u64 a = rig.allocator.malloc(1000, 0, Owner::activations)->address;
        const u64 first = rig.allocator.fingerprint();
        rig.free(a);
        CHECK(rig.allocator.malloc(1000, 0, Owner::kv)->address == a);
        CHECK(rig.allocator.fingerprint() != first);  // another owner
        rig.free(a);
        CHECK(rig.allocator.malloc(1024, 0, Owner::activations)->address == a);
        CHECK(rig.allocator.fingerprint() != first);  // another requested size
        rig.free(a);
        CHECK(rig.allocator.malloc(1000, 0, Owner::activations)->address == a);
        CHECK(rig.allocator.fingerprint() == first);
        rig.allocator.set_per_process_memory_fraction(0.5);
        CHECK(rig.allocator.fingerprint() != first);
    }

    TEST_CASE("replay: with collection on no two moments are alike") {
        Rig rig("garbage_collection_threshold:0.5,per_process_memory_fraction:0.9");
        step(rig.allocator);
        const u64 once = rig.allocator.fingerprint();
        step(rig.allocator);
        CHECK(rig.allocator.fingerprint() != once);
    }

    TEST_CASE("replay: totals of repeats that were not run equal those of repeats that were") {
        Rig done, skipped;
        for (Rig* rig : {&done, &skipped}) {
            step(rig->allocator);
            rig->allocator.empty_cache();
            step(rig->allocator);
        }
        for (int i = 0; i < 1000; ++i) step(done.allocator);
        const AllocatorStats before = skipped.stats();
        step(skipped.allocator);
        const AllocatorStats after = skipped.stats();
        skipped.allocator.replay_totals(before, after, 999);
        CHECK(same(done.stats(), skipped.stats()));
        CHECK(memory_summary(done.stats()) == memory_summary(skipped.stats()));
        CHECK(done.allocator.fingerprint() == skipped.allocator.fingerprint());
    }

    TEST_CASE("replay: owners add up to allocated") {
        Rig rig;
        Prng prng(11);
        std::vector<u64> held;
        for (int i = 0; i < 300; ++i) {
            const auto owner = static_cast<Owner>(prng.below(7));
            held.push_back(rig.allocator.malloc(prng.between(1, 30_MiB), 0, owner)->address);
        }
        for (int i = 0; i < 150; ++i) rig.free(held[static_cast<std::size_t>(i) * 2]);
        u64 sum = 0;
        for (std::size_t o = 0; o < kOwners; ++o)
            sum += rig.allocator.owner_bytes(static_cast<Owner>(o));
        CHECK(sum == rig.allocated());
        CHECK(rig.allocator.owner_bytes(Owner::viewer) == 0);
    }

    TEST_CASE("replay: the snapshot shows every block with its labels") {
        Rig rig;
        const u64 a = rig.allocator.malloc(3_MiB, 0, Owner::kv, 17)->address;
        REQUIRE(rig.allocator.malloc(2_MiB - 100, 0, Owner::weights));
        REQUIRE(rig.allocator.malloc(100, 0, Owner::activations, 3));
        const auto segments = rig.allocator.snapshot();
        REQUIRE(segments.size() == 2);
        CHECK(segments[0].address == a);
        CHECK(segments[0].bytes == 20_MiB);
        CHECK_FALSE(segments[0].small_pool);
        CHECK_FALSE(segments[0].expandable);
        REQUIRE(segments[0].blocks.size() == 3);
        CHECK(segments[0].blocks[0].owner == Owner::kv);
        CHECK(segments[0].blocks[0].request == 17);
        CHECK(segments[0].blocks[1].bytes == 2_MiB);
        CHECK(segments[0].blocks[1].requested_bytes == 2_MiB - 100);
        CHECK(segments[0].blocks[2].bytes == 15_MiB);
        CHECK(segments[0].blocks[2].owner == Owner::cached);
        CHECK_FALSE(segments[0].blocks[2].active);
        CHECK(segments[1].small_pool);
        CHECK(segments[1].bytes == 2_MiB);
    }

    TEST_CASE("replay: an expandable snapshot shows each mapped stretch") {
        Rig rig("expandable_segments:True");
        const u64 a = rig.get(50_MiB);
        const u64 k = rig.get(2_MiB);
        const u64 b = rig.get(50_MiB);
        rig.get(30_MiB);
        rig.free(a);
        rig.free(b);
        rig.empty_cache();  // pages 0, 1 and 3, 4 go; those of k and of the 30 stay
        const auto segments = rig.allocator.snapshot();
        REQUIRE(segments.size() == 2);
        CHECK(segments[0].expandable);
        CHECK(segments[0].bytes + segments[1].bytes == rig.reserved());
        CHECK(segments[0].address + segments[0].bytes < segments[1].address);
        bool found = false;
        for (const auto& block : segments[0].blocks) found = found || block.address == k;
        CHECK(found);
        CHECK(rig.allocator.largest_free_block_bytes() > 0);
    }

    TEST_CASE("replay: the observer hears every segment and every retry") {
        for (const bool expandable : {false, true}) {
            const auto device = open_sim_device(plain_sim_profile(100_MiB));
            Log log;
            {
                CachingAllocator allocator(
                    *device, conf_of(expandable ? "expandable_segments:True" : ""), &log);
                const auto a = allocator.malloc(60_MiB);
                REQUIRE(a);
                REQUIRE(allocator.malloc(100));
                allocator.free(a->address);
                CHECK(log.bytes == static_cast<i64>(allocator.memory_reserved()));
                CHECK(allocator.malloc(80_MiB));
                CHECK_FALSE(allocator.malloc(99_MiB));
                CHECK(log.bytes == static_cast<i64>(allocator.memory_reserved()));
            }
            const std::vector<std::string> plain{"alloc 60",       "alloc 2 small",
                                                 "free 60",        "alloc 80",
                                                 "retry 80 60 ok", "retry 100 0 failed"};
            const std::vector<std::string> pages{"map 60", "map 2 small", "map 20",
                                                 "retry 100 0 failed"};
            CHECK(log.lines == (expandable ? pages : plain));
        }
    }

    TEST_CASE("replay: fragmentation is what was held at worst and never needed") {
        CHECK(fragmentation(AllocatorStats{}) == 0);
        Rig rig("", 300_MiB);
        rig.get(100_MiB);
        const u64 a = rig.get(100_MiB);
        rig.free(a);
        rig.get(120_MiB);  // the cached 100 are released: reserved peaks at 220 of 220 active
        CHECK(fragmentation(rig.stats()) == doctest::Approx(0.0));
        Rig holes;
        for (int i = 0; i < 2; ++i) holes.get(1_MiB + 512);
        // 2 blocks of 1 MiB + 512 B in a segment of 20 MiB.
        CHECK(fragmentation(holes.stats()) == doctest::Approx(1 - 2 * 1'049'088.0 / 20'971'520.0));
    }

    TEST_CASE("replay: the destructor returns everything, also what is still in use") {
        for (const char* conf : {"", "expandable_segments:True"}) {
            const auto device = open_sim_device(plain_sim_profile(1_GiB));
            {
                CachingAllocator allocator(*device, conf_of(conf));
                for (int i = 0; i < 50; ++i)
                    REQUIRE(allocator.malloc(1_MiB * static_cast<u64>(i + 1) / 4));
            }
            CHECK(device->memory().mem_info()->free_bytes == 1_GiB);
        }
    }

    TEST_CASE("replay: the destructor tolerates a dead device") {
        for (const char* conf : {"", "expandable_segments:True"}) {
            const auto device = open_sim_device(plain_sim_profile(1_GiB));
            CachingAllocator allocator(*device, conf_of(conf));
            REQUIRE(allocator.malloc(30_MiB));
            REQUIRE(device->provoke(DeviceErrc::illegal_address));
            // What is cached needs no driver, as in PyTorch: the fault shows at the next call of
            // it.
            allocator.empty_cache();
            CHECK_FALSE(allocator.malloc(300_MiB));
        }
    }
}
