#include "labs/field/budget/budget_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace oomlab::field {

std::string gib_text(i64 bytes) {
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

std::string grouped(u64 n) {
    std::string digits = std::to_string(n), out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

std::string decimal(double value, int digits) {
    return fmt::format("{:.{}f}", value, digits);
}

void add_line(Budget& b, const char* id, const char* title, i64 bytes, std::string moment,
              std::string formula, std::string numbers, std::string error, bool inside) {
    b.lines.push_back({id, title, bytes, std::move(moment), std::move(formula), std::move(numbers),
                       std::move(error), inside});
}

namespace {

// With expert parallelism the experts are spread over tensor x data parallel ranks.
u64 experts_elsewhere(const Budget& b, u64 first, u64 last) {
    if (!b.flags.expert_parallel || b.flags.data_parallel_size <= 1) return 0;
    u64 bytes = 0;
    for (const WeightTensor& t : weight_tensors(b.shape, b.flags.tensor_parallel_size))
        if (t.layer >= static_cast<i64>(first) && t.layer < static_cast<i64>(last) &&
            t.name.find(".experts.") != std::string::npos)
            bytes += t.bytes;
    return bytes - bytes / b.flags.data_parallel_size;
}

}  // namespace

void plan_stages(Budget& b) {
    const u64 stages = b.flags.pipeline_parallel_size, tp = b.flags.tensor_parallel_size;
    b.activation = activation_peak(b.shape, b.resolved.max_num_batched_tokens,
                                   b.resolved.max_num_seqs, tp, b.version);
    u64 tightest = 0;
    for (u64 s = 0; s < stages; ++s) {
        PipelineStage stage;
        std::tie(stage.first_layer, stage.last_layer) =
            pipeline_layers(b.shape.layers.size(), stages, s);
        stage.weights_bytes = weights_bytes(b.shape, tp, stages, s) -
                              experts_elsewhere(b, stage.first_layer, stage.last_layer);
        const u64 no_head =
            activation_peak(b.shape, b.resolved.max_num_batched_tokens, 0, tp, b.version)
                .peak_bytes;
        stage.activation_bytes = s + 1 == stages ? b.activation.peak_bytes : no_head;
        b.stages.push_back(stage);
        const PipelineStage& worst = b.stages[tightest];
        if (stage.weights_bytes + stage.activation_bytes >
            worst.weights_bytes + worst.activation_bytes)
            tightest = s;
    }
    const u64 offload =
        static_cast<u64>(std::max(0.0, b.flags.cpu_offload_gib) * static_cast<double>(kGiB));
    b.host_weights_bytes = std::min(offload, b.stages[tightest].weights_bytes);
    b.weights_bytes = b.stages[tightest].weights_bytes - b.host_weights_bytes;
    b.activation_peak_bytes = b.stages[tightest].activation_bytes;
    if (stages > 1 && tightest + 1 != stages) b.activation.sampler_moment = false;
}

void add_weights_and_activation_lines(Budget& b) {
    const ModelShape& s = b.shape;
    const u64 tp = b.flags.tensor_parallel_size;
    const double bits = s.quantization == Quantization::none
                            ? 8.0 * static_cast<double>(dtype_bytes(s.dtype))
                            : s.quant_bits;
    std::string numbers =
        fmt::format("{} parameters x {:g} bit / tp {}", grouped(s.total_params), bits, tp);
    if (s.quantization != Quantization::none)
        numbers += " (embedding, head, norms and router at 16 bit)";
    if (s.rotary_dim > 0)
        numbers += fmt::format(" + rope table {} x {} x {} B", grouped(s.max_position_embeddings),
                               s.rotary_dim, dtype_bytes(s.dtype));
    if (b.flags.pipeline_parallel_size > 1)
        numbers +=
            fmt::format("; the fullest of {} pipeline stages", b.flags.pipeline_parallel_size);
    if (b.host_weights_bytes > 0)
        numbers += fmt::format(" - {} offloaded to the host", gib_text(b.host_weights_bytes));
    const bool four_bit = s.quantization != Quantization::none && s.quant_bits < 6;
    add_line(b, "weights", "weights", static_cast<i64>(b.weights_bytes), "loading",
             "sum of tensors / tp + replicated parts + max_position x rotary_dim x bytes", numbers,
             four_bit ? "4 %: kernels repack 4-bit weights" : "1 %, measured median 0.1 %", true);
    const ActivationPeak& a = b.activation;
    const u64 t = b.resolved.max_num_batched_tokens, rows = std::min(b.resolved.max_num_seqs, t);
    const bool sort_free = b.version.at_least(0, 17) || b.flags.engine == Engine::sglang;
    if (a.sampler_moment) {
        numbers = fmt::format("{} x {} rows x {} vocabulary + 4 x {} tokens x {}",
                              sort_free ? "14.4" : "38", rows, grouped(round_up(s.vocab_size, 64)),
                              grouped(t), s.hidden_size);
    } else {
        numbers =
            fmt::format("{} tokens x ({} x {} / {} + 8 x {})", grouped(t), s.mlp_gated ? 6 : 4,
                        grouped(s.intermediate_size), tp, grouped(s.hidden_size));
    }
    if (a.moe_workspace_bytes > 0)
        numbers +=
            fmt::format("; experts' workspace {} tokens x {} x (2 x {} / {} + {}) x 2", grouped(t),
                        s.moe->experts_per_tok, s.moe->intermediate_size, tp, s.hidden_size);
    add_line(b, "activations", "activation peak", static_cast<i64>(b.activation_peak_bytes),
             a.sampler_moment ? fmt::format("sampler of the profiling run, {} rows of logits", rows)
                              : fmt::format("MLP of the profiling run, {} tokens", grouped(t)),
             a.sampler_moment ? "c x max_num_seqs x vocab + 4 x tokens x hidden"
                              : "tokens x (6 x intermediate / tp + 8 x hidden)",
             numbers, "law fitted on 52 settings: median 0.6 %, 90 % within 0.05 GiB", true);
}

u64 communication_bytes(const Budget& b) {
    const u64 ranks = b.flags.tensor_parallel_size * b.flags.pipeline_parallel_size;
    if (b.flags.tensor_parallel_size <= 1) return ranks > 1 ? 64 * kMiB : 0;
    // free at the start of a tp 2 and a tp 4 server on H100 against tp 1: 0.93 and 1.0 GiB.
    if (b.gpu.sm_major >= 9 || (b.gpu.sm_major == 0 && b.total_bytes >= 70 * kGiB))
        return 955 * kMiB;
    return 256 * kMiB;
}

u64 graph_bytes(const Budget& b, u64 captures) {
    if (!b.resolved.graphs || captures == 0) return 0;
    const double layers = static_cast<double>(b.shape.layers.size()) /
                          static_cast<double>(b.flags.pipeline_parallel_size);
    const double first =
        std::min(1.0, layers / 32.0) * static_cast<double>(b.gpu.graph_first_bytes);
    return static_cast<u64>(first + static_cast<double>(b.gpu.graph_each_bytes) * layers / 40.0 *
                                        static_cast<double>(captures));
}

u64 blocks_for(const Budget& b, u64 tokens) {
    return kv_layout(b.shape, b.flags.tensor_parallel_size, b.resolved.kv_dtype_bytes,
                     b.flags.block_size, tokens, b.resolved.max_num_batched_tokens)
        .blocks_per_request;
}

void plan_pool(Budget& b) {
    const u64 pp = b.flags.pipeline_parallel_size;
    if (b.kv_pool_bytes > 0 && b.kv_bytes_per_token > 0) {
        b.kv_blocks = b.layout.block_bytes > 0 ? static_cast<u64>(b.kv_pool_bytes) /
                                                     std::max<u64>(1, b.layout.block_bytes / pp)
                                               : 0;
        if (b.flags.num_gpu_blocks_override) b.kv_blocks = *b.flags.num_gpu_blocks_override;
    }
    b.kv_tokens = b.kv_blocks / std::max<u64>(1, b.layout.groups) * b.layout.block_tokens;
    const u64 need = std::max<u64>(1, b.layout.blocks_per_request);
    b.max_concurrency = static_cast<double>(b.kv_blocks) / static_cast<double>(need);
    u64 low = 0, high = std::max<u64>(b.resolved.max_model_len, b.shape.max_position_embeddings);
    while (low < high) {
        const u64 middle = low + (high - low + 1) / 2;
        if (blocks_for(b, middle) <= b.kv_blocks)
            low = middle;
        else
            high = middle - 1;
    }
    b.longest_request = low;
}

}  // namespace oomlab::field
