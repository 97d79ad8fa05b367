// vLLM: KV = total x utilization - weights - activation peak - non-torch [- graphs, from 0.21].
#include <fmt/format.h>

#include <algorithm>

#include "labs/field/budget/budget_parts.hpp"

namespace oomlab::field {
namespace {

bool is_v0(const Budget& b) {
    return !b.version.at_least(0, 8);
}

// Cards of 70 GiB and more, except the A100, get the larger server defaults.
bool large_card(const Budget& b) {
    return b.total_bytes >= 70 * kGiB && b.gpu.id.find("a100") == std::string::npos &&
           b.gpu.id.find("a800") == std::string::npos;
}
bool fast_links(const Budget& b) {
    return b.gpu.sm_major >= 9 || (b.gpu.sm_major == 0 && b.total_bytes >= 70 * kGiB);
}

// Growth of what PyTorch does not see after the engine's first snapshot; measured, by version.
u64 non_torch(const Budget& b) {
    const u64 tp = b.flags.tensor_parallel_size;
    double gib = 0.08;
    if (is_v0(b))
        gib = tp > 1                     ? 0.25
              : b.version.at_least(0, 7) ? 0.08
                                         : 0.18;  // before 0.7 part of the context was counted
    else if (!b.version.at_least(0, 18))
        gib = tp == 1 ? (fast_links(b) ? 0.13 : 0.07) : fast_links(b) ? 0.55 : 0.25;
    else if (tp == 1)
        gib = b.flags.pipeline_parallel_size > 1 ? 0.07 : 0.25;
    else
        gib = fast_links(b) ? (tp >= 4 ? 2.17 : 2.07) : 0.35;
    return static_cast<u64>(gib * static_cast<double>(kGiB));
}

// Sizes 1, 2, 4, then steps of 8, from 256 on steps of 16 in newer versions; two modes are captured
// from 0.10 on (the full one up to max_num_seqs).
u64 count_captures(const Budget& b) {
    const bool v0 = is_v0(b), fine = !b.version.at_least(0, 11);
    u64 largest = v0 ? 256 : 512;
    if (!v0 && !fine)
        largest =
            std::min<u64>({2 * b.resolved.max_num_seqs, 512, b.resolved.max_num_batched_tokens});
    if (b.flags.max_capture_size) largest = std::min(largest, *b.flags.max_capture_size);
    u64 sizes = 0, full = 0;
    for (u64 s = 1; s <= largest;) {
        ++sizes;
        if (s <= b.resolved.max_num_seqs) ++full;
        s = s < 4 ? s * 2 : s < 8 ? 8 : s < 256 || fine || v0 ? s + 8 : s + 16;
    }
    if (b.flags.capture_sizes) sizes = *b.flags.capture_sizes, full = std::min(full, sizes);
    return b.version.at_least(0, 11) ? sizes + full : sizes;
}

void check_fit(Budget& b, u64 wanted, u64 free_at_start) {
    auto no = [&](std::string text) { b.reasons.push_back(std::move(text)); };
    if (b.weights_bytes + b.context_bytes + b.communication_bytes > b.total_bytes)
        no(fmt::format("the weights ({}) do not fit on the card ({})", gib_text(b.weights_bytes),
                       gib_text(b.total_bytes)));
    if (free_at_start < wanted)
        no(fmt::format("start is refused: {:g} of the card is {}, free at start are {}",
                       b.resolved.fraction, gib_text(wanted), gib_text(free_at_start)));
    if (b.kv_pool_bytes <= 0)
        no(fmt::format("no memory is left for KV blocks: the pool would be {}",
                       gib_text(b.kv_pool_bytes)));
    else if (b.kv_blocks < b.layout.blocks_per_request)
        no(fmt::format(
            "one request of {} tokens needs {} KV blocks, the pool has {} ({} tokens at most)",
            grouped(b.resolved.max_model_len), grouped(b.layout.blocks_per_request),
            grouped(b.kv_blocks), grouped(b.longest_request)));
    if (b.headroom_bytes < 0 && b.kv_pool_bytes > 0 && free_at_start >= wanted)
        no(fmt::format("CUDA graphs come on top of the fraction and miss {}",
                       gib_text(-b.headroom_bytes)));
    if (b.resolved.max_model_len > b.shape.max_position_embeddings)
        no(fmt::format("max_model_len {} is more than the model's {}",
                       grouped(b.resolved.max_model_len),
                       grouped(b.shape.max_position_embeddings)));
    if (!b.resolved.chunked_prefill && b.flags.max_num_batched_tokens &&
        *b.flags.max_num_batched_tokens < b.resolved.max_model_len && !is_v0(b))
        no(fmt::format(
            "without chunked prefill max_num_batched_tokens ({}) must not be below max_model_len "
            "({})",
            grouped(*b.flags.max_num_batched_tokens), grouped(b.resolved.max_model_len)));
    b.fits = b.reasons.empty();
}

}  // namespace

void resolve_vllm(Budget& b) {
    ResolvedFlags& r = b.resolved;
    auto assume = [&](std::string text) { r.assumed.push_back(std::move(text)); };
    const bool v0 = is_v0(b), large = large_card(b);
    r.max_model_len = b.flags.max_model_len.value_or(b.shape.max_position_embeddings);
    if (!b.flags.max_model_len)
        assume(fmt::format("max_model_len {}: the model's own", grouped(r.max_model_len)));
    r.fraction = b.flags.gpu_memory_utilization.value_or(b.version.at_least(0, 21) ? 0.92 : 0.90);
    if (!b.flags.gpu_memory_utilization)
        assume(fmt::format("gpu_memory_utilization {:g}: default of this version", r.fraction));
    const bool chunk_default = v0 ? r.max_model_len > 32768 : true;
    r.chunked_prefill = b.flags.enable_chunked_prefill.value_or(chunk_default);
    r.max_num_seqs = b.flags.max_num_seqs.value_or(!v0 && large ? 1024 : 256);
    if (!b.flags.max_num_seqs)
        assume(fmt::format("max_num_seqs {}: default {}", r.max_num_seqs,
                           v0      ? "of V0"
                           : large ? "on cards of 70 GiB and more"
                                   : "on cards below 70 GiB and A100"));
    if (b.flags.max_num_batched_tokens) {
        r.max_num_batched_tokens = *b.flags.max_num_batched_tokens;
    } else {
        if (v0)
            r.max_num_batched_tokens = r.chunked_prefill ? (b.version.at_least(0, 7) ? 2048 : 512)
                                                         : std::max<u64>(2048, r.max_model_len);
        else
            r.max_num_batched_tokens = r.chunked_prefill
                                           ? (large ? 8192 : 2048)
                                           : std::max<u64>(large ? 8192 : 2048, r.max_model_len);
        r.max_num_batched_tokens =
            std::max(r.max_num_batched_tokens, std::min<u64>(r.max_num_seqs, 2048));
        if (!v0)
            r.max_num_batched_tokens =
                std::min(r.max_num_batched_tokens, checked_mul(r.max_num_seqs, r.max_model_len));
        assume(fmt::format(
            "max_num_batched_tokens {}: default of a server of this version on this card",
            grouped(r.max_num_batched_tokens)));
    }
    r.graphs = !b.flags.enforce_eager.value_or(false);
    r.capture_sizes = r.graphs ? count_captures(b) : 0;
    if (b.gpu.peak_bytes_per_s == 0 && b.total_bytes >= 70 * kGiB &&
        (!b.flags.max_num_seqs || !b.flags.max_num_batched_tokens))
        b.unknown.push_back(
            "the kind of card is not known from its size: an A100 would start with 256 sequences "
            "and 2048 tokens");
}

void budget_vllm(Budget& b) {
    plan_stages(b);
    b.context_bytes = b.gpu.context_bytes;
    b.communication_bytes = communication_bytes(b);
    b.non_torch_bytes = non_torch(b);
    b.cuda_graph_bytes = graph_bytes(b, b.resolved.capture_sizes);
    const bool graphs_inside = b.version.at_least(0, 21) && b.flags.graph_estimate;
    const u64 wanted = static_cast<u64>(static_cast<double>(b.total_bytes) * b.resolved.fraction);
    const u64 free_at_start =
        b.total_bytes - std::min(b.total_bytes, b.context_bytes + b.communication_bytes);
    const i64 used = static_cast<i64>(b.weights_bytes + b.activation_peak_bytes +
                                      b.non_torch_bytes + (graphs_inside ? b.cuda_graph_bytes : 0));
    b.kv_pool_bytes = static_cast<i64>(wanted) - used;
    std::string pool_numbers = fmt::format(
        "{} x {:g} - {} - {} - {}", gib_text(b.total_bytes), b.resolved.fraction,
        gib_text(b.weights_bytes), gib_text(b.activation_peak_bytes), gib_text(b.non_torch_bytes));
    if (graphs_inside) pool_numbers += " - " + gib_text(b.cuda_graph_bytes);
    if (b.flags.kv_cache_memory_bytes) {
        b.kv_pool_bytes =
            static_cast<i64>(std::min<u64>(*b.flags.kv_cache_memory_bytes, u64{1} << 50));
        pool_numbers = "given by --kv-cache-memory-bytes; the fraction is ignored";
    }
    plan_pool(b);
    if (b.flags.max_model_len_auto && b.kv_pool_bytes > 0) {
        b.resolved.max_model_len =
            std::max<u64>(1, std::min(b.longest_request, b.shape.max_position_embeddings));
        b.layout = kv_layout(b.shape, b.flags.tensor_parallel_size, b.resolved.kv_dtype_bytes,
                             b.flags.block_size, b.resolved.max_model_len,
                             b.resolved.max_num_batched_tokens);
        plan_pool(b);
    }
    const i64 pool = std::max<i64>(0, b.kv_pool_bytes);
    b.headroom_bytes =
        static_cast<i64>(b.total_bytes) -
        static_cast<i64>(b.context_bytes + b.communication_bytes + b.weights_bytes +
                         b.activation_peak_bytes + b.non_torch_bytes + b.cuda_graph_bytes) -
        pool;

    add_line(b, "context", "CUDA context", static_cast<i64>(b.context_bytes),
             "start of the process", "total - free of a fresh process",
             b.gpu.name + ": " + gib_text(b.context_bytes), "measured; +- 0.1 GiB between drivers",
             false);
    add_line(
        b, "communication", "communication (NCCL)", static_cast<i64>(b.communication_bytes),
        "before loading", "buffers of the communicators",
        fmt::format("tp {} x pp {}", b.flags.tensor_parallel_size, b.flags.pipeline_parallel_size),
        "measured; -50 % to +100 % with other links and channels", false);
    add_weights_and_activation_lines(b);
    add_line(b, "non_torch", "libraries outside PyTorch", static_cast<i64>(b.non_torch_bytes),
             "loading and profiling", "growth of device use that PyTorch does not see",
             fmt::format("measured for this version at tp {}", b.flags.tensor_parallel_size),
             "+- 0.1 GiB (tp 1), +- 0.5 GiB (tp 2 and more)", true);
    add_line(b, "graphs", "CUDA graphs", static_cast<i64>(b.cuda_graph_bytes),
             graphs_inside ? "capture; taken off the pool from 0.21 on"
                           : "capture, on top of the fraction",
             "first capture + each x captures x layers / 40",
             fmt::format("{} captures, {} layers", b.resolved.capture_sizes, b.shape.layers.size()),
             "+- 40 %: the engine's own estimate is no better", graphs_inside);
    add_line(b, "kv", "KV pool", b.kv_pool_bytes, "after profiling, kept for good",
             graphs_inside ? "total x utilization - weights - activations - non_torch - graphs"
                           : "total x utilization - weights - activations - non_torch",
             pool_numbers, "2 % of the pool at the 90th percentile", true);
    add_line(b, "headroom", "headroom", b.headroom_bytes, "always", "what no line above takes", "",
             "", false);
    check_fit(b, b.flags.kv_cache_memory_bytes ? 0 : wanted, free_at_start);
}

}  // namespace oomlab::field
