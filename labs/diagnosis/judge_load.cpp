// Types 1, 2 and 3: it does not fit, at load, in one step, or under load.
#include "labs/diagnosis/judge_parts.hpp"

namespace oomlab::diagnosis {

using trace::FailureKind;
using trace::Phase;

namespace {

bool capped(const Case& c) {
    return c.f.capped != 0 && c.f.device_free_bytes > c.available_bytes &&
           c.f.device_free_bytes >= c.asked_bytes;
}

void cap_line(const Case& c, Diagnosis& d) {
    d.cause = "self_imposed_cap";
    d.confidence = 0.98;
    d.evidence.push_back(fmt::format("{} is the process's own limit; the card still had {} free",
                                     human_bytes(c.f.limit_bytes), human_bytes(c.f.device_free_bytes)));
    d.summary = fmt::format("{} more than the process allows itself; the card would have had room",
                            human_bytes(c.short_by_bytes));
}

// Others hold enough of the card to be the reason.
bool others_decide(const Case& c) { return c.others_bytes() > 0 && c.others_bytes() >= c.short_by_bytes; }

void others_line(const Case& c, Diagnosis& d) {
    d.cause = "other_memory_on_device";
    d.evidence.push_back(fmt::format("{} of the card is held by other processes", human_bytes(c.others_bytes())));
    d.summary = fmt::format("{} is held by somebody else on the card, {} was short", human_bytes(c.others_bytes()),
                            human_bytes(c.short_by_bytes));
}

void judge_refused_at_load(const Case& c, Diagnosis& d) {
    if (!c.life.budget) {   // before the weights: the share that was asked for is not free
        const u64 total = c.f.device_total_bytes, free = c.f.device_free_bytes;
        if (c.others_bytes() > 64 * kMiB) {
            others_line(c, d);
            d.summary = fmt::format("{} is held by other processes, so the share asked for is not free",
                                    human_bytes(c.others_bytes()));
        } else {
            d.cause = "memory_fraction_above_free";
            d.summary = fmt::format("{} of {} was free at the start: less than the share asked for",
                                    human_bytes(free), human_bytes(total));
        }
        d.confidence = 0.97;
        d.evidence.push_back(fmt::format("{} of {} was free after {} of context, before a single weight",
                                         human_bytes(free), human_bytes(total), human_bytes(c.f.context_bytes)));
        return;
    }
    const trace::BudgetRecord& b = *c.life.budget;
    d.evidence.push_back(fmt::format(
        "budget {} = {} x {:g}; weights {}, activations {}, outside PyTorch {}, graphs {}: {} left for KV",
        human_bytes(b.requested_bytes), human_bytes(b.total_bytes), b.gpu_memory_utilization,
        human_bytes(b.weights_bytes), human_bytes(b.activation_peak_bytes), human_bytes(b.non_torch_bytes),
        human_bytes(b.graph_estimate_bytes), human_bytes_signed(b.available_kv_bytes)));
    d.confidence = 0.99;
    if (b.num_gpu_blocks < 2) {
        d.cause = "weights_leave_no_kv";
        const u64 owed = b.available_kv_bytes < 0 ? u64{0} - static_cast<u64>(b.available_kv_bytes) : 0;
        const u64 there = b.available_kv_bytes < 0 ? 0 : static_cast<u64>(b.available_kv_bytes);
        d.short_by_bytes = minus(2 * b.kv_block_bytes + owed, there);
        d.summary = fmt::format("{} more is needed before the first KV block fits", human_bytes(d.short_by_bytes));
        return;
    }
    const u64 block = std::max<u64>(1, b.block_size);
    const u64 needed = div_ceil(b.max_model_len, block) * b.kv_block_bytes;
    d.cause = "kv_pool_smaller_than_max_model_len";
    d.short_by_bytes = minus(needed, minus(b.num_gpu_blocks, 1) * b.kv_block_bytes);
    d.evidence.push_back(fmt::format("{} of KV for one request of max_model_len = {}, and the pool has {} ({} tokens)",
                                     human_bytes(needed), b.max_model_len, human_bytes(b.num_gpu_blocks * b.kv_block_bytes),
                                     b.num_gpu_blocks * block));
    d.summary = fmt::format("{} more KV is needed for one request of {} tokens", human_bytes(d.short_by_bytes), b.max_model_len);
}

}  // namespace

void judge_at_load(const Case& c, Diagnosis& d) {
    const trace::FailureRecord& f = c.f;
    d.confidence = 0.95;
    d.evidence.push_back(fmt::format("it failed in phase {}, before the first request", trace::phase_name(f.phase)));
    if (c.refused()) return judge_refused_at_load(c, d);
    if (capped(c)) return cap_line(c, d);
    const u64 weights = c.owned(Owner::weights);
    switch (f.phase) {
        case Phase::weights:
            d.evidence.push_back(fmt::format("{} of weights were loaded when the next {} did not fit", human_bytes(weights),
                                             human_bytes(c.asked_bytes)));
            if (others_decide(c)) return others_line(c, d);
            d.cause = "weights_exceed_memory";
            d.summary = fmt::format("{} of weights at least, on a card of {}", human_bytes(weights + c.asked_bytes),
                                    human_bytes(f.device_total_bytes));
            return;
        case Phase::profile:
            d.evidence.push_back(fmt::format("{} of activations were alive in the profiling pass, over {} of weights",
                                             human_bytes(c.step_activation_bytes), human_bytes(weights)));
            if (others_decide(c)) return others_line(c, d);
            d.cause = "profile_batch_too_large";
            d.summary = fmt::format("{} for the dummy batch of the profiling pass did not fit beside the weights",
                                    human_bytes(c.step_activation_bytes));
            return;
        case Phase::kv_pool: {
            if (others_decide(c)) return others_line(c, d);
            const bool by_hand = c.life.budget && c.life.budget->available_kv_bytes <
                                     static_cast<i64>(c.life.budget->num_gpu_blocks * c.life.budget->kv_block_bytes);
            d.cause = by_hand ? "engine_limits_too_large" : "memory_fraction_above_free";
            if (c.life.budget) {
                d.evidence.push_back(fmt::format(
                    "{} for a pool of {} blocks, {}", human_bytes(c.life.budget->num_gpu_blocks * c.life.budget->kv_block_bytes),
                    c.life.budget->num_gpu_blocks, by_hand ? "more than the profile left: the number was set by hand"
                                                           : "sized without what lies outside the fraction"));
            }
            d.summary = fmt::format("{} short while the KV pool was made", human_bytes(c.short_by_bytes));
            return;
        }
        case Phase::graph_capture:
            d.cause = "cuda_graphs_unbudgeted";
            d.evidence.push_back(fmt::format("{} of graphs were captured, and {} was left for the next one",
                                             human_bytes(f.graph_bytes), human_bytes(f.device_free_bytes)));
            d.summary = fmt::format("{} of graphs on top of a budget that did not count them", human_bytes(f.graph_bytes));
            return;
        default:
            if (others_decide(c)) return others_line(c, d);
            d.cause = "memory_fraction_above_free";
            d.confidence = 0.7;
            d.summary = fmt::format("{} short in phase {}", human_bytes(c.short_by_bytes), trace::phase_name(f.phase));
            return;
    }
}

void judge_spike(const Case& c, Diagnosis& d) {
    const trace::FailureRecord& f = c.f;
    d.cause = "prefill_activation_spike";
    d.confidence = 0.98;
    if (capped(c)) cap_line(c, d);
    d.evidence.push_back(fmt::format("{} of activations in the failing step against {} in the profile that sized the pool ({:.1f} times)",
                                     human_bytes(c.step_activation_bytes), human_bytes(f.profiled_activation_bytes),
                                     static_cast<double>(c.step_activation_bytes) /
                                         static_cast<double>(std::max<u64>(1, f.profiled_activation_bytes))));
    const u64 profiled = c.life.budget ? c.life.budget->profiled_tokens : 0;
    d.evidence.push_back(fmt::format("{} tokens of prompt and {} of decode in the step, the longest prompt {}{}", f.step_prefill_tokens,
                                     f.step_decode_tokens, f.longest_prompt,
                                     profiled > 0 ? fmt::format("; the profile had {} tokens", profiled) : ""));
    if (f.step_prefill_tokens > 0) {
        d.evidence.push_back(fmt::format("{} a token and more: it had not reached its peak when it failed",
                                         human_bytes(c.step_activation_bytes / std::max<u64>(1, f.step_prefill_tokens))));
    }
    if (d.summary.empty()) {
        d.summary = fmt::format("{} of activations for a prompt of {} tokens, {} were profiled", human_bytes(c.step_activation_bytes),
                                f.longest_prompt, human_bytes(f.profiled_activation_bytes));
    }
}

namespace {

void judge_pool(const Case& c, Diagnosis& d) {
    const trace::FailureRecord& f = c.f;
    const u64 block = c.life.budget ? std::max<u64>(1, c.life.budget->block_size) : 16;
    const u64 preempted = f.preemptions - std::min(f.preemptions, c.life.preemptions_at_begin);
    d.evidence.push_back(fmt::format("{} of {} KV blocks were used, after {} preemptions", f.kv_blocks_used, f.kv_blocks_total, preempted));
    if (c.life.lost_kv_blocks > 0) {
        d.evidence.push_back(fmt::format("{} used blocks belong to no running request: the accounting lost them",
                                         c.life.lost_kv_blocks));
    }
    const u64 wants = c.failure.request_prompt_tokens;
    if (f.request != trace::kNoRequest && f.kv_blocks_total > 0 && wants > f.kv_blocks_total * block) {
        d.cause = "request_larger_than_pool";
        d.evidence.push_back(fmt::format("request {} has {} prompt tokens, the whole pool {}", f.request, wants, f.kv_blocks_total * block));
    } else if (c.life.lost_kv_blocks > 0 || preempted == 0) {
        d.cause = "kv_exhausted_no_preemption";
    } else {
        d.cause = "request_larger_than_pool";
        d.evidence.push_back("everybody else had been preempted, and it still did not fit");
    }
    d.confidence = 0.95;
    d.summary = fmt::format("{} of {} KV blocks are used, and nobody gave way", f.kv_blocks_used, f.kv_blocks_total);
}

}  // namespace

void judge_under_load(const Case& c, Diagnosis& d) {
    const trace::FailureRecord& f = c.f;
    if (c.refused()) return judge_pool(c, d);
    if (capped(c)) return cap_line(c, d);
    const u64 free_in_cache = c.gap_bytes();
    d.confidence = 0.9;
    const bool on_demand = f.kv_blocks_total == 0;
    if (on_demand || f.owner == Owner::kv) {
        const u64 preempted = f.preemptions - std::min(f.preemptions, c.life.preemptions_at_begin);
        d.evidence.push_back(fmt::format("{} of KV in {} blocks, taken on demand, with {} preemptions", human_bytes(c.owned(Owner::kv)),
                                         f.kv_blocks_used, preempted));
        d.cause = preempted == 0 ? "kv_exhausted_no_preemption" : "kv_overcommitted_admission";
        d.confidence = 0.97;
        d.summary = fmt::format("{} of KV had been taken when the next {} did not fit, and nobody was preempted",
                                human_bytes(c.owned(Owner::kv)), human_bytes(c.asked_bytes));
        if (preempted > 0) {
            d.summary = fmt::format("{} of KV for more requests than can finish", human_bytes(c.owned(Owner::kv)));
        }
        return;
    }
    if (free_in_cache + f.device_free_bytes >= c.asked_bytes && f.largest_free_block_bytes < std::max(f.rounded_bytes, f.requested_bytes)) {
        d.cause = "fragmentation";
        d.evidence.push_back(fmt::format("{} is reserved and free, the largest hole is {}, and {} were wanted in one piece",
                                         human_bytes(free_in_cache), human_bytes(f.largest_free_block_bytes), human_bytes(f.rounded_bytes)));
        d.summary = fmt::format("{} is free in the cache, and no piece of it is {}", human_bytes(free_in_cache), human_bytes(f.rounded_bytes));
        return;
    }
    // The step is not larger than planned, so somebody took what was left free for it.
    const u64 graphs = minus(f.graph_bytes, c.life.budget ? c.life.budget->graph_estimate_bytes : 0);
    if (others_decide(c) && c.others_bytes() >= graphs) return others_line(c, d);
    if (graphs >= c.short_by_bytes && graphs > 0) {
        d.cause = "cuda_graphs_unbudgeted";
        d.evidence.push_back(fmt::format("{} of graphs lie on top of the budget", human_bytes(graphs)));
        d.summary = fmt::format("{} of graphs took the room that the step was to have", human_bytes(graphs));
        return;
    }
    d.cause = "memory_fraction_above_free";
    d.confidence = 0.7;
    d.summary = fmt::format("{} short for a step within its profile: the fraction leaves too little", human_bytes(c.short_by_bytes));
}

}  // namespace oomlab::diagnosis
