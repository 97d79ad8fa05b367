// Any bytes are samples: no crash, no hang, nothing unprintable in a report.
//
//   fuzz_leak -max_total_time=60 -max_len=65536 CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "labs/field/leak/leak.hpp"
#include "tests/fuzz/fuzz_target.hpp"

using namespace oomlab::field;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ReadOptions options;
    if (size > 0 && data[0] % 2 == 1) options.every_s = 10;
    auto table =
        read_samples(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz", options);
    const std::string shown =
        table ? leak_text(find_leak(*table, {}), true) + leak_json(find_leak(*table, {}))
              : table.error().message;
    for (const char c : shown)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    return 0;
}
