#include <doctest/doctest.h>

#include "labs/server/memory/detail/rounding.hpp"
#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::literals;
using oomlab::memory::round_size;
using oomlab::memory::segment_size;

TEST_SUITE("rounding") {
    TEST_CASE("rounding: sizes are multiples of 512, never below") {
        const AllocConf conf;
        CHECK(round_size(conf, 1) == 512);
        CHECK(round_size(conf, 511) == 512);
        CHECK(round_size(conf, 512) == 512);
        CHECK(round_size(conf, 513) == 1024);
        CHECK(round_size(conf, 10_MiB - 1) == 10_MiB);
    }

    TEST_CASE("rounding: a request decides the segment it may come from") {
        const AllocConf conf;
        CHECK(segment_size(conf, 512) == 2_MiB);
        CHECK(segment_size(conf, 1_MiB) == 2_MiB);
        CHECK(segment_size(conf, 1_MiB + 512) == 20_MiB);
        CHECK(segment_size(conf, 10_MiB - 512) == 20_MiB);
        CHECK(segment_size(conf, 10_MiB) == 10_MiB);
        CHECK(segment_size(conf, 10_MiB + 512) == 12_MiB);
        CHECK(segment_size(conf, 3_GiB + 1_MiB) == 3_GiB + 2_MiB);
        const AllocConf smaller = testing::conf_of("large_segment_size_mb:12");
        CHECK(segment_size(smaller, 2_MiB) == 12_MiB);
        CHECK(segment_size(smaller, 10_MiB) == 10_MiB);
    }

    TEST_CASE("rounding: divisions of a power of two") {
        const AllocConf conf = testing::conf_of("roundup_power2_divisions:4");
        CHECK(round_size(conf, 1200_KiB) == 1280_KiB);  // 1024 + 256
        CHECK(round_size(conf, 5_MiB) == 5_MiB);        // a step of 1 MiB
        CHECK(round_size(conf, 9_MiB) == 10_MiB);       // a step of 2 MiB
        CHECK(round_size(conf, 33_MiB) == 40_MiB);
        CHECK(round_size(conf, 64_MiB) == 64_MiB);  // a power of two stays
        CHECK(round_size(conf, 2048) == 2048);      // not above 512 x 4: the quantum alone
        CHECK(round_size(conf, 2049) == 2560);      // a step of 512
    }

    TEST_CASE("rounding: key 256 governs 256 to 512 MiB") {
        const AllocConf conf =
            testing::conf_of("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
        CHECK(round_size(conf, 300_MiB) == 300_MiB);            // 1: off
        CHECK(round_size(conf, 600_MiB) == 768_MiB);            // halves of 512
        CHECK(round_size(conf, 1100_MiB) == 1280_MiB);          // quarters of 1024
        CHECK(round_size(conf, 2_GiB + 1) == 2_GiB + 256_MiB);  // eighths of 2048
    }
}
