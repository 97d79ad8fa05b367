// Garbage collection frees whole cached segments by age, before the driver is asked for more. An
// age is counted in lookups of the pool since the block became free.
#include <doctest/doctest.h>

#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

TEST_SUITE("collection") {
    TEST_CASE("collection: without a cap the threshold does nothing") {
        Rig rig("garbage_collection_threshold:0.1", 1000_MiB);
        rig.free(rig.get(400_MiB));
        rig.get(500_MiB);
        CHECK(rig.reserved() == 900_MiB);
    }

    TEST_CASE("collection: above the threshold the oldest go first") {
        // Allowed 900 MiB, threshold 450 MiB.
        Rig rig("garbage_collection_threshold:0.5,per_process_memory_fraction:0.9", 1000_MiB);
        const u64 old_block = rig.get(200_MiB);
        const u64 young = rig.get(300_MiB);
        rig.free(old_block);  // age 0 at lookup 2
        rig.get(20_MiB);      // lookup 3: taken from the 200
        CHECK(rig.reserved() == 500_MiB);
        rig.free(young);   // whole and free; the 200 is split now, so no candidate
        rig.get(310_MiB);  // 500 > 450: collects the 300, then asks for 310
        CHECK(rig.stats().num_device_free == 1);
        CHECK(rig.reserved() == 510_MiB);
        CHECK(rig.stats().num_alloc_retries == 0);
    }

    TEST_CASE("collection: at the threshold nothing is collected") {
        Rig rig("garbage_collection_threshold:0.5,per_process_memory_fraction:0.9", 1000_MiB);
        rig.free(rig.get(450_MiB));
        rig.get(460_MiB - 20_MiB);
        CHECK(rig.reserved() == 450_MiB);  // fits the cached block
        rig.get(300_MiB);
        CHECK(rig.stats().num_device_free == 0);
        CHECK(rig.reserved() == 750_MiB);
    }

    TEST_CASE("collection: a pass frees all of at least mean age, even beyond the target") {
        // Allowed 900, threshold 450. Four cached segments of 150 with ages 3, 2, 1, 0 + lookups.
        Rig rig("garbage_collection_threshold:0.5,per_process_memory_fraction:0.9", 1000_MiB);
        u64 blocks[4];
        for (u64& block : blocks) block = rig.get(150_MiB);
        for (const u64 block : blocks) {
            rig.free(block);
            // A lookup that finds nothing free of its size class would allocate: 100 MiB fits and
            // is given back at once, which ages the others by one and this one not at all.
            rig.free(rig.get(100_MiB));
        }
        CHECK(rig.reserved() == 600_MiB);
        rig.get(200_MiB);
        // 150 above the threshold: those of at least mean age go, two of the four.
        CHECK(rig.stats().num_device_free == 2);
        CHECK(rig.reserved() == 500_MiB);
    }

    TEST_CASE("collection: small and expandable segments are left alone") {
        Rig rig("garbage_collection_threshold:0.1,per_process_memory_fraction:0.9", 1000_MiB);
        std::vector<u64> small;
        for (int i = 0; i < 200; ++i) small.push_back(rig.get(1_MiB));
        for (const u64 address : small) rig.free(address);
        CHECK(rig.reserved() == 200_MiB);
        rig.get(50_MiB);
        CHECK(rig.reserved() == 250_MiB);
        CHECK(rig.stats().num_device_free == 0);
    }
}
