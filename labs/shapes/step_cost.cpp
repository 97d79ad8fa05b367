#include <algorithm>
#include <cmath>

#include "labs/shapes/model_shape.hpp"

namespace oomlab {

StepCost step_cost(const ModelShape& shape, u64 new_tokens, u64 sampled_rows, u64 context_tokens,
                   u64 kv_tokens_read, u64 tensor_parallel_size, double kv_dtype_bytes) {
    const double tp = static_cast<double>(std::max<u64>(1, tensor_parallel_size));
    const double t = static_cast<double>(new_tokens), rows = static_cast<double>(sampled_rows);
    const double h = static_cast<double>(shape.hidden_size),
                 v = static_cast<double>(shape.vocab_size);
    const double embedding = h * v;
    double expert_params = 0, attention_layers = 0, widest = 0;
    for (const LayerShape& layer : shape.layers) {
        if (layer.ffn == LayerShape::Ffn::moe || layer.ffn == LayerShape::Ffn::dense_and_moe)
            expert_params += static_cast<double>(shape.moe->num_experts) *
                             (shape.mlp_gated ? 3.0 : 2.0) * h *
                             static_cast<double>(shape.moe->intermediate_size);
        if (layer.has_kv()) attention_layers += 1;
        widest = std::max(widest, static_cast<double>(layer.intermediate_size));
    }
    const double rest = static_cast<double>(shape.total_params) - expert_params -
                        embedding * (shape.tie_word_embeddings ? 1.0 : 2.0);
    double used_share = 1, touched_share = 1;
    if (shape.moe) {
        const double e = static_cast<double>(shape.moe->num_experts),
                     k = static_cast<double>(shape.moe->experts_per_tok);
        used_share = k / e;
        touched_share = 1.0 - std::pow(1.0 - k / e, t);  // experts that at least one token picks
    }
    const double head_dim =
        shape.mla ? static_cast<double>(shape.mla->kv_lora_rank + shape.mla->qk_rope_head_dim)
                  : static_cast<double>(shape.head_dim);
    const double score_flops = 4.0 * static_cast<double>(shape.num_attention_heads) * head_dim *
                               attention_layers * static_cast<double>(context_tokens);
    StepCost cost;
    cost.flops = (2.0 * t * (std::max(0.0, rest) + expert_params * used_share) +
                  2.0 * rows * embedding + score_flops) /
                 tp;
    const double weight_bytes = shape.quantization == Quantization::none
                                    ? static_cast<double>(dtype_bytes(shape.dtype))
                                    : shape.quant_bits / 8.0;
    const double weights =
        (std::max(0.0, rest) + expert_params * touched_share) * weight_bytes +
        (rows > 0 ? embedding * static_cast<double>(dtype_bytes(shape.dtype)) : 0.0);
    const double kv =
        static_cast<double>(kv_bytes_per_token(shape, tensor_parallel_size, kv_dtype_bytes)) *
        static_cast<double>(kv_tokens_read + new_tokens);
    // Every layer reads and writes its residual, projections and product once.
    const double activations =
        t * static_cast<double>(shape.layers.size()) * (6.0 * widest / tp + 16.0 * h);
    cost.bytes = weights / tp + kv + activations;
    cost.eight_bit =
        shape.quantization == Quantization::fp8 || shape.quantization == Quantization::w8a8_int8;
    return cost;
}

}  // namespace oomlab
