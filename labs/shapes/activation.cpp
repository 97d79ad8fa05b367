#include <algorithm>

#include "labs/shapes/model_shape.hpp"

namespace oomlab {

ActivationPeak activation_peak(const ModelShape& shape, u64 tokens, u64 seqs,
                               u64 tensor_parallel_size, const EngineVersion& version) {
    const u64 tp = std::max<u64>(1, tensor_parallel_size);
    // Sizes are those of 16-bit activations; a 32-bit model doubles them.
    const double width = static_cast<double>(dtype_bytes(shape.dtype)) / 2.0;
    u64 intermediate = 0;
    for (const LayerShape& layer : shape.layers)
        if (layer.ffn == LayerShape::Ffn::dense || layer.ffn == LayerShape::Ffn::dense_and_moe)
            intermediate = std::max(intermediate, layer.intermediate_size);
    if (shape.moe) intermediate = std::max(intermediate, shape.moe->shared_intermediate_size);
    const double t = static_cast<double>(tokens), s = static_cast<double>(std::min(seqs, tokens));
    const double h = static_cast<double>(shape.hidden_size),
                 i = static_cast<double>(intermediate) / static_cast<double>(tp);
    const double v = static_cast<double>(round_up(shape.vocab_size, 64));
    ActivationPeak peak;
    peak.mlp_bytes = static_cast<u64>(t * ((shape.mlp_gated ? 6.0 : 4.0) * i + 8.0 * h) * width);
    // Fitted: 38 bytes a logit with the sorting sampler, 14.4 without (0.17 and later).
    const double c = version.at_least(0, 17) ? 14.4 : 38.0;
    peak.sampler_bytes = static_cast<u64>(c * s * v + 4.0 * t * h * width);
    if (shape.moe) {
        const double k = static_cast<double>(shape.moe->experts_per_tok);
        const double moe =
            static_cast<double>(shape.moe->intermediate_size) / static_cast<double>(tp);
        peak.moe_workspace_bytes = static_cast<u64>(t * k * (2.0 * moe + h) * 2.0 * width);
    }
    const bool added = version.at_least(0, 17) && shape.quantization != Quantization::mxfp4;
    const u64 mlp = peak.mlp_bytes + (added ? 0 : peak.moe_workspace_bytes);
    peak.sampler_moment = peak.sampler_bytes > mlp;
    peak.peak_bytes = std::max(mlp, peak.sampler_bytes) + (added ? peak.moe_workspace_bytes : 0);
    return peak;
}

}  // namespace oomlab
