#include <doctest/doctest.h>

#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/mutate.hpp"

TEST_CASE("allocator fuzz: mutated settings and calls keep every invariant") {
    static constexpr const char* kSettings[] = {
        "", "expandable_segments:True", "max_split_size_mb:20,max_non_split_rounding_mb:1",
        "garbage_collection_threshold:0.5,per_process_memory_fraction:0.5",
        "roundup_power2_divisions:[64:8,256:4,>:2],large_segment_size_mb:12"};
    oomlab::Prng prng(20);
    for (int round = 0; round < 400; ++round) {
        std::string input = kSettings[prng.below(std::size(kSettings))];
        input += '\n';
        for (int i = 0; i < 200; ++i) input += static_cast<char>(prng.below(256));
        if (prng.chance(0.5)) input = oomlab::test::mutate(prng, std::move(input));
        CAPTURE(round);
        CHECK(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()),
                                     input.size()) == 0);
    }
}
