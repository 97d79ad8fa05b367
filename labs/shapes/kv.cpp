#include <algorithm>

#include "labs/shapes/model_shape.hpp"

namespace oomlab {
namespace {

using Mixer = LayerShape::Mixer;

double layer_bytes_per_token(const ModelShape& shape, const LayerShape& layer, u64 tp,
                             double kv_dtype_bytes) {
    if (layer.mixer == Mixer::mla) {
        const double indexer = shape.traits.indexer_head_dim > 0
                                   ? static_cast<double>(shape.traits.indexer_head_dim + 4)
                                   : 0.0;
        return static_cast<double>(shape.mla->kv_lora_rank + shape.mla->qk_rope_head_dim) *
                   kv_dtype_bytes +
               indexer;
    }
    return 2.0 *
           static_cast<double>(std::max<u64>(1, layer.kv_heads / std::max<u64>(1, tp)) *
                               layer.head_dim) *
           kv_dtype_bytes;
}

// Constant state of one recurrent layer and sequence on one rank, as vLLM pages it.
double state_bytes(const ModelShape& shape, u64 tp) {
    const double ranks = static_cast<double>(std::max<u64>(1, tp));
    if (shape.linear) {
        const LinearShape& l = *shape.linear;
        const u64 channels = 2 * l.key_heads * l.key_head_dim + l.value_heads * l.value_head_dim;
        return static_cast<double>(l.value_heads * l.key_head_dim * l.value_head_dim *
                                       l.state_dtype_bytes +
                                   (l.conv > 0 ? l.conv - 1 : 0) * channels * 2) /
               ranks;
    }
    return shape.linear_layers > 0
               ? static_cast<double>(shape.linear_state_bytes_per_seq / shape.linear_layers) / ranks
               : 0.0;
}

}  // namespace

u64 kv_bytes_per_token(const ModelShape& shape, u64 tensor_parallel_size, double kv_dtype_bytes) {
    double sum = 0;
    for (const LayerShape& layer : shape.layers)
        if (layer.has_kv())
            sum += layer_bytes_per_token(shape, layer, tensor_parallel_size, kv_dtype_bytes);
    return static_cast<u64>(sum + 0.5);
}

KvLayout kv_layout(const ModelShape& shape, u64 tensor_parallel_size, double kv_dtype_bytes,
                   u64 block_size, u64 request_tokens, u64 max_num_batched_tokens) {
    KvLayout out;
    u64 block = std::max<u64>(1, block_size);
    const u64 full = shape.full_attention_layers, sliding = shape.sliding_layers;
    const u64 linear = state_bytes(shape, tensor_parallel_size) > 0 ? shape.linear_layers : 0;
    double one_layer = 0;
    bool alike = true;
    for (const LayerShape& layer : shape.layers) {
        if (!layer.has_kv()) continue;
        const double bytes =
            layer_bytes_per_token(shape, layer, tensor_parallel_size, kv_dtype_bytes);
        if (one_layer > 0 && bytes != one_layer) alike = false;
        one_layer = std::max(one_layer, bytes);
    }
    if (linear > 0 && one_layer > 0 && block > 1)
        block = std::max(
            block,
            round_up(static_cast<u64>(state_bytes(shape, tensor_parallel_size) / one_layer) + 1,
                     16));
    out.block_tokens = block;
    const u64 need_full = div_ceil(request_tokens, block);
    const u64 in_flight =
        std::min(shape.sliding_window + max_num_batched_tokens, request_tokens + 1);
    const u64 need_sliding =
        std::min(need_full, div_ceil(in_flight > 0 ? in_flight - 1 : 0, block) + 1);
    const int kinds = (full > 0 ? 1 : 0) + (sliding > 0 ? 1 : 0) + (linear > 0 ? 1 : 0);
    // One kind, or layers of unlike page size (a few models): counted layer by layer.
    if (kinds < 2 || !alike || one_layer == 0) {
        out.group_size = full + sliding;
        out.full_groups = full > 0 || sliding == 0 ? 1 : 0;
        out.sliding_groups = 1 - out.full_groups;
        out.bytes_per_token = kv_bytes_per_token(shape, tensor_parallel_size, kv_dtype_bytes);
        out.block_bytes = out.bytes_per_token * block;
        out.blocks_per_request = out.sliding_groups > 0 ? need_sliding : need_full;
        return out;
    }
    out.group_size = ~u64{0};
    for (u64 n : {full, sliding, linear})
        if (n > 0) out.group_size = std::min(out.group_size, n);
    out.full_groups = div_ceil(full, out.group_size);
    out.sliding_groups = div_ceil(sliding, out.group_size);
    out.linear_groups = div_ceil(linear, out.group_size);
    out.groups = out.full_groups + out.sliding_groups + out.linear_groups;
    out.padding_layers = out.groups * out.group_size - full - sliding - linear;
    out.block_bytes =
        static_cast<u64>(static_cast<double>(out.group_size * block) * one_layer + 0.5);
    out.bytes_per_token =
        static_cast<u64>(static_cast<double>(out.groups * out.group_size) * one_layer + 0.5);
    out.blocks_per_request =
        out.full_groups * need_full + out.sliding_groups * need_sliding + out.linear_groups;
    return out;
}

}  // namespace oomlab
