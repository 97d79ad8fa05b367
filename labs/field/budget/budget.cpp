#include "labs/field/budget/budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "labs/field/budget/budget_parts.hpp"
#include "labs/field/budget/gguf_mix.hpp"

namespace oomlab::field {
namespace {

Result<void> check_parallel(const Budget& b) {
    const ModelShape& s = b.shape;
    const ServerFlags& f = b.flags;
    const u64 tp = f.tensor_parallel_size;
    if (f.engine != Engine::llama_cpp && s.num_attention_heads % tp != 0)
        return fail(
            Error::usage(fmt::format("tensor parallel size {} does not divide the model's {} "
                                     "attention heads: engines refuse it",
                                     tp, s.num_attention_heads)));
    if (f.pipeline_parallel_size > s.layers.size())
        return fail(Error::usage("more pipeline stages than layers"));
    return {};
}

Result<void> apply_flags_to_shape(Budget& b) {
    ModelShape& s = b.shape;
    const ServerFlags& f = b.flags;
    if (f.dtype == "auto") {
        if (s.dtype == DType::f32 && f.engine != Engine::llama_cpp)
            s.dtype = DType::bf16;  // servers halve 32-bit checkpoints
    } else if (f.dtype == "float16" || f.dtype == "half")
        s.dtype = DType::f16;
    else if (f.dtype == "bfloat16")
        s.dtype = DType::bf16;
    else if (f.dtype == "float32" || f.dtype == "float")
        s.dtype = DType::f32;
    else
        return fail(Error::usage("unknown dtype '" + f.dtype.substr(0, 40) +
                                 "': auto, float16, bfloat16 or float32"));
    if (f.engine != Engine::llama_cpp && !f.quantization.empty()) {
        // A GGUF file served by vLLM or SGLang: the file type gives the bits.
        if (auto gguf = gguf_weights(s, f.quantization, s.layers.size() + 1);
            gguf && s.quantization == Quantization::none) {
            apply_quantization(s, Quantization::gguf, 0, 0);
            s.quant_bits = 8.0 *
                           static_cast<double>(gguf->gpu_bytes +
                                               (s.tie_word_embeddings ? 0 : gguf->host_bytes)) /
                           static_cast<double>(s.total_params);
            return check_parallel(b);
        }
        OOMLAB_TRY(q, parse_quantization(f.quantization));
        if (s.quantization == Quantization::none && q != Quantization::none) {
            const u64 group = q == Quantization::gptq || q == Quantization::awq ? 128 : 0;
            apply_quantization(s, q, q == Quantization::fp8 || q == Quantization::w8a8_int8 ? 8 : 4,
                               group);
        }
    }
    return check_parallel(b);
}

void name_unknowns(Budget& b) {
    if (b.flags.lora)
        b.unknown.push_back("LoRA adapters: their weights and buffers are not counted");
    if (b.flags.speculative)
        b.unknown.push_back("speculative decoding: the draft model and its KV are not counted");
    if (!b.gpu.has_bf16 && b.shape.dtype == DType::bf16 && b.flags.engine != Engine::llama_cpp)
        b.unknown.push_back(b.gpu.name +
                            " has no bfloat16: serve with --dtype float16 (same size)");
    if (b.shape.quantization == Quantization::fp8 && b.gpu.sm_major > 0 &&
        (b.gpu.sm_major < 8 || (b.gpu.sm_major == 8 && b.gpu.sm_minor < 9)))
        b.unknown.push_back(
            "FP8 products need compute capability 8.9: here the weights stay 8-bit, the products "
            "run in 16 bit");
}

}  // namespace

std::optional<double> kv_element_bytes(const std::string& name, DType model) {
    if (name == "auto" || name.empty()) return static_cast<double>(dtype_bytes(model));
    if (name.rfind("fp8", 0) == 0 || name == "int8") return 1;
    if (name == "f16" || name == "bf16" || name == "float16" || name == "bfloat16" ||
        name == "fp16")
        return 2;
    if (name == "f32" || name == "float32") return 4;
    if (name == "q8_0") return 1.0625;
    if (name == "q5_1") return 0.75;
    if (name == "q5_0") return 0.6875;
    if (name == "q4_1") return 0.625;
    if (name == "q4_0" || name == "iq4_nl" || name == "nvfp4" || name == "fp4_e2m1") return 0.5625;
    return std::nullopt;
}

Result<Budget> compute_budget(const ModelShape& shape, const GpuProfile& gpu,
                              const ServerFlags& flags) {
    Budget b;
    b.flags = flags;
    b.shape = shape;
    b.gpu = gpu;
    b.total_bytes = gpu.total_bytes;
    b.unknown = shape.unknown;
    const std::string& v = flags.engine_version;
    if (v == "v0" || v == "V0")
        b.version = {0, 7, 0};
    else if (v == "v1" || v == "V1" || v.empty())
        b.version = {0, 19, 0};
    else
        b.version = parse_engine_version(v);
    if (v.empty() && flags.engine == Engine::vllm)
        b.resolved.assumed.push_back(
            "engine version not given: vLLM 0.19's rules (from 0.21 on graphs are taken off the "
            "pool and the default fraction is 0.92)");
    if (v.empty() && flags.engine == Engine::sglang) b.version = {1, 0, 0};
    OOMLAB_TRY_VOID(apply_flags_to_shape(b));
    if (flags.engine == Engine::llama_cpp) {
        OOMLAB_TRY_VOID(budget_llama_cpp(b));
        name_unknowns(b);
        return b;
    }
    auto element = kv_element_bytes(flags.kv_cache_dtype, b.shape.dtype);
    if (!element)
        return fail(Error::usage("unknown KV cache dtype '" + flags.kv_cache_dtype.substr(0, 40) +
                                 "': auto, fp8, fp8_e4m3, fp8_e5m2, bfloat16"));
    b.resolved.kv_dtype_bytes = *element;
    if (flags.engine == Engine::vllm)
        resolve_vllm(b);
    else
        resolve_sglang(b);
    b.layout =
        kv_layout(b.shape, flags.tensor_parallel_size, *element,
                  flags.engine == Engine::vllm ? flags.block_size
                                               : (flags.block_size == 16 ? 1 : flags.block_size),
                  b.resolved.max_model_len, b.resolved.max_num_batched_tokens);
    // vLLM 0.7's latent attention padded 576 values to 640.
    if (b.shape.mla && flags.engine == Engine::vllm && !b.version.at_least(0, 8)) {
        const u64 width = b.shape.mla->kv_lora_rank + b.shape.mla->qk_rope_head_dim;
        b.layout.bytes_per_token = b.layout.bytes_per_token / width * round_up(width, 128);
        b.layout.block_bytes = b.layout.bytes_per_token * b.layout.block_tokens;
    }
    b.kv_bytes_per_token = b.layout.bytes_per_token / flags.pipeline_parallel_size;
    if (flags.engine == Engine::vllm)
        budget_vllm(b);
    else
        budget_sglang(b);
    name_unknowns(b);
    return b;
}

WorstBatch worst_batch(const Budget& b) {
    WorstBatch w;
    const u64 tp = b.flags.tensor_parallel_size;
    w.profiled_tokens = b.resolved.max_num_batched_tokens;
    w.profiled_bytes = b.activation_peak_bytes;
    // Whole prompts are not cut by the token budget; every other sequence still decodes.
    w.worst_tokens =
        b.resolved.chunked_prefill
            ? w.profiled_tokens
            : std::max(w.profiled_tokens, b.resolved.max_model_len + b.resolved.max_num_seqs - 1);
    w.worst_bytes =
        std::max(w.profiled_bytes,
                 activation_peak(b.shape, w.worst_tokens, b.resolved.max_num_seqs, tp, b.version)
                     .peak_bytes);
    return w;
}

}  // namespace oomlab::field
