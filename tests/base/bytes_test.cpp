#include <doctest/doctest.h>

#include "kernels/base/bytes.hpp"

using namespace oomlab;
using namespace oomlab::literals;

// Bounds from caching_allocator.md 4.1: upper bounds are inclusive, nothing above GiB.
TEST_CASE("bytes: sizes print as PyTorch prints them") {
    CHECK(format_size(512) == "512 bytes");
    CHECK(format_size(1_KiB) == "1024 bytes");
    CHECK(format_size(1_MiB) == "1024.00 KiB");
    CHECK(format_size(1_GiB) == "1024.00 MiB");
    CHECK(format_size(4096_GiB) == "4096.00 GiB");
    CHECK(format_size(20_MiB) == "20.00 MiB");
}

TEST_CASE("bytes: sizes are read in every form people write") {
    CHECK(*parse_bytes("512MiB") == 512_MiB);
    CHECK(*parse_bytes("24 GiB") == 24_GiB);
    CHECK(*parse_bytes("80GB") == 80'000'000'000ULL);
    CHECK(*parse_bytes("1048576") == 1_MiB);
    CHECK(*parse_bytes("1.5GiB") == 1536_MiB);
    for (const char* bad : {"", "GiB", "-1", "12 parsecs", "1e30GiB", "nan"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_bytes(bad).has_value());
    }
}

TEST_CASE("bytes: rounding is exact at the edges") {
    CHECK(round_up(0, 512) == 0);
    CHECK(round_up(1, 512) == 512);
    CHECK(round_up(512, 512) == 512);
    CHECK(div_ceil(513, 512) == 2);
    CHECK(round_down(1023, 512) == 512);
}
