// Types 1 and 2, and the cap: which failure of device memory it was, by phase, frames and figures.
#include <algorithm>

#include "labs/field/triage/judge.hpp"

namespace oomlab::triage {
namespace {

using S = Signal;
using C = Cause;
constexpr double kGiBd = 1024.0 * 1024 * 1024;
constexpr double kMiBd = 1024.0 * 1024;

// How the message's numbers bear on the cause, whatever the phase.
struct Figures {
    bool cap = false, others = false, fragmented = false, beyond_total = false, absurd = false;
    bool free_enough = false, free_plenty = false;
    double others_bytes = 0;
};

Figures weigh(const TorchOom& o) {
    Figures g;
    if (o.preemptive) g.cap = true;
    if (o.allowed && o.total && *o.allowed < *o.total * 0.995) g.cap = true;
    if (o.allowed && !o.total) g.cap = true;
    if (o.asked && o.unallocated && *o.unallocated >= *o.asked && *o.unallocated >= 256 * kMiBd)
        g.fragmented = true;
    if (o.asked && o.free && *o.free >= *o.asked * 1.02 && !g.cap) g.free_enough = true;
    if (g.free_enough && *o.free >= 2 * *o.asked && *o.free >= 512 * kMiBd &&
        (!o.total || *o.free >= 0.15 * *o.total)) {
        g.free_plenty = true;
        g.fragmented = false;  // a new segment would have been had for the asking
    }
    if (o.asked && o.total && *o.asked > *o.total) g.beyond_total = true;
    if (o.asked && *o.asked > 1024 * kGiBd) g.absurd = true;
    if (const auto others = o.others(); others && o.total && *others > 0.18 * *o.total) {
        g.others = true;
        g.others_bytes = *others;
    }
    return g;
}

void serving_failure(Case& c) {
    const auto& d = c.failure;
    const Facts& f = c.facts;
    const auto near = [&](S s) { return near_frame(d.frames, s); };
    const auto prove_failure = [&](Claim& k, std::string_view why) {
        if (d.torch) Case::prove(k, *d.torch, why);
        if (d.fact) Case::prove(k, d.fact, why);
    };
    const Figures g = d.torch ? weigh(*d.torch) : Figures{};
    const Fact* logprobs = f.before(S::logprobs, d.place);
    if (!logprobs) logprobs = f.first(S::logprobs);
    const Fact* context_logits = f.first(S::trt_context_logits);
    if (near(S::frame_logits) || logprobs || context_logits) {
        const bool asked = logprobs || context_logits;
        Claim& k = c.claim(C::logits_for_prompt_tokens, near(S::frame_logits) && asked ? 94
                                                        : near(S::frame_logits)        ? 82
                                                        : context_logits               ? 86
                                                                                       : 74);
        Case::prove(k, context_logits);
        Case::prove(k, f.before(S::prompt_length, d.place));
        Case::prove(k, f.last(S::trt_context_logits));
        Case::prove(k, logprobs);
        Case::prove(k, f.before(S::frame_logits, d.place));
        prove_failure(k, "the logits that did not fit");
    }
    const Fact* fallback = f.first(S::no_flash_attention);
    const bool image = near(S::frame_vision) || f.before(S::llama_clip, d.place) ||
                       f.before(S::image_request, d.place);
    if (near(S::frame_attention) || (fallback && (g.beyond_total || image))) {
        const double strength =
            near(S::frame_attention) ? (fallback || g.beyond_total ? 93 : 83) : 74;
        Claim& k = c.claim(C::attention_scores_quadratic, strength);
        Case::prove(k, fallback);
        Case::prove(k, f.before(S::image_request, d.place));
        Case::prove(k, f.before(S::frame_attention, d.place));
        prove_failure(k, g.beyond_total ? "more than the whole card in one piece: the size grows "
                                          "with the square of the tokens"
                                        : "the scores that did not fit");
        c.rule_out(C::leak_retained_requests,
                   "one allocation alone is out of proportion; nothing has to have grown");
    }
    if (image) {
        Claim& k = c.claim(C::vision_encoder_spike, near(S::frame_attention) ? 72
                                                    : near(S::frame_vision)  ? 88
                                                                             : 86);
        Case::prove(k, f.before(S::llama_clip, d.place));
        Case::prove(k, f.find(S::llama_clip, [](const Fact& e) { return !e.fields[0].empty(); }));
        Case::prove(k, f.before(S::image_request, d.place));
        Case::prove(k, f.before(S::frame_vision, d.place));
        prove_failure(k, "what the encoder asked for");
        if (d.fact && f.count(d.fact->signal) > 1)
            Case::prove(k, f.last(d.fact->signal), "and again");
    }
    const bool ggml = f.has(S::ggml_oom) || f.has(S::llama_in_function) ||
                      f.has(S::llama_buffers) || f.has(S::ggml_buffer);
    if (ggml && !d.torch) {
        Claim& k = c.claim(C::compute_buffer_underestimated, 82);
        Case::prove(
            k, f.find(S::llama_buffers, [](const Fact& e) { return mentions(e, "offloaded"); }));
        Case::prove(k, f.first(S::llama_ctx));
        prove_failure(k, "the failure while serving");
        Case::prove(k, f.after(S::ggml_buffer, d.place));
        Case::prove(k, f.after(S::llama_in_function, d.place));
        Case::prove(k, f.last(S::llama_in_function));
        c.rule_out(C::weights_exceed_memory,
                   "it loaded and answered: the growth came with a request",
                   f.before(S::serving_ready, d.place));
    }
    if (near(S::frame_draft)) {
        Claim& k = c.claim(C::prefill_activation_spike, 66);
        prove_failure(k, "the failing step includes the draft model");
    }
    if (d.torch || f.has(S::trt_kv_total) || near(S::frame_execute) || f.has(S::scheduler_dump)) {
        const bool strong = near(S::frame_execute) || f.has(S::scheduler_dump) ||
                            f.before(S::prompt_length, d.place) ||
                            f.before(S::sglang_prefill, d.place);
        Claim& k = c.claim(C::prefill_activation_spike, near(S::frame_backward) ? 45
                                                        : strong                ? 72
                                                                                : 60);
        Case::prove(k, f.before(S::prompt_length, d.place));
        Case::prove(k, f.before(S::sglang_prefill, d.place));
        Case::prove(k, f.before(S::frame_execute, d.place));
        prove_failure(k, "the allocation that failed while serving");
        Case::prove(k, f.first(S::scheduler_dump));
        c.rule_out(C::weights_exceed_memory, "it was serving: weights and plan had fitted",
                   f.before(S::serving_ready, d.place));
    } else if (!ggml) {
        Claim& k = c.claim(C::prefill_activation_spike, 50);
        prove_failure(k, "the failure while serving");
    }
}

void by_figures(Case& c) {
    const auto& d = c.failure;
    if (!d.torch) return;
    const TorchOom& o = *d.torch;
    const Figures g = weigh(o);
    const bool start = d.phase == Phase::start;
    if (g.cap) {
        Claim& k = c.claim(C::self_imposed_cap,
                           start                                            ? 1
                           : c.facts.series.rising(Series::Kind::allocated) ? 4
                                                                            : 2,
                           96);
        Case::prove(k, o, "a limit is named: the process may not use the whole card");
        Case::prove(k, c.facts.first(S::cap_set));
        c.rule_out(C::weights_exceed_memory,
                   "the card has memory left; the process's own share is used up");
    }
    if (g.others && !g.cap) {
        const bool loading = start || d.phase == Phase::unknown;
        const double share = g.others_bytes / *o.total;
        Claim& k = c.claim(C::other_memory_on_device, loading ? (share > 0.4 ? 92 : 78) : 58);
        Case::prove(k, o, "other processes hold a good part of the card");
        if (const Fact* x = c.facts.find(S::other_process, [](const Fact& e) {
                return e.text.find("ried to allocate") == std::string::npos;
            }))
            Case::prove(k, x);
    }
    if (g.fragmented && !g.cap) {
        // Holes larger than what was asked. How large beside the card says how sure.
        const double share = o.total ? *o.unallocated / *o.total : 0;
        const bool known_spike =
            near_frame(d.frames, S::frame_profile) || near_frame(d.frames, S::frame_load);
        double strength = share > 0.10 ? 88 : share > 0.04 ? 80 : 64;
        if (known_spike) strength -= 25;
        if (g.free_enough) strength -= 20;
        Claim& k = c.claim(C::fragmentation, strength);
        Case::prove(k, o, "more is free inside the cache than was asked, but not in one piece");
    }
    // Backends that cap one allocation (4 GiB on some) print a card that is nearly empty.
    const bool other_backend = o.text.find("XPU out of memory") != std::string::npos;
    if (other_backend && o.asked && o.total && !o.free &&
        *o.asked + o.allocated.value_or(0) + o.unallocated.value_or(0) < 0.9 * *o.total) {
        Claim& k = c.claim(C::single_allocation_cap, *o.asked >= 3.5 * kGiBd ? 86 : 60);
        Case::prove(k, o, "the card has room for it: the driver caps one allocation");
    }
    if (g.absurd || o.above_1eb) {
        Claim& k = c.claim(C::fault_reported_as_memory, o.above_1eb ? 85 : 70);
        Case::prove(k, o, "no card has this much: the size itself is wrong");
    }
    // Enough is free and no cap: the allocation did not fail for want of memory.
    if (g.free_enough && !g.fragmented) {
        const Fact* first = c.facts.first(S::cumem_error);
        Claim& k = c.claim(C::fault_reported_as_memory, first ? 95 : g.free_plenty ? 89 : 62);
        if (first) Case::prove(k, first);
        Case::prove(k, o, "much more is free than was asked: memory is not what was missing");
        c.rule_out(C::weights_exceed_memory, "the card had room for what was asked");
    }
    if (d.phase == Phase::unknown && !g.cap) {
        if (g.beyond_total) {
            Claim& k = c.claim(C::attention_scores_quadratic, 56);
            Case::prove(k, o, "more than the whole card in one piece");
        }
    }
}
}  // namespace

void judge_device(Case& c) {
    const Facts& f = c.facts;
    judge_planning(c);
    if (const Fact* x = f.first(S::workspace_full)) {
        Claim& k = c.claim(C::compute_buffer_underestimated, 86);
        c.prove_all(k, S::workspace_full);
        Case::prove(k, f.before(S::sglang_prefill, x->place));
    }
    const auto& d = c.failure;
    if (!d.any()) {
        if (const Fact* x = f.first(S::cap_set); x && mentions(x, "oom"))
            Case::prove(c.claim(C::self_imposed_cap, 70), x);
        return;
    }
    const auto near = [&](S s) { return near_frame(d.frames, s); };
    const bool start_frames = near(S::frame_profile) || near(S::frame_capture) ||
                              near(S::frame_sampler_warmup) || near(S::frame_load) ||
                              near(S::frame_kv_alloc);
    const bool served = f.before(S::serving_ready, d.place) != nullptr;
    const bool aux_start =
        f.has(S::trt_create_failed) || f.has(S::capture_failed) ||
        f.find(S::draft_context, [](const Fact& e) { return mentions(e, "fail"); });
    Phase phase = d.phase;
    if (phase == Phase::unknown) phase = start_frames || aux_start ? Phase::start : Phase::unknown;
    if (phase == Phase::unknown &&
        (near(S::frame_execute) || near(S::frame_logits) || near(S::frame_vision) ||
         near(S::frame_attention) || f.has(S::scheduler_dump)))
        phase = Phase::serving;
    // What the wrappers say afterwards tells the phase when the head of the log is missing.
    if (phase == Phase::unknown && f.has(S::start_failed)) phase = Phase::start;
    if (phase == Phase::unknown && f.has(S::serving_died)) phase = Phase::serving;
    if (phase == Phase::start && f.has(S::serving_died) && !f.has(S::start_failed) &&
        !start_frames && !f.before(S::loading_weights, d.place))
        phase = Phase::serving;
    if (phase == Phase::unknown && (f.has(S::ggml_buffer) || f.has(S::weights_loaded)))
        phase = Phase::start;
    // The profile runs the model: its frames outvote what looks like serving, unless it did serve.
    if (phase == Phase::serving && !served &&
        (near(S::frame_profile) || near(S::frame_sampler_warmup) || near(S::frame_capture)))
        phase = Phase::start;
    // A library, not a server: after loading, a generation fails.
    if (phase == Phase::start && !start_frames && !aux_start &&
        f.before(S::weights_loaded, d.place) &&
        (near(S::frame_execute) || near(S::frame_attention) || near(S::frame_vision) ||
         near(S::frame_logits) || f.before(S::stat_line, d.place)))
        phase = Phase::serving;
    if (phase == Phase::start && near(S::frame_execute) && !start_frames &&
        f.before(S::stat_line, d.place))
        phase = Phase::serving;
    // from_pretrained far above and .generate( just above: the nearer frame counts.
    if (phase != Phase::serving && near(S::frame_execute) && near(S::frame_load) &&
        !near(S::frame_profile) && !near(S::frame_capture) && !near(S::frame_kv_alloc) &&
        d.frames.line[frame_slot(S::frame_execute)] >
            d.frames.line[frame_slot(S::frame_load)] + 2 &&
        !f.before(S::loading_weights, d.place))
        phase = Phase::serving;
    c.failure.phase = phase;
    // A virtual GPU's own limit says so itself.
    if (const Fact* x = f.find(S::cap_set, [](const Fact& e) { return mentions(e, "oom"); })) {
        Claim& k = c.claim(C::self_imposed_cap, phase == Phase::start ? 1 : 2, 92);
        Case::prove(k, x);
    }
    by_figures(c);
    // The driver gives no figures; the table of the card's processes may.
    if (d.fact && d.fact->signal == S::device_oom && phase != Phase::serving) {
        const Fact* holder =
            f.find(S::other_process, [](const Fact& e) { return e.number(3) >= 1024; });
        const Fact* full = f.find(S::nvidia_smi_free, [](const Fact& e) {
            return e.number(1) > 0 && e.number(0) > 0.9 * e.number(1);
        });
        if (holder && !f.has(S::address_reserve)) {
            Claim& k = c.claim(C::other_memory_on_device, 80);
            Case::prove(k, d.fact, "the driver had nothing left to give");
            Case::prove(k, holder);
            Case::prove(k, full);
        }
    }
    if (phase == Phase::start) judge_start_failure(c);
    if (phase == Phase::serving) serving_failure(c);
    if (phase == Phase::unknown) {
        if (near(S::frame_backward)) {
            Claim& k = c.claim(C::prefill_activation_spike, 30);
            if (d.torch) Case::prove(k, *d.torch, "an allocation of a training step");
        }
        Claim& k = c.claim(C::prefill_activation_spike, 30);
        if (d.torch) Case::prove(k, *d.torch, "the message alone does not say when it came");
        if (d.fact) Case::prove(k, d.fact, "the message alone does not say when it came");
    }
    if (d.torch)
        for (auto& line : explain(*d.torch)) c.figures.push_back(std::move(line));
}

}  // namespace oomlab::triage
