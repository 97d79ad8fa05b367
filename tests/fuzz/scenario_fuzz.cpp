// Any bytes are a scenario: it loads, or is refused in one line that is safe on a terminal.
//
//   fuzz_scenario -max_total_time=60 -max_len=8192 content/scenarios
#include <cstdlib>
#include <string_view>

#include "labs/catalog/scenario.hpp"
#include "tests/fuzz/fuzz_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto s = oomlab::parse_scenario(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml");
    if (s) {
        if (!(s->server.gpu_memory_utilization > 0 && s->server.gpu_memory_utilization <= 1)) std::abort();
        if (s->server.block_size == 0 || s->fix.size() > 2) std::abort();
        return 0;
    }
    for (const char c : s.error().message) {
        if (static_cast<unsigned char>(c) < 0x20) std::abort();
    }
    return 0;
}
