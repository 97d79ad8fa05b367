// llama.cpp: model + KV + compute buffer, each sized by flags; no fraction, no profiling.
#include <fmt/format.h>

#include <algorithm>

#include "labs/field/budget/budget_parts.hpp"
#include "labs/field/budget/gguf_mix.hpp"

namespace oomlab::field {
namespace {

constexpr u64 kFitMargin = 1024 * kMiB;

u64 pad256(u64 n) {
    return round_up(n, 256);
}

}  // namespace

Result<void> budget_llama_cpp(Budget& b) {
    ResolvedFlags& r = b.resolved;
    const ModelShape& s = b.shape;
    const u64 layers = s.layers.size();
    r.max_model_len = b.flags.max_model_len.value_or(s.max_position_embeddings);
    if (!b.flags.max_model_len)
        r.assumed.push_back(fmt::format("-c {}: the model's own", grouped(r.max_model_len)));
    r.max_num_seqs = b.flags.max_num_seqs.value_or(1);
    const u64 ubatch = b.flags.ubatch.value_or(512);
    r.max_num_batched_tokens = ubatch;
    r.graphs = false;
    const std::string type = b.flags.quantization.empty() ? (s.dtype == DType::f32 ? "F32" : "F16")
                                                          : b.flags.quantization;
    const u64 on_gpu = b.flags.gpu_layers.value_or(layers + 1);
    auto weights = gguf_weights(s, type, on_gpu);
    if (!weights)
        return fail(Error::usage(
            "unknown GGUF type '" + type.substr(0, 40) +
            "': F16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_K_S, Q4_0, Q3_K_M, Q2_K, IQ4_XS, MXFP4 ..."));
    b.weights_bytes = weights->gpu_bytes;
    b.host_weights_bytes = weights->host_bytes;
    b.context_bytes = b.gpu.context_bytes;

    const auto k_bytes = kv_element_bytes(b.flags.kv_cache_dtype, DType::f16);
    const auto v_bytes = kv_element_bytes(
        b.flags.kv_cache_dtype_v.empty() ? "auto" : b.flags.kv_cache_dtype_v, DType::f16);
    if (!k_bytes || !v_bytes)
        return fail(Error::usage(
            "unknown KV cache type: f16, bf16, f32, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl"));
    const u64 cells = pad256(r.max_model_len), gpu_layers = std::min(on_gpu, layers);
    const u64 window_cells = std::min(cells, pad256(s.sliding_window * r.max_num_seqs + ubatch));
    double kv = 0, per_token = 0;
    for (u64 i = layers - gpu_layers; i < layers; ++i) {
        const LayerShape& l = s.layers[i];
        if (!l.has_kv()) continue;
        double one = static_cast<double>(l.kv_heads * l.head_dim) * (*k_bytes + *v_bytes);
        if (s.mla)
            one = static_cast<double>(s.mla->kv_lora_rank + s.mla->qk_rope_head_dim) * *k_bytes;
        per_token += one;
        kv +=
            one * static_cast<double>(l.mixer == LayerShape::Mixer::sliding ? window_cells : cells);
    }
    kv += static_cast<double>(s.linear_state_bytes_per_seq * r.max_num_seqs);
    b.kv_pool_bytes = static_cast<i64>(kv);
    b.kv_bytes_per_token = static_cast<u64>(per_token + 0.5);
    b.kv_tokens = cells;
    b.kv_blocks = cells;
    b.longest_request = cells / std::max<u64>(1, r.max_num_seqs);
    b.max_concurrency = static_cast<double>(r.max_num_seqs);

    const bool flash = b.flags.flash_attention.value_or(true);
    const u64 logits = 4 * ubatch * (s.vocab_size + (flash ? 2 : 1) * s.hidden_size);
    const u64 scores =
        flash ? 0 : 4 * ubatch * (s.num_attention_heads * cells + cells + 4 * s.hidden_size);
    b.activation_peak_bytes = std::max(logits, scores);
    b.activation.peak_bytes = b.activation_peak_bytes;
    b.activation.sampler_moment = logits >= scores;
    b.headroom_bytes =
        static_cast<i64>(b.total_bytes) -
        static_cast<i64>(b.weights_bytes + b.context_bytes + b.activation_peak_bytes) -
        b.kv_pool_bytes;

    add_line(b, "context", "CUDA context", static_cast<i64>(b.context_bytes),
             "start of the process", "total - free of a fresh process", b.gpu.name,
             "0.3 to 0.5 GiB", false);
    add_line(
        b, "weights", "model buffer", static_cast<i64>(b.weights_bytes), "loading",
        "tensor by tensor at the file type's mix; the token embedding stays on the CPU",
        fmt::format("{} parameters as {}, {} of {} layers; {} on the host", grouped(s.total_params),
                    type, std::min(on_gpu, layers), layers, gib_text(b.host_weights_bytes)),
        weights->exact_mix ? "0.1 % on current files; older files were mixed differently"
                           : "3 %: one width for the whole file",
        false);
    add_line(b, "kv", "KV buffer", b.kv_pool_bytes, "loading",
             "cells x layers x kv_heads x head_dim x (K + V bytes)",
             s.sliding_layers > 0
                 ? fmt::format("{} cells, {} window layers with {} cells", grouped(cells),
                               s.sliding_layers, grouped(window_cells))
                 : fmt::format("{} cells x {} B", grouped(cells), grouped(b.kv_bytes_per_token)),
             "exact", false);
    add_line(b, "activations", "compute buffer", static_cast<i64>(b.activation_peak_bytes),
             b.activation.sampler_moment ? "logits of one micro-batch"
                                         : "scores of one micro-batch without flash attention",
             b.activation.sampler_moment ? "4 x ubatch x (vocab + 1..2 x hidden)"
                                         : "4 x ubatch x (heads x n_ctx + n_ctx + 4 x hidden)",
             fmt::format("ubatch {}", ubatch), "exact on the rows tried", false);
    add_line(b, "headroom", "headroom", b.headroom_bytes, "always",
             "what no line above takes; the engine's own margin is 1 GiB", "", "", false);
    if (b.headroom_bytes < 0)
        b.reasons.push_back(fmt::format("{} are missing on the card", gib_text(-b.headroom_bytes)));
    else if (b.headroom_bytes < static_cast<i64>(kFitMargin) && !b.flags.gpu_layers)
        b.unknown.push_back(
            fmt::format("headroom {} is below the 1 GiB that llama.cpp's own fit step keeps: it "
                        "would shrink -c or -ngl",
                        gib_text(b.headroom_bytes)));
    b.fits = b.reasons.empty();
    return {};
}

}  // namespace oomlab::field
