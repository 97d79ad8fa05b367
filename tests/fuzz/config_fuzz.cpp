// Any bytes are a config.json: no crash, no overflow, and whatever is accepted can be budgeted.
//
//   fuzz_config -max_total_time=60 -max_len=16384 content/models
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "labs/field/budget/budget_report.hpp"
#include "labs/shapes/model_shape.hpp"
#include "tests/fuzz/fuzz_target.hpp"

using namespace oomlab;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto shape =
        parse_config_json(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (!shape) {
        for (const char c : shape.error().message)
            if (static_cast<unsigned char>(c) < 0x20) std::abort();
        return 0;
    }
    if (shape->num_hidden_layers > 64) return 0;  // more of the same, slowly
    GpuProfile gpu;
    gpu.id = gpu.name = "fuzz";
    gpu.total_bytes = 80 * kGiB;
    gpu.context_bytes = kGiB / 2;
    for (auto engine : {field::Engine::vllm, field::Engine::sglang, field::Engine::llama_cpp}) {
        field::ServerFlags flags;
        flags.engine = engine;
        auto budget = field::compute_budget(*shape, gpu, flags);
        if (!budget) continue;
        const std::string text = field::budget_text(*budget, true) + field::budget_json(*budget);
        for (const char c : text)
            if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    }
    return 0;
}
