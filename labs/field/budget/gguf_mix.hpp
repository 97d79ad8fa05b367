// GGUF file types as llama.cpp's quantizer mixes them: which tensors get how many bits.
#pragma once

#include <optional>
#include <string>

#include "labs/shapes/model_shape.hpp"

namespace oomlab::field {

struct GgufWeights {
    u64 gpu_bytes = 0;      // "CUDA0 model buffer size" with all layers offloaded
    u64 host_bytes = 0;     // the token embedding stays on the CPU
    bool exact_mix = true;  // false: one bit width for the whole file (its measured mean)
};

// "Q4_K_M", "Q8_0", "F16", "IQ4_XS", ... nullopt for an unknown name. `layers_on_gpu`: -ngl; the
// output head counts as one layer more.
std::optional<GgufWeights> gguf_weights(const ModelShape& shape, const std::string& type,
                                        u64 layers_on_gpu);

}  // namespace oomlab::field
