#include <doctest/doctest.h>

#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

TEST_SUITE("capture") {
    TEST_CASE("capture: frees that wait for a stream are deferred until it ends") {
        Rig rig;
        const auto other = rig.device.streams().create_stream();
        REQUIRE(other);
        const u64 a = rig.get(30_MiB);
        rig.allocator.record_stream(a, *other);
        REQUIRE(rig.device.graphs().begin_capture(0));
        rig.allocator.begin_capture();
        rig.free(a);
        rig.get(30_MiB);  // no event was recorded or queried: the capture is not spoilt
        CHECK(rig.reserved() == 60_MiB);
        CHECK(rig.device.calls(DeviceCall::record_event) == 0);
        rig.allocator.end_capture();
        REQUIRE(rig.device.graphs().end_capture(0));
        rig.get(30_MiB);
        CHECK(rig.reserved() == 60_MiB);
    }

    TEST_CASE("capture: the cache is not released, so a fitting retry is not even tried") {
        Rig rig("", 100_MiB);
        rig.free(rig.get(60_MiB));
        rig.allocator.begin_capture();
        const AllocFailure f = rig.refused(80_MiB);
        CHECK(f.num_alloc_retries == 0);
        CHECK(rig.reserved() == 60_MiB);
        rig.allocator.end_capture();
        rig.get(80_MiB);
        CHECK(rig.stats().num_alloc_retries == 1);
    }

    TEST_CASE("capture: a private pool keeps its blocks to itself") {
        Rig rig;
        rig.allocator.begin_capture(7);
        const u64 a = rig.get(30_MiB);
        const u64 b = rig.get(512);
        rig.free(a);
        rig.allocator.end_capture();
        CHECK(rig.reserved() == 32_MiB);
        // Outside the capture the free 30 MiB are out of reach.
        const u64 outside = rig.get(30_MiB);
        CHECK(rig.reserved() == 62_MiB);
        rig.free(outside);
        // Another capture into the same pool reuses them.
        rig.allocator.begin_capture(7);
        rig.free(rig.get(30_MiB));
        rig.allocator.end_capture();
        CHECK(rig.reserved() == 62_MiB);
        // In use, they survive the release of the cache; the default pools do not.
        rig.empty_cache();
        CHECK(rig.reserved() == 32_MiB);
        rig.allocator.release_private_pool(7);
        rig.empty_cache();
        CHECK(rig.reserved() == 2_MiB);  // b is alive in the small segment
        rig.free(b);
        rig.empty_cache();
        CHECK(rig.reserved() == 0);
    }

    TEST_CASE("capture: what private pools hold free is its own figure in the failure") {
        Rig rig("", 100_MiB);
        rig.allocator.begin_capture(1);
        rig.free(rig.get(40_MiB));
        rig.allocator.end_capture();
        const AllocFailure f = rig.refused(80_MiB);
        CHECK(f.private_pool_free_bytes == 40_MiB);
        CHECK(oom_message(f).find("Of the allocated memory 40.00 MiB is allocated by PyTorch, with "
                                  "40.00 MiB allocated in private pools (e.g., CUDA Graphs), and 0 "
                                  "bytes is reserved by PyTorch but unallocated.") !=
              std::string::npos);
    }

    TEST_CASE("capture: a pool that is given up while it is captured into outlives the capture") {
        Rig rig;
        rig.allocator.begin_capture(2);
        rig.allocator.release_private_pool(2);
        rig.empty_cache();
        rig.free(rig.get(30_MiB));
        rig.empty_cache();
        CHECK(rig.reserved() == 30_MiB);
        rig.allocator.end_capture();
        rig.empty_cache();
        CHECK(rig.reserved() == 0);
    }

    TEST_CASE("capture: a thousand pools come and go") {
        Rig rig("expandable_segments:True");
        for (u32 pool = 1; pool <= 1000; ++pool) {
            rig.allocator.begin_capture(pool);
            const auto a = rig.allocator.malloc(3_MiB);
            REQUIRE(a);
            rig.allocator.free(a->address);
            rig.allocator.end_capture();
            rig.allocator.release_private_pool(pool);
            rig.allocator.empty_cache();
        }
        rig.check();
        CHECK(rig.reserved() == 0);
    }
}
