#include <algorithm>
#include <cmath>

#include "labs/shapes/model_shape.hpp"

namespace oomlab {
namespace {

using Mixer = LayerShape::Mixer;
using Ffn = LayerShape::Ffn;
using QkNorm = WeightTraits::QkNorm;

constexpr u64 kVocabPadding = 64;

class Walker {
  public:
    // `as_loaded`: with the engine's padding and buffers; else the checkpoint's own parameters.
    Walker(const ModelShape& shape, u64 tp, bool as_loaded)
        : s_(shape), tp_(std::max<u64>(1, tp)), loaded_(as_loaded) {}

    std::vector<WeightTensor> walk() {
        const u64 vocab = loaded_ ? round_up(s_.vocab_size, kVocabPadding) : s_.vocab_size;
        layer_ = WeightTensor::kBeforeLayers;
        prefix_ = "model.";
        const bool gguf = s_.quantization == Quantization::gguf;
        add("embed_tokens.weight", shard(vocab), s_.hidden_size, gguf);
        if (s_.learned_positions)
            add("embed_positions.weight", s_.max_position_embeddings + s_.traits.extra_positions,
                s_.hidden_size, false);
        for (std::size_t i = 0; i < s_.layers.size(); ++i) one_layer(i);
        layer_ = static_cast<i64>(s_.layers.size());
        prefix_ = "model.";
        norm("norm", s_.hidden_size);
        prefix_ = "";
        if (!s_.tie_word_embeddings)
            add("lm_head.weight", shard(vocab), s_.hidden_size, gguf || s_.traits.quantize_head);
        if (s_.traits.head_bias) add("lm_head.bias", shard(vocab), 1, false);
        if (loaded_ && s_.rotary_dim > 0) {
            add("rotary_emb.cos_sin_cache", s_.max_position_embeddings, s_.rotary_dim, false);
            out_.back().buffer = true;
        }
        return std::move(out_);
    }

  private:
    u64 shard(u64 n) const { return div_ceil(n, tp_); }

    void add(const char* name, u64 rows, u64 cols, bool quantized) {
        if (rows == 0 || cols == 0) return;
        WeightTensor t;
        t.name = prefix_ + name;
        t.layer = layer_;
        t.rows = rows;
        t.cols = cols;
        t.quantized = quantized && s_.quantization != Quantization::none;
        const u64 elements = checked_mul(rows, cols);
        t.bytes =
            t.quantized
                ? static_cast<u64>(std::ceil(static_cast<double>(elements) * s_.quant_bits / 8.0))
                : checked_mul(elements, dtype_bytes(s_.dtype));
        out_.push_back(std::move(t));
    }
    void norm(const std::string& name, u64 width) {
        add((name + ".weight").c_str(), width, 1, false);
        if (s_.traits.norm_bias) add((name + ".bias").c_str(), width, 1, false);
    }

    void one_layer(std::size_t index) {
        const LayerShape& layer = s_.layers[index];
        layer_ = static_cast<i64>(index);
        prefix_ = "model.layers." + std::to_string(index) + ".";
        static constexpr const char* kNorms[] = {"input_layernorm", "post_attention_layernorm",
                                                 "pre_feedforward_layernorm",
                                                 "post_feedforward_layernorm"};
        for (u64 n = 0; n < std::min<u64>(4, s_.traits.norms_per_layer); ++n)
            norm(kNorms[n], s_.hidden_size);
        switch (layer.mixer) {
            case Mixer::full:
            case Mixer::sliding:
                attention(layer);
                break;
            case Mixer::mla:
                latent_attention();
                break;
            case Mixer::linear:
                linear_attention();
                break;
            case Mixer::mamba:
                mamba();
                break;
            case Mixer::none:
                break;
        }
        if (layer.ffn == Ffn::dense || layer.ffn == Ffn::dense_and_moe)
            dense("mlp", layer.intermediate_size, s_.traits.quantize_mlp);
        if (layer.ffn == Ffn::moe || layer.ffn == Ffn::dense_and_moe) experts();
    }

    void attention(const LayerShape& layer) {
        const bool q = s_.traits.quantize_attention;
        const u64 heads = shard(s_.num_attention_heads),
                  kv = std::max<u64>(1, layer.kv_heads / tp_);
        const u64 out = (heads * (s_.traits.output_gate ? 2 : 1) + 2 * kv) * layer.head_dim;
        add("self_attn.qkv_proj.weight", out, s_.hidden_size, q);
        if (s_.attention_bias) add("self_attn.qkv_proj.bias", out, 1, false);
        add("self_attn.o_proj.weight", s_.hidden_size, heads * layer.head_dim, q);
        if (s_.traits.output_bias) add("self_attn.o_proj.bias", s_.hidden_size, 1, false);
        if (s_.traits.qk_norm == QkNorm::head) {
            add("self_attn.q_norm.weight", layer.head_dim, 1, false);
            add("self_attn.k_norm.weight", layer.head_dim, 1, false);
        } else if (s_.traits.qk_norm == QkNorm::full) {
            add("self_attn.q_norm.weight", heads * layer.head_dim, 1, false);
            add("self_attn.k_norm.weight", kv * layer.head_dim, 1, false);
        }
        if (s_.traits.sinks) add("self_attn.sinks", heads, 1, false);
    }

    void latent_attention() {
        const MlaShape& m = *s_.mla;
        const bool q = s_.traits.quantize_attention;
        const u64 heads = shard(s_.num_attention_heads),
                  qk = m.qk_nope_head_dim + m.qk_rope_head_dim;
        if (m.q_lora_rank > 0) {
            add("self_attn.q_a_proj.weight", m.q_lora_rank, s_.hidden_size, q);  // replicated
            add("self_attn.q_a_layernorm.weight", m.q_lora_rank, 1, false);
            add("self_attn.q_b_proj.weight", heads * qk, m.q_lora_rank, q);
        } else {
            add("self_attn.q_proj.weight", heads * qk, s_.hidden_size, q);
        }
        add("self_attn.kv_a_proj_with_mqa.weight", m.kv_lora_rank + m.qk_rope_head_dim,
            s_.hidden_size, q);  // replicated
        add("self_attn.kv_a_layernorm.weight", m.kv_lora_rank, 1, false);
        add("self_attn.kv_b_proj.weight", heads * (m.qk_nope_head_dim + m.v_head_dim),
            m.kv_lora_rank, q);
        add("self_attn.o_proj.weight", s_.hidden_size, heads * m.v_head_dim, q);
        // A quantized kv_b_proj is kept a second time in 16 bit, split for the absorbed products.
        if (loaded_ && q && s_.quantization != Quantization::none) {
            add("self_attn.absorbed_kv_b", heads * (m.qk_nope_head_dim + m.v_head_dim),
                m.kv_lora_rank, false);
            out_.back().buffer = true;
        }
        const u64 ih = s_.traits.indexer_heads, id = s_.traits.indexer_head_dim;
        if (ih > 0 && id > 0 && m.q_lora_rank > 0) {
            add("self_attn.indexer.wq_b.weight", ih * id, m.q_lora_rank, q);
            add("self_attn.indexer.wk.weight", id, s_.hidden_size, q);
            add("self_attn.indexer.k_norm", 2 * id, 1, false);
            add("self_attn.indexer.weights_proj.weight", ih, s_.hidden_size, false);
        }
    }

    void linear_attention() {
        if (!s_.linear) return;
        const LinearShape& l = *s_.linear;
        const bool q = s_.traits.quantize_attention;
        const u64 key = shard(l.key_heads) * l.key_head_dim,
                  value = shard(l.value_heads) * l.value_head_dim;
        add("linear_attn.in_proj_qkvz.weight", 2 * key + 2 * value, s_.hidden_size, q);
        add("linear_attn.in_proj_ba.weight", 2 * shard(l.value_heads), s_.hidden_size, false);
        add("linear_attn.conv1d.weight", 2 * key + value, l.conv, false);
        add("linear_attn.A_log", shard(l.value_heads), 1, false);
        add("linear_attn.dt_bias", shard(l.value_heads), 1, false);
        add("linear_attn.norm.weight", l.value_head_dim, 1, false);
        add("linear_attn.out_proj.weight", s_.hidden_size, value, q);
    }

    void mamba() {
        if (!s_.mamba) return;
        const MambaShape& m = *s_.mamba;
        const bool q = s_.traits.quantize_attention;
        const u64 inner = shard(m.inner);
        if (m.version == 2) {
            const u64 heads = shard(m.heads), channels = inner + 2 * shard(m.groups) * m.state;
            add("mixer.in_proj.weight", inner + channels + heads, s_.hidden_size, q);
            add("mixer.conv1d.weight", channels, m.conv + 1, false);
            add("mixer.A_D_dt_bias", heads, 3, false);
            add("mixer.norm.weight", inner, 1, false);
        } else {
            add("mamba.in_proj.weight", 2 * inner, s_.hidden_size, q);
            add("mamba.conv1d.weight", inner, m.conv + 1, false);
            add("mamba.x_proj.weight", m.dt_rank + 2 * m.state, inner, q);
            add("mamba.dt_proj.weight", inner, m.dt_rank + 1, q);
            add("mamba.A_log", inner, m.state, false);
            add("mamba.D", inner, 1, false);
            add("mamba.layernorms", m.dt_rank + 2 * m.state, 1, false);
        }
        add("mixer.out_proj.weight", s_.hidden_size, inner, q);
    }

    void dense(const char* part, u64 width, bool quantized) {
        const u64 i = shard(width);
        const std::string up = std::string(part) + (s_.mlp_gated ? ".gate_up_proj" : ".up_proj"),
                          down = std::string(part) + ".down_proj";
        add((up + ".weight").c_str(), (s_.mlp_gated ? 2 : 1) * i, s_.hidden_size, quantized);
        if (s_.mlp_bias) add((up + ".bias").c_str(), (s_.mlp_gated ? 2 : 1) * i, 1, false);
        add((down + ".weight").c_str(), s_.hidden_size, i, quantized);
        if (s_.mlp_bias) add((down + ".bias").c_str(), s_.hidden_size, 1, false);
    }

    void experts() {
        const MoeShape& m = *s_.moe;
        const u64 width =
            shard(loaded_ ? round_up(m.intermediate_size, s_.traits.expert_width_multiple)
                          : m.intermediate_size);
        const u64 up = (s_.mlp_gated ? 2 : 1) * width;
        add("mlp.gate.weight", m.num_experts, s_.hidden_size, false);
        if (s_.traits.router_bias) add("mlp.gate.bias", m.num_experts, 1, false);
        add("mlp.experts.w13_weight", m.num_experts * up, s_.hidden_size,
            s_.traits.quantize_experts);
        add("mlp.experts.w2_weight", m.num_experts * s_.hidden_size, width,
            s_.traits.quantize_experts);
        if (s_.traits.expert_bias) {
            add("mlp.experts.w13_bias", m.num_experts * up, 1, false);
            add("mlp.experts.w2_bias", m.num_experts * s_.hidden_size, 1, false);
        }
        if (m.shared_intermediate_size > 0)
            dense("mlp.shared_experts", m.shared_intermediate_size, s_.traits.quantize_mlp);
        if (m.shared_intermediate_size > 0 && s_.traits.shared_expert_gate)
            add("mlp.shared_expert_gate.weight", 1, s_.hidden_size, false);
    }

    const ModelShape& s_;
    u64 tp_;
    bool loaded_;
    i64 layer_ = 0;
    std::string prefix_;
    std::vector<WeightTensor> out_;
};

}  // namespace

std::vector<WeightTensor> weight_tensors(const ModelShape& shape, u64 tensor_parallel_size) {
    return Walker(shape, tensor_parallel_size, true).walk();
}

std::vector<WeightTensor> parameter_tensors(const ModelShape& shape) {
    return Walker(shape, 1, false).walk();
}

u64 weights_bytes(const ModelShape& shape, u64 tensor_parallel_size) {
    return weights_bytes(shape, tensor_parallel_size, 1, 0);
}

std::pair<u64, u64> pipeline_layers(u64 layers, u64 pipeline_stages, u64 stage) {
    const u64 stages = std::max<u64>(1, pipeline_stages), each = layers / stages,
              left = layers % stages;
    // One layer more for `left` stages, ending with the one before the last.
    const auto extra = [&](u64 s) {
        return s + 1 < stages && s + 1 + left >= stages ? u64{1} : u64{0};
    };
    u64 first = 0;
    for (u64 s = 0; s < stage && s < stages; ++s) first += each + extra(s);
    return {first, first + each + (stages == 1 ? left : extra(std::min(stage, stages - 1)))};
}

u64 weights_bytes(const ModelShape& shape, u64 tensor_parallel_size, u64 pipeline_stages,
                  u64 stage) {
    const u64 stages = std::max<u64>(1, pipeline_stages);
    const auto [first, last] = pipeline_layers(shape.layers.size(), stages, stage);
    u64 sum = 0;
    for (const WeightTensor& t : weight_tensors(shape, tensor_parallel_size)) {
        const bool table = t.buffer && t.layer >= static_cast<i64>(shape.layers.size());
        bool here = t.layer >= static_cast<i64>(first) && t.layer < static_cast<i64>(last);
        if (t.layer == WeightTensor::kBeforeLayers) here = stage == 0;
        if (t.layer >= static_cast<i64>(shape.layers.size())) here = stage + 1 == stages;
        // A tied head needs the embedding on the last stage too.
        if (stages > 1 && shape.tie_word_embeddings && t.layer == WeightTensor::kBeforeLayers &&
            stage + 1 == stages)
            here = true;
        if (here || table) sum = checked_add(sum, t.bytes);
    }
    return sum;
}

}  // namespace oomlab
