// A model as arithmetic: what a Hugging Face config.json says, and the bytes that follow from it.
// Pure: no device, no server. Used by the server (to allocate), by `budget` and by the grader.
// Weights are exact by construction; the activation law is fitted and says so where it is used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"
#include "kernels/device/ops.hpp"

namespace oomlab {

enum class Quantization { none, fp8, w8a8_int8, gptq, awq, bitsandbytes, mxfp4, nvfp4, gguf };
const char* quantization_name(Quantization q);  // vLLM's spelling: "fp8", "awq", "bitsandbytes"

struct MoeShape {
    u64 num_experts = 0, experts_per_tok = 0, intermediate_size = 0;
    u64 shared_experts = 0, shared_intermediate_size = 0;
    u64 dense_layers = 0;  // the first layers without experts
    u64 layer_step = 1;    // experts in every n-th layer
};
struct MlaShape {
    u64 kv_lora_rank = 0, q_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0,
        v_head_dim = 0;
};

// Linear attention (gated delta net) and state-space layers: weights and a constant state, no KV.
struct LinearShape {
    u64 key_heads = 0, value_heads = 0, key_head_dim = 0, value_head_dim = 0, conv = 4;
    u64 state_dtype_bytes = 2;  // in vLLM; llama.cpp keeps 4
};
struct MambaShape {
    u64 version = 2, heads = 0, head_dim = 0, state = 0, groups = 1, conv = 4, inner = 0,
        dt_rank = 0;
    u64 state_dtype_bytes = 4;
};
// What one layer is made of. Mixed models (sliding, linear, experts in every n-th) differ by layer.
struct LayerShape {
    enum class Mixer : unsigned char { full, sliding, mla, linear, mamba, none };
    enum class Ffn : unsigned char { none, dense, moe, dense_and_moe };
    Mixer mixer = Mixer::full;
    Ffn ffn = Ffn::dense;
    u64 kv_heads = 0, head_dim = 0, intermediate_size = 0;
    bool has_kv() const {
        return mixer == Mixer::full || mixer == Mixer::sliding || mixer == Mixer::mla;
    }
};
// Small parts in which families differ; each is a tensor or two a layer.
struct WeightTraits {
    enum class QkNorm : unsigned char { none, head, full };
    QkNorm qk_norm = QkNorm::none;  // one weight of head_dim, or one of all heads
    u64 norms_per_layer = 2;
    bool norm_bias = false, output_bias = false, head_bias = false;
    bool output_gate = false;  // attention output gate: doubles the query projection
    bool sinks = false;        // one learned logit a head
    bool router_bias = false, expert_bias = false, shared_expert_gate = false;
    u64 extra_positions = 0;  // OPT's learned positions start at 2
    bool quantize_attention = true, quantize_mlp = true, quantize_experts = true,
         quantize_head = false;
    u64 expert_width_multiple = 1;                // MXFP4 kernels pad the experts' width
    u64 indexer_heads = 0, indexer_head_dim = 0;  // DeepSeek sparse attention
};

struct ModelShape {
    std::string name;          // "meta-llama/Meta-Llama-3.1-8B"
    std::string architecture;  // "LlamaForCausalLM"
    std::string model_type;
    u64 hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
    u64 num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0, vocab_size = 0;
    u64 max_position_embeddings = 0;
    bool tie_word_embeddings = false;
    bool mlp_gated = true;
    bool attention_bias = false, mlp_bias = false, qk_norm = false;
    bool learned_positions = false;
    double rope_theta = 10000;
    u64 rotary_dim = 0;  // 0: head_dim
    DType dtype = DType::bf16;
    std::optional<MoeShape> moe;
    std::optional<MlaShape> mla;
    u64 sliding_window = 0;  // 0: none
    u64 sliding_layers = 0;  // layers with the window (of num_hidden_layers)
    u64 full_attention_layers =
        0;                  // layers with a growing KV cache; the rest are sliding or linear
    u64 linear_layers = 0;  // recurrent or linear attention: constant state
    u64 linear_state_bytes_per_seq = 0;
    Quantization quantization = Quantization::none;
    double quant_bits = 16;  // bits per quantized weight, scales included
    u64 quant_group = 0;
    u64 total_params = 0;            // by formula
    u64 mtp_params = 0;              // loaded only for speculative decoding
    std::vector<LayerShape> layers;  // num_hidden_layers of them
    WeightTraits traits;
    std::optional<LinearShape> linear;
    std::optional<MambaShape> mamba;
    std::vector<std::string> unknown;  // what could not be worked out, in words
};

// Reads a config.json (nested text_config understood). `name` is used in errors and as the name.
// On failure: Error::parse with file, key and remedy (missing or absurd fields).
Result<ModelShape> parse_config_json(std::string_view json, const std::string& name);

// "fp8", "awq", "gptq", "bitsandbytes", ... as the --quantization flag spells it, for a model whose
// config does not say so itself. On failure: Error::usage with the accepted names.
Result<Quantization> parse_quantization(std::string_view text);
// `group` 0: the method's usual one. Sets quantization, quant_bits and quant_group.
void apply_quantization(ModelShape& shape, Quantization q, u64 bits, u64 group);

// One tensor of the checkpoint as one rank holds it.
struct WeightTensor {
    static constexpr i64 kBeforeLayers = -1;
    std::string name;           // "model.layers.0.mlp.gate_up_proj.weight"
    i64 layer = kBeforeLayers;  // num_hidden_layers and more: after the layers
    u64 rows = 0, cols = 0;
    u64 bytes = 0;
    bool quantized = false;
    bool buffer = false;  // not a parameter (the rope table, copies that kernels keep)
};
// Tensor by tensor, in loading order, for one rank of tp. Ends with the rope cache (a buffer).
std::vector<WeightTensor> weight_tensors(const ModelShape& shape, u64 tensor_parallel_size);
// The checkpoint's own parameters: no padding, no buffers, one rank.
std::vector<WeightTensor> parameter_tensors(const ModelShape& shape);
u64 weights_bytes(const ModelShape& shape, u64 tensor_parallel_size);
// The same for one stage of a pipeline: the first carries the embedding, the last the head.
u64 weights_bytes(const ModelShape& shape, u64 tensor_parallel_size, u64 pipeline_stages,
                  u64 stage);
// Layers [first, second) of a stage; a remainder goes to the stages before the last.
std::pair<u64, u64> pipeline_layers(u64 layers, u64 pipeline_stages, u64 stage);

// Bytes of KV that one token takes on one rank (MLA is not divided by tp). kv_dtype_bytes: 2, 1, 4.
u64 kv_bytes_per_token(const ModelShape& shape, u64 tensor_parallel_size, double kv_dtype_bytes);

// How vLLM lays KV of mixed layers out in one pool: groups of
// `group_size` layers of one kind, padded; a pool token costs groups * group_size layers.
struct KvLayout {
    u64 groups = 1, group_size = 0, padding_layers = 0;
    u64 full_groups = 1, sliding_groups = 0, linear_groups = 0;
    u64 block_tokens = 16;       // larger than asked when a recurrent state must fit into a block
    u64 block_bytes = 0;         // one block of one group
    u64 bytes_per_token = 0;     // groups * block_bytes / block_tokens
    u64 blocks_per_request = 0;  // need of one request of `request_tokens`, all groups
};
KvLayout kv_layout(const ModelShape& shape, u64 tensor_parallel_size, double kv_dtype_bytes,
                   u64 block_size, u64 request_tokens, u64 max_num_batched_tokens);

// "0.19.0", "0.6.4.post1" -> comparable; unknown text counts as newest.
struct EngineVersion {
    int major = 0, minor = 19, patch = 0;
    bool at_least(int a, int b) const { return major != a ? major > a : minor >= b; }
};
EngineVersion parse_engine_version(std::string_view text);

// The two moments of a forward pass that compete for the peak.
struct ActivationPeak {
    u64 mlp_bytes = 0, sampler_bytes = 0, moe_workspace_bytes = 0;
    u64 peak_bytes = 0;
    bool sampler_moment = false;
};
ActivationPeak activation_peak(const ModelShape& shape, u64 tokens, u64 seqs,
                               u64 tensor_parallel_size, const EngineVersion& version);

// What a step must compute and move, for the roofline. `context_tokens`: sum over new tokens of the
// context each attends to; `kv_tokens_read`: sum over sequences of their context.
struct StepCost {
    double flops = 0, bytes = 0;
    bool eight_bit = false;
};
StepCost step_cost(const ModelShape& shape, u64 new_tokens, u64 sampled_rows, u64 context_tokens,
                   u64 kv_tokens_read, u64 tensor_parallel_size, double kv_dtype_bytes);

}  // namespace oomlab
