// Type 1: planning, loading, profile, capture and warm-up.
#include <fmt/format.h>

#include <algorithm>

#include "labs/field/triage/judge.hpp"

namespace oomlab::triage {
namespace {

using S = Signal;
using C = Cause;
constexpr double kGiBd = 1024.0 * 1024 * 1024;
constexpr double kMiBd = 1024.0 * 1024;

// The planner's own refusals: nothing was allocated, the words are exact.
void planning(Case& c) {
    const Facts& f = c.facts;
    if (const Fact* x = f.first(S::free_below_requested)) {
        Claim& k = c.claim(C::memory_fraction_above_free, 95);
        Case::prove(k, x);
        if (const Fact* o = f.first(S::other_process)) Case::prove(k, o);
        if (!x->fields[3].empty())
            c.figures.push_back(
                fmt::format("{} GiB were free at start, {} GiB asked ({} of {} GiB): {:.2f} GiB "
                            "short; somebody else holds {:.2f} GiB",
                            x->fields[0], x->fields[3], x->fields[2], x->fields[1],
                            x->number(3) - x->number(0), x->number(1) - x->number(0)));
        c.rule_out(C::weights_exceed_memory, "the check runs before any weight is loaded", x);
    }
    const Fact* kv = f.first(S::available_kv);
    for (const S s : {S::kv_need_exceeds, S::kv_len_exceeds}) {
        if (const Fact* x = f.first(s)) {
            Claim& k = c.claim(C::kv_pool_smaller_than_max_model_len, 94);
            Case::prove(k, x);
            if (kv) Case::prove(k, kv);
            c.rule_out(C::weights_exceed_memory,
                       "the weights are loaded: the plan failed after them", x);
        }
    }
    if (const Fact* x = f.first(S::no_cache_blocks)) {
        Claim& k = c.claim(C::weights_leave_no_kv, 84);
        Case::prove(k, x);
        if (kv) Case::prove(k, kv);
        if (const Fact* w = f.first(S::weights_loaded)) Case::prove(k, w);
        // A graph estimate as large as the card is wrong itself.
        if (const Fact* g = f.first(S::graph_estimate); g && g->number(0) > 20) {
            Claim& graphs = c.claim(C::cuda_graphs_unbudgeted, 87);
            Case::prove(graphs, g,
                        "an estimate this large is the planner's mistake, not the graphs' size");
            Case::prove(graphs, x);
        }
        // Memory outside PyTorch as large as this is a neighbour's: older planners count it as
        // theirs.
        const Fact* terms = f.find(S::plan_terms, [](const Fact& e) {
            return e.number(1) > 6 && e.number(1) > 0.5 * e.number(0);
        });
        const Fact* report = f.find(S::plan_report, [](const Fact& e) {
            return e.number(4) > 6 && e.number(4) > 0.5 * e.number(2);
        });
        if (const Fact* outside = terms ? terms : report) {
            Claim& other = c.claim(C::other_memory_on_device, 90);
            Case::prove(other, outside,
                        "far more outside PyTorch than a context and libraries take: another "
                        "process's memory was counted");
            Case::prove(other, x);
            Case::prove(other, kv);
        }
        c.rule_out(C::weights_exceed_memory,
                   "the weights were loaded; the planner found no room behind them", x);
    }
    if (const Fact* x = f.first(S::sglang_not_enough)) {
        Claim& k = c.claim(C::weights_leave_no_kv, 90);
        Case::prove(k, x);
        Case::prove(k, f.find(S::engine_start,
                              [](const Fact& e) { return mentions(e, "mem_fraction_static"); }));
        Case::prove(k, f.first(S::weights_loaded));
    }
    if (const Fact* x = f.first(S::tgi_prefill_tokens)) {
        Claim& k = c.claim(C::profile_batch_too_large, 93);
        Case::prove(k, x);
    }
    if (const Fact* x = f.first(S::tgi_total_tokens)) {
        Claim& k = c.claim(C::kv_pool_smaller_than_max_model_len, 92);
        Case::prove(k, x);
    }
    if (const Fact* x = f.first(S::profile_guard)) {
        Claim& k = c.claim(C::other_memory_on_device, 90);
        Case::prove(k, x);
        Case::prove(k, f.find(S::available_kv, [](const Fact& e) { return e.number(0) <= 0; }));
        Case::prove(k, f.first(S::unified_memory));
        c.rule_out(C::weights_leave_no_kv,
                   "free memory rose while it was measured: the figures are a neighbour's, not the "
                   "model's",
                   x);
    }
    if (const Fact* x = f.first(S::sampler_warmup_oom)) {
        Claim& k = c.claim(C::sampler_warmup_logits, 96);
        if (!f.torch.empty()) Case::prove(k, f.torch.front(), "the logits that did not fit");
        Case::prove(k, x);
        c.rule_out(C::weights_exceed_memory,
                   "weights, cache and graphs were in place before the warm-up",
                   f.first(S::weights_loaded));
    }
    if (const Fact* x = f.first(S::load_not_enough)) {
        Claim& k = c.claim(C::weights_exceed_memory, 88);
        Case::prove(k, x);
        if (!f.torch.empty())
            Case::prove(k, f.torch.front(), "the allocation that failed while loading");
    }
    if (const Fact* x = f.first(S::needs_system_memory); x == nullptr) {
        if (const Fact* fit = f.first(S::ggml_fit);
            fit && !mentions(fit, "no changes") && !mentions(fit, "projected")) {
            Claim& k = c.claim(C::weights_exceed_memory, 72);
            Case::prove(k, fit);
        }
    }
    if (const Fact* x = f.first(S::weights_dispatched)) {
        Claim& k = c.claim(C::weights_exceed_memory, 80);
        Case::prove(k, x);
    }
    if (const Fact* x = f.first(S::trt_component)) {
        const Cause cause = mentions(x, "kv cache")    ? C::weights_leave_no_kv
                            : mentions(x, "sampler")   ? C::sampler_warmup_logits
                            : mentions(x, "draft")     ? C::auxiliary_model_unbudgeted
                            : mentions(x, "temporary") ? C::profile_batch_too_large
                            : mentions(x, "extra")     ? C::profile_batch_too_large
                                                       : C::weights_exceed_memory;
        Claim& k = c.claim(cause, 90);
        Case::prove(k, x, "the start says which component failed");
        Case::prove(k, f.first(S::trt_create_failed));
    }
    // The pool that was planned is larger than the slice: the total is somebody else's.
    const Fact* slice = f.find(S::mig_device, [](const Fact& e) { return !e.fields[1].empty(); });
    if (slice && kv && kv->number(0) > slice->number(1)) {
        Claim& k = c.claim(C::device_total_misreported, 94);
        Case::prove(k, slice);
        Case::prove(k, kv, "more than the whole slice has");
        Case::prove(k, f.first(S::nvml_error));
        Case::prove(k, f.first(S::nvml_assert));
        c.figures.push_back(
            fmt::format("{} GiB were planned for KV on a slice of {} GB: the total that was asked "
                        "is the whole card's",
                        kv->fields[0], slice->fields[1]));
    } else if (const Fact* x = f.first(S::nvml_assert);
               x && (f.has(S::mig_device) || f.has(S::nvml_error) || f.has(S::jetson) ||
                     f.has(S::unified_memory) || f.has(S::wsl))) {
        Claim& k = c.claim(C::device_total_misreported, 88);
        Case::prove(k, x);
        Case::prove(k, f.first(S::nvml_error));
        Case::prove(k, f.first(S::mig_device));
    } else if (x != nullptr) {
        Claim& k = c.claim(C::device_total_misreported, 62);
        Case::prove(k, x);
    }
    // KV planned beyond the card that the failing allocation names.
    if (kv && !f.torch.empty() && f.torch.front().total &&
        kv->number(0) * kGiBd > *f.torch.front().total * 1.02) {
        Claim& k = c.claim(C::device_total_misreported, 90);
        Case::prove(k, kv, "more than the whole device has");
        Case::prove(k, f.torch.front(), "the device's own total");
    }
}

// The engine's own sum, recomputed: it agrees to 0.01 GiB when the line is whole.
void plan_arithmetic(Case& c) {
    const Facts& f = c.facts;
    if (const Fact* x = f.first(S::plan_total); x && !x->fields[2].empty())
        c.figures.push_back(fmt::format("{} GiB x {} = {:.2f} GiB for this instance (printed {})",
                                        x->fields[0], x->fields[1], x->number(0) * x->number(1),
                                        x->fields[2]));
    const Fact* total = f.first(S::plan_total);
    if (const Fact* x = f.first(S::plan_terms); x && !x->fields[3].empty() && total) {
        const double rest = total->number(2) - x->number(0) - x->number(1) - x->number(2);
        c.figures.push_back(fmt::format(
            "{} - weights {} - outside PyTorch {} - activations {} = {:.2f} GiB for the KV cache "
            "(printed {})",
            total->fields[2], x->fields[0], x->fields[1], x->fields[2], rest, x->fields[3]));
    }
    if (const Fact* x = f.first(S::plan_report); x && !x->fields[5].empty()) {
        const double rest = x->number(1) - x->number(2) - x->number(3) - x->number(4);
        c.figures.push_back(fmt::format(
            "{} asked - weights {} - activations {} - outside PyTorch {} = {:.2f} GiB for the KV "
            "cache; graphs took {} GiB",
            x->fields[1], x->fields[2], x->fields[3], x->fields[4], rest, x->fields[5]));
    }
    const Fact* need =
        f.find(S::kv_need_exceeds, [](const Fact& e) { return mentions(e, "is needed"); });
    if (need && !need->fields[1].empty() && need->number(0) > need->number(1) &&
        need->number(1) >= 0) {
        c.figures.push_back(fmt::format(
            "one request of the maximum length needs {} GiB, the cache has {}: {:.2f} GiB short",
            need->fields[0], need->fields[1], need->number(0) - need->number(1)));
    }
}

}  // namespace

void judge_start_failure(Case& c) {
    const auto& d = c.failure;
    const Facts& f = c.facts;
    const auto near = [&](S s) { return near_frame(d.frames, s); };
    const auto prove_failure = [&](Claim& k, std::string_view why) {
        if (d.torch) Case::prove(k, *d.torch, why);
        if (d.fact) Case::prove(k, d.fact, why);
    };
    const Fact* draft = f.before(S::draft_context, d.place);
    if (draft == nullptr) draft = f.first(S::draft_context);
    const bool draft_failed = draft && (draft->place < d.place || mentions(draft, "fail"));
    if (near(S::frame_sampler_warmup)) {
        Claim& k = c.claim(C::sampler_warmup_logits, 92);
        Case::prove(k, f.before(S::frame_sampler_warmup, d.place));
        prove_failure(k, "the logits that did not fit");
    }
    const Fact* capture = f.before(S::frame_capture, d.place);
    const bool capturing = near(S::frame_capture) || f.has(S::capture_failed);
    if (capturing && !near(S::frame_sampler_warmup)) {
        // The profile's frames stand near too when it captures for its estimate: the last frame
        // counts.
        const bool last = d.frames.line[frame_slot(S::frame_capture)] >=
                          d.frames.line[frame_slot(S::frame_profile)];
        Claim& k = c.claim(C::cuda_graphs_unbudgeted, last ? 90 : 60);
        if (const Fact* kv = f.before(S::available_kv, d.place)) Case::prove(k, kv);
        Case::prove(k, f.before(S::capture_progress, d.place));
        Case::prove(k, f.first(S::capture_failed));
        Case::prove(k, capture);
        prove_failure(k, "the allocation that failed during capture");
        c.rule_out(C::weights_exceed_memory,
                   "weights and KV cache were allocated before the capture began",
                   f.first(S::available_kv));
    } else if (f.before(S::capture_progress, d.place) && !near(S::frame_profile) &&
               !near(S::frame_load)) {
        Claim& k = c.claim(C::cuda_graphs_unbudgeted, 78);
        Case::prove(k, f.before(S::capture_progress, d.place));
        prove_failure(k, "the failure comes during capture");
    }
    if (near(S::frame_profile) && !near(S::frame_sampler_warmup)) {
        Claim& k = c.claim(C::profile_batch_too_large, capturing ? 70 : 90);
        Case::prove(k, f.before(S::encoder_budget, d.place));
        Case::prove(k, f.before(S::frame_profile, d.place));
        if (near(S::frame_vision)) Case::prove(k, f.before(S::frame_vision, d.place));
        prove_failure(k, "the allocation that failed in the profile run");
        c.rule_out(C::weights_exceed_memory, "the weights were in before the profile began",
                   f.first(S::weights_loaded));
    }
    if (draft_failed || (near(S::frame_draft) && (near(S::frame_load) || f.has(S::draft_config)))) {
        Claim& k = c.claim(C::auxiliary_model_unbudgeted, draft_failed ? 93 : 91);
        Case::prove(k, f.find(S::ggml_fit, [](const Fact& e) { return mentions(e, "projected"); }));
        Case::prove(k, draft);
        Case::prove(k, f.before(S::frame_draft, d.place));
        Case::prove(k, f.first(S::draft_config));
        prove_failure(k, "what the second model asked for");
    }
    // llama.cpp says at the end which buffer it was.
    if (const Fact* b = f.last(S::ggml_buffer)) {
        const Fact* kv = f.find(S::ggml_buffer, [](const Fact& e) {
            return mentions(e, "kv cache") || mentions(e, "kv_cache");
        });
        const Fact* compute = f.find(S::ggml_buffer, [](const Fact& e) {
            return mentions(e, "compute") || mentions(e, "gallocr_reserve");
        });
        const Fact* model =
            f.find(S::ggml_buffer, [](const Fact& e) { return mentions(e, "unable to allocate"); });
        if (kv) {
            Claim& k = c.claim(C::kv_pool_smaller_than_max_model_len, 80);
            Case::prove(k, f.first(S::llama_ctx));
            prove_failure(k, "the KV cache that was asked for");
            Case::prove(k, kv);
            c.claim(C::weights_leave_no_kv, 55);
        } else if (compute) {
            Claim& k = c.claim(C::profile_batch_too_large, 74);
            prove_failure(k, "the work buffer that was asked for");
            Case::prove(k, compute);
        } else {
            Claim& k = c.claim(C::weights_exceed_memory, model ? 86 : 66);
            prove_failure(k, "a buffer for weights");
            Case::prove(k, model ? model : b);
        }
    }
    // TensorRT-LLM: the engine itself, or its buffers, at creation.
    const Fact* created = f.first(S::trt_create_failed);
    if (d.fact && (created || mentions(d.fact, "tensorrt") || mentions(d.fact, "tllm") ||
                   f.has(S::trt_engine_limits) || f.has(S::trt_context_memory))) {
        Claim& k = c.claim(C::engine_limits_too_large, 84);
        Case::prove(k, f.first(S::trt_engine_limits));
        Case::prove(k, f.first(S::trt_context_memory));
        prove_failure(k, "refused while the engine was being created");
        Case::prove(k, created);
    }
    if (near(S::frame_kv_alloc) && !near(S::frame_profile) && !capturing) {
        Claim& k = c.claim(C::weights_leave_no_kv, 68);
        Case::prove(k, f.before(S::frame_kv_alloc, d.place));
        Case::prove(k, f.before(S::available_kv, d.place));
        prove_failure(k, "the KV cache itself could not be allocated");
        if (f.has(S::unified_memory) || f.has(S::mig_device) || f.has(S::wsl))
            Case::prove(c.claim(C::device_total_misreported, 78),
                        f.first_of({S::unified_memory, S::mig_device, S::wsl}));
    }
    if (near(S::frame_load) && !near(S::frame_profile) && !capturing && !near(S::frame_kv_alloc) &&
        !f.has(S::cumem_error)) {
        Claim& k = c.claim(C::weights_exceed_memory, 86);
        Case::prove(k, f.before(S::frame_load, d.place));
        prove_failure(k, "the allocation that failed while loading");
    }
    if (d.fact && d.fact->signal == S::nccl_oom) {
        const bool graphs = f.has(S::frame_capture) || f.has(S::capture_progress);
        Claim& k = c.claim(graphs ? C::cuda_graphs_unbudgeted : C::weights_leave_no_kv, 56);
        Case::prove(
            k, d.fact,
            "NCCL's own buffers lie outside the engine's share, and nothing was left for them");
        Case::prove(k, f.first(S::frame_capture));
    }
    const Fact* loaded = f.before(S::weights_loaded, d.place);
    if (!loaded && f.before(S::loading_weights, d.place) && !near(S::frame_profile) && !capturing) {
        Claim& k = c.claim(C::weights_exceed_memory, 72);
        Case::prove(k, f.before(S::loading_weights, d.place));
        prove_failure(k, "the failure comes while weights are being loaded");
    }
    // No frame above it: what had been printed before tells how far the start had come.
    const bool named = near(S::frame_profile) || capturing || near(S::frame_load) ||
                       near(S::frame_kv_alloc) || near(S::frame_sampler_warmup) ||
                       near(S::frame_draft);
    if (!named && d.torch) {
        const bool sized = f.before(S::kv_tokens, d.place) != nullptr;
        const Cause cause = sized    ? C::cuda_graphs_unbudgeted
                            : loaded ? C::profile_batch_too_large
                                     : C::weights_exceed_memory;
        Claim& k = c.claim(cause, sized ? 56 : loaded ? 54 : 58);
        Case::prove(k, sized ? f.before(S::kv_tokens, d.place) : loaded);
        prove_failure(k, "the failure comes during start-up, and this is how far it had come");
        Case::prove(k, f.first(S::start_failed));
    }
}

void judge_planning(Case& c) {
    planning(c);
    plan_arithmetic(c);
}

}  // namespace oomlab::triage
