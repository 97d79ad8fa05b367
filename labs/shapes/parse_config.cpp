// config.json -> ModelShape: the family's habits first, then what the file says.
#include <algorithm>

#include "labs/shapes/config_parts.hpp"
#include "labs/shapes/families.hpp"

namespace oomlab {
namespace {

using config::Fields;
using config::Limits;
using config::Family;
using config::kFamilies;
using QkNorm = WeightTraits::QkNorm;

std::string plain(std::string text) {
    std::string out;
    for (char c : text)
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out += c;
        else if (c >= 'A' && c <= 'Z')
            out += static_cast<char>(c - 'A' + 'a');
    return out;
}

const Family* find_family(const std::string& type) {
    for (const Family& f : kFamilies)
        if (type == f.type) return &f;
    return nullptr;
}

// model_type of the text part, then of the whole, then the architecture's name without its ending.
const Family* family_of(ModelShape& shape, const Fields& fields) {
    std::vector<std::string> candidates;
    if (const auto* inner = fields.find_here({"model_type"});
        inner != nullptr && inner->is_string())
        candidates.push_back(plain(inner->get<std::string>()));
    if (auto outer = fields.outer().find("model_type");
        outer != fields.outer().end() && outer->is_string())
        candidates.push_back(plain(outer->get<std::string>()));
    std::string architecture = shape.architecture;
    for (const char* ending : {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "Model"})
        if (auto at = architecture.find(ending); at != std::string::npos) architecture.resize(at);
    if (!architecture.empty()) candidates.push_back(plain(architecture));
    for (const std::string& type : candidates)
        if (const Family* f = find_family(type)) {
            shape.model_type = type;
            return f;
        }
    if (!candidates.empty()) shape.model_type = candidates.front();
    return nullptr;
}

DType read_dtype(ModelShape& shape, const Fields& fields) {
    std::string text = fields.text({"torch_dtype", "dtype"});
    if (auto dot = text.rfind('.'); dot != std::string::npos) text = text.substr(dot + 1);
    if (text == "float16" || text == "half") return DType::f16;
    if (text == "float32" || text == "float") return DType::f32;
    if (text.empty() && shape.quantization == Quantization::none)
        shape.unknown.push_back("torch_dtype is missing: counted as bfloat16");
    return DType::bf16;
}

void read_traits(ModelShape& shape, Fields& fields, const Family& family) {
    WeightTraits& t = shape.traits;
    const std::string& type = shape.model_type;
    t.qk_norm = family.qk_norm;
    t.norms_per_layer = family.norms;
    t.norm_bias = family.norm_bias;
    t.output_bias = family.output_bias;
    shape.mlp_gated = family.gated;
    shape.attention_bias = family.qkv_bias;
    if (const auto* bias = fields.find(
            {"attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias", "bias", "use_bias"});
        bias != nullptr && bias->is_boolean()) {
        const bool on = bias->get<bool>();
        const bool says_nothing = type.rfind("qwen2", 0) == 0 || type == "opt" || type == "mpt";
        if (!says_nothing) {
            shape.attention_bias = on;
            if (type == "llama" || type == "internlm" || type == "starcoder2" || type == "gptoss")
                t.output_bias = on;
        }
    }
    shape.mlp_bias =
        fields.flag({"mlp_bias"}, !family.gated && (family.output_bias || type == "gptj"));
    if (type == "starcoder2") shape.mlp_bias = fields.flag({"use_bias"}, true);
    if (type == "phi") t.head_bias = true;
    if (type == "falcon") {
        t.norms_per_layer =
            fields.flag({"new_decoder_architecture"}, shape.num_attention_heads > 100) ? 2 : 1;
        if (!fields.flag({"parallel_attn"}, true)) t.norms_per_layer = 2;
    }
    if (fields.flag({"use_qk_norm", "qk_layernorm"}, t.qk_norm != QkNorm::none)) {
        if (t.qk_norm == QkNorm::none)
            t.qk_norm = type.rfind("cohere", 0) == 0 ? QkNorm::full : QkNorm::head;
    } else {
        t.qk_norm = QkNorm::none;
    }
    shape.qk_norm = t.qk_norm != QkNorm::none;
    if (type == "gptoss") t.sinks = t.router_bias = t.expert_bias = true;
    if (type == "qwen2moe" || type == "qwen3next" || type.rfind("qwen35", 0) == 0)
        t.shared_expert_gate = true;
    if (type == "qwen3next" || type.rfind("qwen35", 0) == 0)
        t.output_gate = fields.flag({"attn_output_gate"}, true);
    shape.learned_positions = type == "opt" || type == "gpt2" || type == "gptbigcode";
    t.extra_positions = type == "opt" ? 2 : 0;
    double share = family.rotary;
    if (share > 0 && share <= 1)
        share = std::clamp(fields.real({"partial_rotary_factor", "rotary_pct"}, share), 0.0, 1.0);
    const u64 rotated = shape.mla ? shape.mla->qk_rope_head_dim : shape.head_dim;
    shape.rotary_dim = static_cast<u64>(share * static_cast<double>(rotated));
}

void read_heads(ModelShape& shape, Fields& fields) {
    const bool falcon = shape.model_type == "falcon";
    const bool new_falcon = fields.flag({"new_decoder_architecture"}, false);
    u64 kv = shape.num_attention_heads;
    if ((falcon && !new_falcon && fields.flag({"multi_query"}, true)) ||
        (shape.model_type == "gptbigcode" && fields.flag({"multi_query"}, true)))
        kv = 1;
    else
        kv = fields.number({"num_key_value_heads", "num_kv_heads", "n_head_kv",
                            "multi_query_group_num", "n_kv_heads"},
                           kv, Limits::kHeads);
    if (const auto* attention = fields.find({"attn_config"});
        attention != nullptr && attention->is_object()) {
        auto it = attention->find("kv_n_heads");  // DBRX, MPT
        if (it != attention->end() && it->is_number_unsigned() && it->get<u64>() <= Limits::kHeads)
            kv = it->get<u64>();
    }
    shape.num_key_value_heads = kv;
    if (kv == 0) fields.refuse("num_key_value_heads is 0: a model needs at least 1");
    if (kv > shape.num_attention_heads)
        fields.refuse(
            "num_key_value_heads = " + std::to_string(kv) +
            " is more than num_attention_heads = " + std::to_string(shape.num_attention_heads));
    shape.head_dim =
        fields.number({"head_dim", "kv_channels", "attention_head_dim"}, 0, Limits::kHeadDim);
    if (shape.head_dim == 0 && shape.num_attention_heads > 0) {
        shape.head_dim = shape.hidden_size / shape.num_attention_heads;
        if (shape.head_dim == 0) fields.refuse("hidden_size is smaller than num_attention_heads");
    }
}

void read_width(ModelShape& shape, Fields& fields) {
    shape.intermediate_size =
        fields.number({"intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", "inner_size"},
                      0, Limits::kIntermediate);
    if (const auto* ffn = fields.find({"ffn_config"});
        ffn != nullptr && ffn->is_object()) {  // DBRX
        auto it = ffn->find("ffn_hidden_size");
        if (it != ffn->end() && it->is_number_unsigned() && it->get<u64>() <= Limits::kIntermediate)
            shape.intermediate_size = it->get<u64>();
    }
    if (shape.intermediate_size > 0) return;
    const std::string& type = shape.model_type;
    if (type == "falcon" || type == "gpt2" || type == "gptbigcode" || type == "bloom" ||
        type == "mpt" || type == "gptj")
        shape.intermediate_size = 4 * shape.hidden_size;
    else if (!fields.has({"moe_intermediate_size", "block_configs"}))
        fields.refuse(
            "intermediate_size is missing (looked for intermediate_size, ffn_dim, ffn_hidden_size, "
            "n_inner); give the model's own config.json");
}

void name_what_is_not_counted(ModelShape& shape, const Fields& fields, bool known_family) {
    auto& unknown = shape.unknown;
    if (!known_family)
        unknown.push_back(
            "architecture '" +
            config::printable(shape.architecture.empty() ? shape.model_type : shape.architecture) +
            "' is not known: counted as a Llama-like decoder with the sizes given");
    if (fields.has(
            {"vision_config", "visual", "vision_tower", "mm_vision_tower", "vision_config_dict"}))
        unknown.push_back(
            "vision tower: its weights, encoder run and encoder cache are not counted");
    if (fields.has({"audio_config", "speech_config"}))
        unknown.push_back("audio tower: its weights and encoder run are not counted");
    if (shape.model_type == "mllama" || shape.model_type == "mllamatextmodel")
        unknown.push_back("cross-attention layers: counted as self-attention layers");
    if (fields.has({"num_kv_shared_layers"}))
        unknown.push_back(
            "layers that share KV (num_kv_shared_layers) are counted with KV of their own");
    if (shape.model_type.rfind("gemma4", 0) == 0)
        unknown.push_back(
            "Gemma 4: keys shared with values and per-layer parts are counted as plain attention");
    if (shape.traits.indexer_head_dim > 0)
        unknown.push_back(
            "sparse attention's indexer: its cache is counted as index_head_dim + 4 bytes a token "
            "and layer");
    if (shape.model_type.rfind("deepseekv4", 0) == 0)
        unknown.push_back(
            "compressed attention of DeepSeek V4: KV and parameters could not be worked out");
}

double rough_parameters(const ModelShape& s) {
    const auto d = [](u64 n) { return static_cast<double>(n); };
    const double attention = d(s.hidden_size) * d(s.head_dim) * 2 *
                             (d(s.num_attention_heads) + d(s.num_key_value_heads));
    double ffn = 3 * d(s.hidden_size) * d(s.intermediate_size);
    if (s.moe)
        ffn += 3 * d(s.hidden_size) *
               (d(s.moe->num_experts) * d(s.moe->intermediate_size) +
                d(s.moe->shared_intermediate_size));
    double latent = 0;
    if (s.mla)
        latent = d(s.mla->kv_lora_rank + s.mla->q_lora_rank) * d(s.num_attention_heads) *
                 d(s.mla->qk_nope_head_dim + s.mla->qk_rope_head_dim + s.mla->v_head_dim);
    double mixers = 0;
    if (s.mamba)
        mixers += 6 * d(s.hidden_size) * d(s.mamba->inner) +
                  4 * d(s.mamba->inner) * d(s.mamba->state + s.mamba->dt_rank);
    if (s.linear)
        mixers += 6 * d(s.hidden_size) *
                  (d(s.linear->key_heads) * d(s.linear->key_head_dim) +
                   d(s.linear->value_heads) * d(s.linear->value_head_dim));
    return d(s.num_hidden_layers) * (attention + ffn + latent + mixers) +
           2 * d(s.hidden_size) * d(s.vocab_size) + d(s.max_position_embeddings) * d(s.head_dim);
}

}  // namespace

Result<ModelShape> parse_config_json(std::string_view json, const std::string& name) {
    OOMLAB_TRY(fields, Fields::parse(json, name));
    ModelShape shape;
    shape.name = fields.text({"_name_or_path"});
    if (shape.name.empty()) shape.name = name;
    auto architectures = fields.texts({"architectures"});
    if (!architectures.empty()) shape.architecture = config::printable(architectures.front());
    const Family* known = family_of(shape, fields);
    const Family& family = known != nullptr ? *known : kFamilies[0];

    shape.hidden_size = fields.required({"hidden_size", "n_embd", "d_model"}, Limits::kHidden);
    shape.num_hidden_layers = fields.required(
        {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, Limits::kLayers);
    shape.num_attention_heads =
        fields.required({"num_attention_heads", "n_head", "n_heads"}, Limits::kHeads);
    shape.vocab_size = fields.required({"vocab_size", "padded_vocab_size"}, Limits::kVocab);
    if (shape.model_type == "chatglm")
        shape.vocab_size = fields.number({"padded_vocab_size"}, shape.vocab_size, Limits::kVocab);
    shape.max_position_embeddings =
        fields.number({"max_position_embeddings", "n_positions", "seq_length", "max_seq_len",
                       "max_sequence_length", "n_ctx"},
                      0, Limits::kPositions);
    if (shape.max_position_embeddings == 0) {
        shape.max_position_embeddings = 2048;
        shape.unknown.push_back("max_position_embeddings is missing: 2048 is assumed");
    }
    read_heads(shape, fields);
    read_width(shape, fields);
    shape.sliding_window =
        fields.number({"sliding_window", "attention_chunk_size"}, 0, Limits::kPositions);
    if (!fields.flag({"use_sliding_window"}, shape.model_type.rfind("qwen", 0) != 0) ||
        shape.model_type == "phi3")
        shape.sliding_window = 0;
    config::read_experts(shape, fields);
    config::read_latent_attention(shape, fields);
    shape.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, family.tied);
    shape.rope_theta = fields.real({"rope_theta"}, 10000);
    if (fields.error()) return fail(*fields.error());
    config::read_layers(shape, fields);
    read_traits(shape, fields, family);
    config::read_quantization(shape, fields);
    shape.dtype = read_dtype(shape, fields);
    name_what_is_not_counted(shape, fields, known != nullptr);
    if (fields.error()) return fail(*fields.error());
    if (rough_parameters(shape) > Limits::kParameters)
        return fail(Error::parse(
            name +
            ": these sizes make more than 10^14 parameters: one of them has a wrong digit count"));

    u64 total = 0;
    for (const WeightTensor& t : parameter_tensors(shape)) total += t.rows * t.cols;
    shape.total_params = total;
    if (const u64 mtp = fields.number(
            {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"}, 0, 64);
        mtp > 0)
        shape.mtp_params = mtp * (total / std::max<u64>(1, shape.num_hidden_layers));
    return shape;
}

}  // namespace oomlab
