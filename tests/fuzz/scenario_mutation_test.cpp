#include <doctest/doctest.h>

#include "labs/catalog/text_file.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/mutate.hpp"

TEST_CASE("scenario fuzz: mutated scenarios load or are refused in one clean line") {
    oomlab::Prng prng(21);
    for (const char* name : {"type1-l4", "type2-l4-fails", "type3-l4", "type4-l4-fails", "type5-fails", "type6-l4-fails"}) {
        const auto text = oomlab::read_text_file(std::string(OOMLAB_SOURCE_DIR) + "/content/scenarios/" + name + ".toml");
        REQUIRE(text.has_value());
        for (int round = 0; round < 300; ++round) {
            const std::string input = oomlab::test::mutate(prng, *text);
            CAPTURE(name);
            CAPTURE(round);
            CHECK(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()) == 0);
        }
    }
}
