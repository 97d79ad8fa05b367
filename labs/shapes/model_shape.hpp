// A model as arithmetic: what a Hugging Face config.json says, and the bytes that follow from it.
// Pure: no device, no server. Used by the server (to allocate), by `budget` and by the grader.
// Formulas: shared reference memory_formulas.md; each is named where it is used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"
#include "kernels/device/ops.hpp"

namespace oomlab {

enum class Quantization { none, fp8, w8a8_int8, gptq, awq, bitsandbytes, mxfp4, nvfp4, gguf };
const char* quantization_name(Quantization q);   // vLLM's spelling: "fp8", "awq", "bitsandbytes"

struct MoeShape {
    u64 num_experts = 0, experts_per_tok = 0, intermediate_size = 0;
    u64 shared_experts = 0, shared_intermediate_size = 0;
    u64 dense_layers = 0;          // the first layers without experts
    u64 layer_step = 1;            // experts in every n-th layer
};
struct MlaShape {
    u64 kv_lora_rank = 0, q_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
};

struct ModelShape {
    std::string name;              // "meta-llama/Meta-Llama-3.1-8B"
    std::string architecture;      // "LlamaForCausalLM"
    std::string model_type;
    u64 hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
    u64 num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0, vocab_size = 0;
    u64 max_position_embeddings = 0;
    bool tie_word_embeddings = false;
    bool mlp_gated = true;
    bool attention_bias = false, mlp_bias = false, qk_norm = false;
    bool learned_positions = false;
    double rope_theta = 10000;
    u64 rotary_dim = 0;            // 0: head_dim
    DType dtype = DType::bf16;
    std::optional<MoeShape> moe;
    std::optional<MlaShape> mla;
    u64 sliding_window = 0;        // 0: none
    u64 sliding_layers = 0;        // layers with the window (of num_hidden_layers)
    u64 full_attention_layers = 0; // layers with a growing KV cache; the rest are sliding or linear
    u64 linear_layers = 0;         // recurrent or linear attention: constant state
    u64 linear_state_bytes_per_seq = 0;
    Quantization quantization = Quantization::none;
    double quant_bits = 16;        // bits per quantized weight, scales included
    u64 quant_group = 0;
    u64 total_params = 0;          // by formula
    u64 mtp_params = 0;            // loaded only for speculative decoding
    std::vector<std::string> unknown;   // what could not be worked out, in words
};

// Reads a config.json (nested text_config understood). `name` is used in errors and as the name.
// On failure: Error::parse with file, key and remedy (missing or absurd fields).
Result<ModelShape> parse_config_json(std::string_view json, const std::string& name);

// One tensor of the checkpoint as one rank holds it.
struct WeightTensor {
    std::string name;      // "model.layers.0.mlp.gate_up_proj.weight"
    u64 rows = 0, cols = 0;
    u64 bytes = 0;
};
// Tensor by tensor, in loading order, for one rank of tp. Ends with the rope cache (a buffer).
std::vector<WeightTensor> weight_tensors(const ModelShape& shape, u64 tensor_parallel_size);
u64 weights_bytes(const ModelShape& shape, u64 tensor_parallel_size);

// Bytes of KV that one token takes on one rank (MLA is not divided by tp). kv_dtype_bytes: 2, 1, 4.
u64 kv_bytes_per_token(const ModelShape& shape, u64 tensor_parallel_size, double kv_dtype_bytes);

// "0.19.0", "0.6.4.post1" -> comparable; unknown text counts as newest.
struct EngineVersion {
    int major = 0, minor = 19, patch = 0;
    bool at_least(int a, int b) const { return major != a ? major > a : minor >= b; }
};
EngineVersion parse_engine_version(std::string_view text);

// The two moments of a forward pass that compete for the peak (memory_formulas.md, section 3).
struct ActivationPeak {
    u64 mlp_bytes = 0, sampler_bytes = 0, moe_workspace_bytes = 0;
    u64 peak_bytes = 0;
    bool sampler_moment = false;
};
ActivationPeak activation_peak(const ModelShape& shape, u64 tokens, u64 seqs, u64 tensor_parallel_size,
                               const EngineVersion& version);

// What a step must compute and move, for the roofline. `context_tokens`: sum over new tokens of the
// context each attends to; `kv_tokens_read`: sum over sequences of their context.
struct StepCost {
    double flops = 0, bytes = 0;
    bool eight_bit = false;
};
StepCost step_cost(const ModelShape& shape, u64 new_tokens, u64 sampled_rows, u64 context_tokens,
                   u64 kv_tokens_read, u64 tensor_parallel_size, double kv_dtype_bytes);

}  // namespace oomlab
