// Any bytes are a command, a manifest or a compose file: no crash, no hang, nothing unprintable.
//
//   fuzz_preflight -max_total_time=60 -max_len=16384 CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "labs/field/preflight/checklist.hpp"
#include "labs/field/preflight/yaml_subset.hpp"
#include "tests/fuzz/fuzz_target.hpp"

using namespace oomlab::field;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)parse_yaml_subset(text, "fuzz").has_value();
    auto deployment = deployment_from_text(text, "fuzz");
    const std::string shown = deployment ? preflight_text(check_deployment(*deployment, {})) +
                                               preflight_json(check_deployment(*deployment, {}))
                                         : deployment.error().message;
    for (const char c : shown)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    return 0;
}
