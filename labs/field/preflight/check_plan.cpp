// The items that follow from the command, the model and the card.
#include <fmt/format.h>

#include <algorithm>

#include "labs/field/preflight/checker.hpp"

namespace oomlab::field {

using check_text::gib;

void Checker::budget() {
    if (budget_ == nullptr)
        return (void)add("budget", "budget computed before deploying",
                         r_.budget_error.empty() ? State::cannot_know : State::fail, "",
                         r_.budget_error.empty() ? "the model's shape or the card is not known"
                                                 : r_.budget_error,
                         r_.budget_error.empty() ? missing() : "correct the flag");
    const Budget& b = *budget_;
    const std::string number =
        fmt::format("weights {}, pool {}, headroom {} of {}", gib(b.weights_bytes),
                    gib(b.kv_pool_bytes), gib(b.headroom_bytes), gib(b.total_bytes));
    if (b.fits)
        return (void)add("budget", "budget computed before deploying", State::pass, number,
                         fmt::format("it fits: {} tokens of KV", b.kv_tokens), "");
    std::string remedy;
    for (std::size_t i = 0; i < b.changes.size() && i < 3; ++i)
        remedy += (i > 0 ? ", or " : "") + b.changes[i].flag;
    add("budget", "budget computed before deploying", State::fail, number,
        b.reasons.empty() ? "it does not fit" : b.reasons.front(), remedy);
}

void Checker::utilization() {
    const char* title = "utilization with headroom (0.88 to 0.92)";
    if (llama()) {
        if (budget_ == nullptr)
            return (void)add("utilization", title, State::cannot_know, "",
                             "this engine has no fraction; its headroom follows from its buffers",
                             missing());
        const bool enough = budget_->headroom_bytes >= static_cast<i64>(kGiB);
        return (void)add(
            "utilization", title, enough ? State::pass : State::fail,
            "headroom " + gib(budget_->headroom_bytes),
            "this engine has no fraction; 1 GiB is the margin that its own fit step keeps",
            enough ? "" : "a smaller -c, or fewer --gpu-layers");
    }
    std::string why;
    double u = flags_.gpu_memory_utilization.value_or(0);
    if (u <= 0 && budget_ != nullptr)
        u = budget_->resolved.fraction, why = "the engine's default";
    else if (u <= 0)
        u = flags_.engine == Engine::vllm ? 0.90 : 0.0, why = "the engine's default";
    else
        why = "given";
    if (u <= 0)
        return (void)add("utilization", title, State::cannot_know, "automatic",
                         "the fraction follows from the card", "give --gpu");
    std::string number = fmt::format("{:.3g}", u);
    if (budget_ != nullptr) number += ", headroom " + gib(budget_->headroom_bytes);
    if (flags_.engine == Engine::sglang) {
        // The fraction leaves out activations and graphs: what they leave is the headroom.
        const bool known = budget_ != nullptr;
        const bool enough = known && budget_->headroom_bytes >= static_cast<i64>(kGiB);
        return (void)add("utilization", title,
                         !known   ? State::cannot_know
                         : enough ? State::pass
                                  : State::fail,
                         number,
                         why + "; activations and graphs live outside of this engine's fraction",
                         !known   ? missing()
                         : enough ? ""
                                  : "lower --mem-fraction-static");
    }
    if (u > 0.925)
        add("utilization", title, State::fail, number,
            why + fmt::format("; only {:.0f} % are left for the context, graphs and spikes "
                              "that the profile did not see",
                              100 * (1 - u)),
            "--gpu-memory-utilization 0.90");
    else if (u < 0.875)
        add("utilization", title, State::pass, number,
            why + "; below 0.88: safe, and " +
                (budget_ != nullptr ? gib((0.90 - u) * static_cast<double>(budget_->total_bytes))
                                    : std::string("memory")) +
                " of pool is given away",
            "");
    else
        add("utilization", title, State::pass, number, why, "");
}

void Checker::model_length() {
    const char* title = "max_model_len from traffic";
    const u64 own = facts_.shape ? facts_.shape->max_position_embeddings : 0;
    const std::string flag = spelled("max_model_len");
    if (flags_.max_model_len_auto)
        return (void)add("max_model_len", title, State::fail, "automatic",
                         "the length then follows from memory, not from what is sent",
                         flag + " with the longest prompt plus output of your traffic");
    if (!flags_.max_model_len)
        return (void)add("max_model_len", title, State::fail,
                         own > 0 ? fmt::format("{} (the model's own)", own) : "the model's own",
                         "it is not set: one request may take the whole length",
                         flag + " with the longest prompt plus output of your traffic");
    const u64 len = *flags_.max_model_len;
    if (own > 0 && len >= own)
        return (void)add("max_model_len", title, State::fail,
                         fmt::format("{} of the model's {}", len, own),
                         "it is the model's maximum, not your traffic's",
                         flag + " with the longest prompt plus output of your traffic");
    if (facts_.longest_prompt &&
        *facts_.longest_prompt + facts_.gateway_max_output.value_or(0) > len)
        return (void)add("max_model_len", title, State::fail,
                         fmt::format("{} for prompts of {}", len, *facts_.longest_prompt),
                         "the longest prompt of your traffic does not fit",
                         flag + fmt::format(" {}", *facts_.longest_prompt +
                                                       facts_.gateway_max_output.value_or(1024)));
    add("max_model_len", title, State::pass,
        own > 0 ? fmt::format("{} of the model's {}", len, own) : fmt::format("{}", len),
        "set below the model's maximum", "");
}

// Sequences that the pool holds: of the mean length when it is known, else of the full length.
std::optional<double> Checker::allowed_sequences() const {
    if (budget_ == nullptr || llama()) return std::nullopt;
    if (facts_.mean_tokens)
        return static_cast<double>(budget_->kv_tokens) /
               static_cast<double>(std::max<u64>(1, *facts_.mean_tokens));
    return budget_->max_concurrency;
}

void Checker::sequences() {
    const char* title = "max_num_seqs at 70 to 80 % of what memory allows";
    const auto allowed = allowed_sequences();
    if (llama())
        return (void)add("max_num_seqs", title, State::pass,
                         fmt::format("{} slots", flags_.max_num_seqs.value_or(1)),
                         "the context is divided among the slots when it is allocated", "");
    if (!allowed)
        return (void)add("max_num_seqs", title, State::cannot_know, "",
                         "the pool's size is not known", missing());
    const u64 seqs = budget_->resolved.max_num_seqs;
    const std::string flag = spelled("max_num_seqs");
    const std::string number =
        fmt::format("{} of {:.0f} {}", seqs, *allowed,
                    facts_.mean_tokens ? fmt::format("of {} tokens each", *facts_.mean_tokens)
                                       : std::string("at full length"));
    const double share = static_cast<double>(seqs) / std::max(1e-9, *allowed);
    const std::string remedy =
        fmt::format("{} {}", flag, std::max<u64>(1, static_cast<u64>(*allowed * 0.75)));
    if (share <= 0.80)
        return (void)add("max_num_seqs", title, State::pass, number,
                         fmt::format("{:.0f} % of what the pool holds", 100 * share), "");
    if (facts_.mean_tokens || share > 4)
        return (void)add(
            "max_num_seqs", title, State::fail, number,
            fmt::format("{:.0f} % of what the pool holds: under load this preempts", 100 * share),
            facts_.mean_tokens ? remedy
                               : remedy + ", or --mean-tokens here to judge by your own lengths");
    add("max_num_seqs", title, State::cannot_know, number,
        "at full length they do not fit; whether that happens depends on your lengths",
        "give --mean-tokens (prompt and output of your traffic), or " + remedy);
}

void Checker::chunked_prefill() {
    const char* title = "chunked prefill on";
    if (llama())
        return (void)add("chunked_prefill", title, State::pass,
                         fmt::format("ubatch {}", flags_.ubatch.value_or(512)),
                         "prompts are always read in micro-batches", "");
    bool on = flags_.enable_chunked_prefill.value_or(true),
         known = flags_.enable_chunked_prefill.has_value();
    if (budget_ != nullptr)
        on = budget_->resolved.chunked_prefill, known = true;
    else if (!known && flags_.engine_version.empty())
        known = true;  // every current version: on
    std::string number = budget_ != nullptr ? fmt::format("{} tokens a step",
                                                          budget_->resolved.max_num_batched_tokens)
                                            : "";
    if (on)
        return (void)add("chunked_prefill", title, State::pass, number,
                         flags_.enable_chunked_prefill ? "given" : "default of this version", "");
    if (budget_ != nullptr) {
        const WorstBatch w = worst_batch(*budget_);
        number = fmt::format("a step of {} tokens: {} against {} profiled", w.worst_tokens,
                             gib(w.worst_bytes), gib(w.profiled_bytes));
    }
    add("chunked_prefill", title, State::fail, number,
        "a prompt is processed whole, however long it is",
        flags_.engine == Engine::sglang ? "--chunked-prefill-size 8192"
                                        : "--enable-chunked-prefill");
}

void Checker::longest_prompt() {
    const char* title = "tested with the longest accepted prompt at the largest batch";
    if (budget_ == nullptr)
        return (void)add("longest_prompt", title, State::cannot_know, "",
                         "the activation of that batch cannot be computed", missing());
    const Budget& b = *budget_;
    const WorstBatch w = worst_batch(b);
    const i64 more = static_cast<i64>(w.worst_bytes) - static_cast<i64>(w.profiled_bytes);
    const std::string number =
        fmt::format("{} tokens in one step: {}; profiled {}, headroom {}", w.worst_tokens,
                    gib(w.worst_bytes), gib(w.profiled_bytes), gib(b.headroom_bytes));
    if (llama())
        return (void)add("longest_prompt", title, b.headroom_bytes >= 0 ? State::pass : State::fail,
                         number,
                         "the compute buffer is reserved for the largest micro-batch; kernels "
                         "still load on the first long prompt",
                         "");
    if (more <= 0 && b.headroom_bytes >= 0)
        return (void)add(
            "longest_prompt", title, State::pass, number,
            "computed: no step is larger than the profiled one; a run is still worth it", "");
    if (more <= b.headroom_bytes)
        return (void)add("longest_prompt", title, State::pass, number,
                         "computed: the headroom holds the difference", "");
    const double per_token = w.worst_tokens > 0 ? static_cast<double>(w.worst_bytes) /
                                                      static_cast<double>(w.worst_tokens)
                                                : 0;
    const u64 cliff = per_token > 0
                          ? static_cast<u64>(std::max(0.0, (static_cast<double>(b.headroom_bytes) +
                                                            static_cast<double>(w.profiled_bytes)) /
                                                               per_token))
                          : 0;
    add("longest_prompt", title, State::fail, number,
        more > 0 ? fmt::format("computed: it dies from about {} prompt tokens on", cliff)
                 : "computed: the stack is larger than the card",
        more > 0 ? "chunked prefill on, or a shorter max_model_len" : "see the budget");
}

}  // namespace oomlab::field
