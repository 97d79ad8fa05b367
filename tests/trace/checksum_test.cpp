#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/trace/checksum.hpp"

using namespace oomlab;

TEST_CASE("crc32c: the check value of the CRC catalogue") {
    const char* text = "123456789";
    CHECK(trace::crc32c(std::as_bytes(std::span(text, 9))) == 0xe3069283u);
    CHECK(trace::crc32c_by_table(std::as_bytes(std::span(text, 9))) == 0xe3069283u);
}

TEST_CASE("crc32c: instruction and table agree, in one piece and in two") {
    Prng prng(301);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::byte> bytes(prng.below(200));
        for (auto& b : bytes) b = static_cast<std::byte>(prng.below(256));
        const std::span<const std::byte> all(bytes);
        const std::size_t cut = prng.below(bytes.size() + 1);
        CHECK(trace::crc32c(all) == trace::crc32c_by_table(all));
        CHECK(trace::crc32c(all) == trace::crc32c(all.subspan(cut), trace::crc32c(all.first(cut))));
    }
}
