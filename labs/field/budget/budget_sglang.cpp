// SGLang: KV = free after load - free before load x (1 - mem_fraction_static). Activations, graphs
// and everything else live in what the fraction leaves.
#include <fmt/format.h>

#include <algorithm>

#include "labs/field/budget/budget_parts.hpp"

namespace oomlab::field {
namespace {

struct CardClass {
    u64 below_gib, chunk, graphs_small, graphs_large;  // by card, and by tp < 4 or not
};
constexpr CardClass kClasses[] = {{20, 2048, 8, 8},      {35, 2048, 24, 80},
                                  {60, 4096, 32, 160},   {90, 8192, 256, 512},
                                  {160, 8192, 256, 512}, {~u64{0}, 16384, 512, 512}};

const CardClass& card_class(const Budget& b) {
    for (const CardClass& c : kClasses)
        if (b.total_bytes / kGiB < c.below_gib) return c;
    return kClasses[5];
}

u64 graph_batches(u64 largest) {
    u64 n = 0;
    for (u64 s = 1; s <= largest;) {
        ++n;
        s = s < 4 ? s * 2 : s < 16 ? s + 4 : s < 256 ? s + 8 : s < 512 ? s + 16 : s + 32;
    }
    return n;
}

}  // namespace

void resolve_sglang(Budget& b) {
    ResolvedFlags& r = b.resolved;
    const CardClass& card = card_class(b);
    const u64 tp = b.flags.tensor_parallel_size, pp = b.flags.pipeline_parallel_size;
    r.max_model_len = b.flags.max_model_len.value_or(b.shape.max_position_embeddings);
    r.chunked_prefill = b.flags.enable_chunked_prefill.value_or(true);
    r.max_num_batched_tokens = b.flags.max_num_batched_tokens.value_or(
        r.chunked_prefill ? card.chunk : std::max<u64>(16384, r.max_model_len));
    r.graphs = !b.flags.enforce_eager.value_or(false);
    const u64 largest =
        b.flags.max_capture_size.value_or(tp < 4 ? card.graphs_small : card.graphs_large);
    r.capture_sizes = r.graphs ? graph_batches(largest) : 0;
    r.max_num_seqs = b.flags.max_num_seqs.value_or(std::max<u64>(largest, 256));
    if (b.flags.gpu_memory_utilization) {
        r.fraction = *b.flags.gpu_memory_utilization;
    } else if (b.version.major == 0 && !b.version.at_least(0, 5)) {
        r.fraction = tp >= 4 ? 0.85 : 0.88;
        r.assumed.push_back(
            fmt::format("mem_fraction_static {:g}: as this version's logs show it", r.fraction));
    } else {
        double reserve =
            512 + 1.5 * static_cast<double>(std::max<u64>(r.max_num_batched_tokens, 2048)) +
            2.0 * static_cast<double>(largest) + 1024.0 * static_cast<double>(tp * pp) / 8.0;
        if (b.total_bytes > 60 * kGiB) reserve = std::max(reserve, 10240.0);
        const double card_mib = static_cast<double>(b.total_bytes) / static_cast<double>(kMiB);
        r.fraction = std::clamp(1.0 - reserve / card_mib, 0.05, 0.98);
        r.assumed.push_back(
            fmt::format("mem_fraction_static {:.3f}: 1 - {:.0f} MiB reserve / {:.0f} MiB card",
                        r.fraction, reserve, card_mib));
    }
}

void budget_sglang(Budget& b) {
    b.version = {0, 19, 0};  // its sampler does not sort the vocabulary
    plan_stages(b);
    b.context_bytes = b.gpu.context_bytes;
    b.communication_bytes = communication_bytes(b);
    b.non_torch_bytes = 100 * kMiB;
    b.cuda_graph_bytes = graph_bytes(b, b.resolved.capture_sizes);
    const u64 before =
        b.total_bytes - std::min(b.total_bytes, b.context_bytes + b.communication_bytes);
    const i64 after =
        static_cast<i64>(before) - static_cast<i64>(b.weights_bytes + b.non_torch_bytes);
    b.kv_pool_bytes =
        after - static_cast<i64>(static_cast<double>(before) * (1.0 - b.resolved.fraction));
    if (b.flags.max_total_tokens)
        b.kv_pool_bytes = std::min(
            b.kv_pool_bytes,
            static_cast<i64>(checked_mul(std::min<u64>(*b.flags.max_total_tokens, u64{1} << 32),
                                         b.kv_bytes_per_token)));
    plan_pool(b);
    b.headroom_bytes = after - std::max<i64>(0, b.kv_pool_bytes) -
                       static_cast<i64>(b.activation_peak_bytes + b.cuda_graph_bytes);
    add_line(b, "context", "CUDA context", static_cast<i64>(b.context_bytes),
             "start of the process", "total - free of a fresh process", b.gpu.name,
             "measured; +- 0.1 GiB between drivers", false);
    add_line(b, "communication", "communication (NCCL)", static_cast<i64>(b.communication_bytes),
             "before loading", "buffers of the communicators",
             fmt::format("tp {}", b.flags.tensor_parallel_size), "measured; -50 % to +100 %",
             false);
    add_weights_and_activation_lines(b);
    b.lines.back().inside_fraction = false;
    b.lines.back().error =
        "the law is vLLM's; this engine does not profile, so treat it as +- 30 %";
    add_line(b, "non_torch", "beside the weights", static_cast<i64>(b.non_torch_bytes), "loading",
             "measured: 0.06 to 0.28 GiB", "0.10 GiB", "+- 0.1 GiB", true);
    add_line(b, "graphs", "CUDA graphs", static_cast<i64>(b.cuda_graph_bytes),
             "capture, outside the fraction", "first capture + each x captures x layers / 40",
             fmt::format("{} batch sizes", b.resolved.capture_sizes), "+- 40 %", false);
    add_line(b, "kv", "KV pool", b.kv_pool_bytes, "after loading, kept for good",
             "free after load - free before load x (1 - mem_fraction_static)",
             fmt::format("{} - {} x (1 - {:.3f})", gib_text(after), gib_text(before),
                         b.resolved.fraction),
             "law within 0.02 GiB on five measured rows", true);
    add_line(b, "headroom", "headroom", b.headroom_bytes, "always",
             "what no line above takes; 5 to 8 GiB is the usual advice on 80 GiB cards", "", "",
             false);
    if (b.kv_pool_bytes <= 0)
        b.reasons.push_back(
            fmt::format("not enough memory: the pool would be {}; raise --mem-fraction-static",
                        gib_text(b.kv_pool_bytes)));
    else if (b.kv_blocks < b.layout.blocks_per_request)
        b.reasons.push_back(
            fmt::format("one request of {} tokens does not fit into {} tokens of KV",
                        grouped(b.resolved.max_model_len), grouped(b.kv_tokens)));
    if (b.headroom_bytes < 0)
        b.reasons.push_back(
            fmt::format("activations and graphs need {} more than the fraction leaves",
                        gib_text(-b.headroom_bytes)));
    b.fits = b.reasons.empty();
}

}  // namespace oomlab::field
