// What every layer is: attention (full, sliding, latent), linear, state-space; dense or experts.
#include <algorithm>

#include "labs/shapes/config_parts.hpp"

namespace oomlab::config {
namespace {

using Mixer = LayerShape::Mixer;
using Ffn = LayerShape::Ffn;

Mixer mixer_from_name(const std::string& name, bool latent) {
    if (name == "sliding_attention" || name == "chunked_attention" || name == "local_attention" ||
        name == "sliding")
        return Mixer::sliding;
    if (name == "linear_attention" || name == "gated_delta_net") return Mixer::linear;
    if (name == "mamba" || name == "mamba2" || name == "conv" || name == "recurrent")
        return Mixer::mamba;
    return latent ? Mixer::mla : Mixer::full;
}

// NemotronH: one letter a layer, each layer is one block only.
void from_letters(ModelShape& shape, const std::string& letters) {
    shape.layers.resize(std::min<std::size_t>(letters.size(), Limits::kLayers));
    shape.num_hidden_layers = shape.layers.size();
    for (std::size_t i = 0; i < shape.layers.size(); ++i) {
        LayerShape& layer = shape.layers[i];
        layer = {Mixer::none, Ffn::none, shape.num_key_value_heads, shape.head_dim,
                 shape.intermediate_size};
        if (letters[i] == 'M')
            layer.mixer = Mixer::mamba;
        else if (letters[i] == '*')
            layer.mixer = Mixer::full;
        else if (letters[i] == 'E')
            layer.ffn = Ffn::moe;
        else
            layer.ffn = Ffn::dense;
    }
    shape.traits.norms_per_layer = 1;
}

// DeciLM (neural architecture search): heads and width by layer, whole parts left out.
void from_blocks(ModelShape& shape, const Json& blocks) {
    for (std::size_t i = 0; i < shape.layers.size() && i < blocks.size(); ++i) {
        LayerShape& layer = shape.layers[i];
        const Json& block = blocks[i];
        if (!block.is_object()) continue;
        auto attention = block.find("attention");
        if (attention != block.end() && attention->is_object()) {
            if (attention->value("no_op", Json(false)) == Json(true) ||
                attention->value("replace_with_linear", Json(false)) == Json(true)) {
                layer.mixer = Mixer::none;
            } else if (auto n = attention->find("n_heads_in_group");
                       n != attention->end() && n->is_number_unsigned()) {
                const u64 group = n->get<u64>();
                if (group > 0 && group <= shape.num_attention_heads)
                    layer.kv_heads = shape.num_attention_heads / group;
            }
        }
        auto ffn = block.find("ffn");
        if (ffn != block.end() && ffn->is_object()) {
            if (ffn->value("no_op", Json(false)) == Json(true) ||
                ffn->value("replace_with_linear", Json(false)) == Json(true)) {
                layer.ffn = Ffn::none;
            } else if (auto m = ffn->find("ffn_mult"); m != ffn->end() && m->is_number()) {
                const double width = 2.0 * std::clamp(m->get<double>(), 0.0, 64.0) *
                                     static_cast<double>(shape.hidden_size) / 3.0;
                layer.intermediate_size = round_up(static_cast<u64>(width), 256);
            }
        }
    }
}

void sliding_by_family(ModelShape& shape, Fields& fields) {
    if (shape.sliding_window == 0) return;
    const std::string& type = shape.model_type;
    u64 period = 0, full_at = 0;  // full where i % period == full_at
    if (type == "gemma2")
        period = 2, full_at = 1;
    else if (type == "gptoss")
        period = 2, full_at = 1;
    else if (type.rfind("gemma3", 0) == 0 || type.rfind("gemma4", 0) == 0)
        period = 6;
    else if (type == "cohere2")
        period = 4;
    else if (type.rfind("llama4", 0) == 0)
        period = 4;
    period = fields.number({"sliding_window_pattern", "_sliding_window_pattern"}, period,
                           Limits::kLayers);
    if (type != "gemma2" && type != "gptoss" && period > 0) full_at = period - 1;
    const u64 from = type.rfind("qwen2", 0) == 0 || type.rfind("qwen3", 0) == 0
                         ? fields.number({"max_window_layers"}, 0, Limits::kLayers)
                         : 0;
    for (u64 i = from; i < shape.layers.size(); ++i)
        if (shape.layers[i].has_kv() && (period == 0 || i % period != full_at))
            shape.layers[i].mixer = Mixer::sliding;
}

void choose_mixers(ModelShape& shape, Fields& fields) {
    const Mixer usual = shape.mla ? Mixer::mla : Mixer::full;
    for (LayerShape& layer : shape.layers) layer.mixer = usual;
    const auto names = fields.texts({"layer_types", "layers_block_type"});
    if (!names.empty()) {
        if (names.size() < shape.layers.size())
            fields.refuse("layer_types names " + std::to_string(names.size()) +
                          " layers, num_hidden_layers says " + std::to_string(shape.layers.size()));
        for (std::size_t i = 0; i < shape.layers.size() && i < names.size(); ++i)
            shape.layers[i].mixer = mixer_from_name(names[i], shape.mla.has_value());
        return;
    }
    if (const u64 interval = fields.number({"full_attention_interval"}, 0, Limits::kLayers);
        interval > 1 && shape.linear) {
        for (std::size_t i = 0; i < shape.layers.size(); ++i)
            if ((i + 1) % interval != 0) shape.layers[i].mixer = Mixer::linear;
        return;
    }
    if (const u64 period = fields.number({"attn_layer_period"}, 0, Limits::kLayers);
        period > 0 && shape.mamba) {
        const u64 offset = fields.number({"attn_layer_offset"}, 0, Limits::kLayers);
        for (std::size_t i = 0; i < shape.layers.size(); ++i)
            if (i % period != offset) shape.layers[i].mixer = Mixer::mamba;
        return;
    }
    if (const Json* at = fields.find({"attn_layer_indices", "full_attn_idxs"});
        at != nullptr && at->is_array()) {
        for (LayerShape& layer : shape.layers) layer.mixer = Mixer::mamba;
        for (const Json& i : *at)
            if (i.is_number_unsigned() && i.get<u64>() < shape.layers.size())
                shape.layers[i.get<u64>()].mixer = usual;
        return;
    }
    sliding_by_family(shape, fields);
}

void choose_experts(ModelShape& shape, Fields& fields) {
    if (!shape.moe) return;
    const u64 dense = fields.number({"first_k_dense_replace"}, 0, Limits::kLayers);
    const u64 sparse_step =
        std::max<u64>(1, fields.number({"decoder_sparse_step"}, 1, Limits::kLayers));
    const u64 interleave = fields.number({"interleave_moe_layer_step"}, 0, Limits::kLayers);
    const u64 period = fields.number({"expert_layer_period"}, 0, Limits::kLayers);
    const u64 offset = fields.number({"expert_layer_offset"}, 0, Limits::kLayers);
    const Json* only_dense = fields.find({"mlp_only_layers"});
    const Json* frequency = fields.find({"moe_layer_freq"});
    const bool both = fields.flag({"enable_moe_block"}, false);
    for (u64 i = 0; i < shape.layers.size(); ++i) {
        bool moe = i >= dense && (i + 1) % sparse_step == 0;
        if (interleave > 0) moe = (i + 1) % interleave == 0;
        if (period > 0) moe = i % period == offset;
        if (frequency != nullptr && frequency->is_array() && i < frequency->size())
            moe = (*frequency)[i] == Json(1);
        if (frequency != nullptr && frequency->is_number_unsigned() && frequency->get<u64>() > 1)
            moe = i >= dense && i % frequency->get<u64>() == 0;
        if (only_dense != nullptr && only_dense->is_array())
            for (const Json& index : *only_dense) moe = moe && index != Json(i);
        shape.layers[i].ffn = !moe ? Ffn::dense : both ? Ffn::dense_and_moe : Ffn::moe;
    }
    shape.moe->dense_layers = dense;
    shape.moe->layer_step = std::max({sparse_step, interleave, period, u64{1}});
}

}  // namespace

void read_experts(ModelShape& shape, Fields& fields) {
    const u64 experts = fields.number({"num_local_experts", "num_experts", "n_routed_experts",
                                       "moe_num_experts", "num_routed_experts"},
                                      0, Limits::kExperts);
    if (experts <= 1) return;
    MoeShape moe;
    moe.num_experts = experts;
    moe.experts_per_tok = fields.number({"num_experts_per_tok", "num_experts_per_token", "moe_topk",
                                         "moe_k", "top_k_experts", "moe_top_k"},
                                        0, experts);
    if (moe.experts_per_tok == 0) {
        moe.experts_per_tok = 1;
        shape.unknown.push_back(
            "num_experts_per_tok is missing: active parameters and the experts' workspace are "
            "counted for 1");
    }
    moe.intermediate_size = fields.number({"moe_intermediate_size", "expert_intermediate_size"},
                                          shape.intermediate_size, Limits::kIntermediate);
    moe.shared_experts = fields.number(
        {"n_shared_experts", "num_shared_experts", "num_shared_expert"}, 0, Limits::kExperts);
    moe.shared_intermediate_size =
        fields.number({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                       "shared_intermediate_size"},
                      moe.shared_experts * moe.intermediate_size, Limits::kIntermediate * 64);
    if (moe.shared_intermediate_size > 0 && moe.shared_experts == 0) moe.shared_experts = 1;
    if (shape.model_type.rfind("llama4", 0) == 0) {
        moe.shared_experts = 1;
        moe.shared_intermediate_size = moe.intermediate_size;
        shape.intermediate_size = fields.number({"intermediate_size_mlp"}, shape.intermediate_size,
                                                Limits::kIntermediate);
    }
    shape.moe = moe;
}

void read_latent_attention(ModelShape& shape, Fields& fields) {
    const u64 rank = fields.number({"kv_lora_rank"}, 0, Limits::kHidden);
    if (rank > 0) {
        MlaShape mla;
        mla.kv_lora_rank = rank;
        mla.q_lora_rank = fields.number({"q_lora_rank"}, 0, Limits::kHidden);
        mla.qk_nope_head_dim = fields.required({"qk_nope_head_dim"}, Limits::kHeadDim);
        mla.qk_rope_head_dim = fields.required({"qk_rope_head_dim"}, Limits::kHeadDim);
        mla.v_head_dim = fields.required({"v_head_dim"}, Limits::kHeadDim);
        shape.mla = mla;
        shape.traits.indexer_heads = fields.number({"index_n_heads"}, 0, Limits::kHeads);
        shape.traits.indexer_head_dim = fields.number({"index_head_dim"}, 0, Limits::kHeadDim);
    }
    if (fields.has({"linear_num_value_heads"})) {
        LinearShape linear;
        linear.key_heads = fields.required({"linear_num_key_heads"}, Limits::kHeads);
        linear.value_heads = fields.required({"linear_num_value_heads"}, Limits::kHeads);
        linear.key_head_dim = fields.required({"linear_key_head_dim"}, Limits::kHeadDim);
        linear.value_head_dim = fields.required({"linear_value_head_dim"}, Limits::kHeadDim);
        linear.conv = fields.number({"linear_conv_kernel_dim"}, 4, 64);
        if (fields.text({"mamba_ssm_dtype", "mamba_ssm_cache_dtype"}) == "float32")
            linear.state_dtype_bytes = 4;
        shape.linear = linear;
    }
    const bool mamba2 = fields.has({"mamba_num_heads", "mamba_n_heads"});
    if (mamba2 || fields.has({"mamba_d_state", "ssm_state_size"})) {
        MambaShape m;
        m.version = mamba2 ? 2 : 1;
        m.state = fields.number({"ssm_state_size", "mamba_d_state"}, 16, 1 << 16);
        m.conv = fields.number({"conv_kernel", "mamba_d_conv"}, 4, 64);
        m.groups =
            std::max<u64>(1, fields.number({"n_groups", "mamba_n_groups"}, 1, Limits::kHeads));
        m.heads = fields.number({"mamba_num_heads", "mamba_n_heads"}, 0, Limits::kHeads);
        m.head_dim = fields.number({"mamba_head_dim", "mamba_d_head"}, 64, Limits::kHeadDim);
        const u64 expand = fields.number({"mamba_expand", "expand"}, 2, 64);
        m.inner = mamba2 ? m.heads * m.head_dim : expand * shape.hidden_size;
        m.dt_rank =
            fields.number({"mamba_dt_rank"}, div_ceil(shape.hidden_size, 16), Limits::kHidden);
        m.state_dtype_bytes = fields.text({"mamba_ssm_cache_dtype", "ssm_cache_dtype"}) == "float32"
                                  ? 4
                              : mamba2 ? 2
                                       : 4;
        shape.mamba = m;
    }
}

void read_layers(ModelShape& shape, Fields& fields) {
    shape.layers.assign(shape.num_hidden_layers,
                        LayerShape{Mixer::full, Ffn::dense, shape.num_key_value_heads,
                                   shape.head_dim, shape.intermediate_size});
    if (const std::string letters = fields.text({"hybrid_override_pattern"}); !letters.empty()) {
        from_letters(shape, letters);
    } else {
        choose_mixers(shape, fields);
        choose_experts(shape, fields);
        if (const Json* blocks = fields.find({"block_configs"});
            blocks != nullptr && blocks->is_array())
            from_blocks(shape, *blocks);
    }
    // Gemma 4: the full layers have their own heads.
    const u64 wide_dim = fields.number({"global_head_dim"}, 0, Limits::kHeadDim);
    const u64 wide_heads = fields.number({"num_global_key_value_heads"}, 0, Limits::kHeads);
    for (LayerShape& layer : shape.layers) {
        if (layer.mixer == Mixer::full && wide_dim > 0) layer.head_dim = wide_dim;
        if (layer.mixer == Mixer::full && wide_heads > 0) layer.kv_heads = wide_heads;
        if (layer.mixer == Mixer::sliding)
            ++shape.sliding_layers;
        else if (layer.has_kv())
            ++shape.full_attention_layers;
        if (layer.mixer == Mixer::linear || layer.mixer == Mixer::mamba) ++shape.linear_layers;
        if (layer.ffn == Ffn::moe && !shape.moe) layer.ffn = Ffn::dense;
    }
    if (shape.sliding_layers == 0) shape.sliding_window = 0;
    const u64 linear = static_cast<u64>(
        std::count_if(shape.layers.begin(), shape.layers.end(),
                      [](const LayerShape& l) { return l.mixer == Mixer::linear; }));
    if (linear > 0 && shape.linear) {
        const LinearShape& l = *shape.linear;
        const u64 channels = 2 * l.key_heads * l.key_head_dim + l.value_heads * l.value_head_dim;
        shape.linear_state_bytes_per_seq +=
            linear * (l.value_heads * l.key_head_dim * l.value_head_dim * 4 +
                      (l.conv > 0 ? l.conv - 1 : 0) * channels * 2);
    } else if (linear > 0) {
        shape.unknown.push_back(
            "linear attention layers without linear_num_value_heads: their weights and state are "
            "not counted");
    }
    const u64 mamba = shape.linear_layers - linear;
    if (mamba > 0 && shape.mamba) {
        const MambaShape& m = *shape.mamba;
        const u64 channels = m.version == 2 ? m.inner + 2 * m.groups * m.state : m.inner;
        const u64 conv = (m.conv > 0 ? m.conv - 1 : 0) * channels * 2;
        shape.linear_state_bytes_per_seq +=
            mamba * (m.inner * m.state * m.state_dtype_bytes + conv);
    } else if (mamba > 0) {
        shape.unknown.push_back(
            "state-space or convolution layers whose sizes the config does not give: their weights "
            "and state are not counted");
    }
}

}  // namespace oomlab::config
