// Type 3: the KV pool. Counters and the schedulers' own words.
#include <fmt/format.h>

#include "labs/field/triage/judge.hpp"

namespace oomlab::triage {
namespace {

using S = Signal;
using C = Cause;

void vllm(Case& c) {
    const Facts& f = c.facts;
    const Counters& n = f.counters;
    if (const Fact* x = f.first(S::no_swap_space)) {
        Claim& k = c.claim(C::swap_pool_exhausted, 96);
        Case::prove(k, f.first(S::gpu_cpu_blocks));
        Case::prove(k, f.first(S::sampling_many));
        Case::prove(k, x);
        c.rule_out(C::host_memory_too_small,
                   "the swap space is a pool of the engine, not the system's memory",
                   f.first(S::host_total));
    }
    if (const Fact* x = f.first(S::preempted)) {
        Claim& k = c.claim(C::kv_exhausted_preemption, 90);
        Case::prove(k, x);
        Case::prove(k, f.last(S::preempted),
                    "the last one of " + fmt::format("{}", f.count(S::preempted)));
        if (n.first_full) Case::prove(k, &*n.first_full, "the pool is full");
    }
    const Fact* counter = f.find(S::preemptions_counter, [](const Fact& e) {
        return e.number(0) > 0 && !mentions(e, "Paused");
    });
    if (counter) {
        Claim& k = c.claim(C::kv_exhausted_preemption, n.full ? 88 : 66);
        Case::prove(k, counter);
        if (n.first_full) Case::prove(k, &*n.first_full, "the pool is full");
        Case::prove(k, f.last(S::preemptions_counter));
    }
    const Fact* metric = f.find(S::stat_line, [](const Fact& e) {
        return mentions(e, "cache_usage_perc") && e.number(0) >= 0.95 && e.number(0) <= 1.0;
    });
    if (metric)
        Case::prove(c.claim(C::kv_exhausted_preemption, counter ? 88 : 60), metric,
                    "the pool is full");
    if (n.full >= 2 && n.first_full) {
        Claim& k = c.claim(C::kv_exhausted_preemption, n.full_waiting >= 2 ? 70 : 52);
        Case::prove(k, &*n.first_full, "the pool is full");
        Case::prove(k, &*n.last_full,
                    fmt::format("full in {} of the lines, with requests waiting in {}", n.full,
                                n.full_waiting));
    }
    if (n.frozen >= 2 && n.first_frozen) {
        Claim& k = c.claim(C::kv_exhausted_no_preemption, 74);
        Case::prove(k, &*n.first_frozen, "the pool is full and no token comes");
        Case::prove(k, &*n.last_full, "still so");
    }
    if (n.standing_run_best >= 2 && n.first_standing) {
        Claim& k = c.claim(C::request_larger_than_pool, n.standing_run_best >= 3 ? 84 : 68);
        Case::prove(k, &*n.first_standing,
                    "nothing runs, something waits, the pool is empty: the head of the queue "
                    "cannot be admitted");
        Case::prove(k, &*n.last_standing, "still so");
        Case::prove(k, f.first(S::kv_tokens));
    }
    if (const Fact* x = f.first(S::request_never_fits)) {
        Claim& k = c.claim(C::request_larger_than_pool, 88);
        Case::prove(k, x);
        Case::prove(k, f.first(S::kv_tokens));
        Case::prove(k, f.first(S::gpu_cpu_blocks));
    }
}

void sglang(Case& c) {
    const Facts& f = c.facts;
    const Counters& n = f.counters;
    const Fact* retracted = f.first(S::retracted);
    const Fact* ahead = f.find(S::preallocated, [](const Fact& e) { return e.number(0) > 0; });
    if (retracted) {
        Claim& k = c.claim(C::kv_exhausted_preemption, 86);
        Case::prove(k, retracted);
        if (f.last(S::retracted) != retracted) Case::prove(k, f.last(S::retracted));
        Case::prove(k, f.after(S::sglang_decode, retracted->place), "the batch after it");
        if (n.first_full) Case::prove(k, &*n.first_full, "the pool is full");
        c.rule_out(C::leak_retained_requests,
                   "the engine's pool is full by design; the card's use is constant");
    }
    if (retracted && ahead) {
        Claim& k = c.claim(C::kv_overcommitted_admission, 90);
        Case::prove(k, retracted);
        Case::prove(k, f.last(S::preallocated),
                    "reserved ahead for requests that are still in transfer, while running ones "
                    "are retracted");
        Case::prove(k, f.find(S::preallocated, [](const Fact& e) { return e.number(0) >= 0.3; }));
    }
    if (const Fact* x = f.first(S::retract_last); x && f.has(S::exception_root)) {
        const Fact* words =
            f.find(S::retract_last, [](const Fact& e) { return mentions(e, "No space left"); });
        Claim& k =
            c.claim(ahead ? C::kv_overcommitted_admission : C::kv_exhausted_no_preemption, 93);
        Case::prove(k, f.find(S::preallocated, [](const Fact& e) { return e.number(0) >= 0.3; }));
        Case::prove(k, words ? words : x);
    }
    // Prefill misses are fatal, decode misses are when nobody is left to retract.
    const Fact* miss =
        f.find(S::sglang_pool_oom, [](const Fact& e) { return mentions(e, "out of memory"); });
    if (miss) {
        const Fact* available = f.find(S::sglang_pool_oom, [](const Fact& e) {
            return !e.fields[0].empty() && (mentions(e, "vailable") || mentions(e, "valiable"));
        });
        const Fact* wanted = f.find(S::sglang_pool_oom,
                                    [](const Fact& e) { return mentions(e, "Try to allocate"); });
        const bool enough = available && wanted && available->number(0) >= wanted->number(0) &&
                            wanted->number(0) > 0;
        if (enough) {
            Claim& k = c.claim(C::fragmentation, 84);
            Case::prove(k, miss);
            Case::prove(k, wanted);
            Case::prove(k, available,
                        "as many tokens are available as were asked, but not in whole pages");
            c.figures.push_back(fmt::format(
                "{} tokens are available, {} were asked: enough, but not in whole pages",
                available->fields[0], wanted->fields[0]));
        }
        Claim& k = c.claim(C::kv_exhausted_no_preemption, enough ? 70 : 90);
        Case::prove(k, miss);
        Case::prove(k, wanted);
        Case::prove(k, available);
    }
    if (const Fact* x = f.first(S::req_slots)) {
        Claim& k = c.claim(C::kv_exhausted_no_preemption, 76);
        Case::prove(k, x);
    }
}

void others(Case& c) {
    const Facts& f = c.facts;
    // Many active, one scheduled, most blocks free, and a policy that reserves the whole output.
    const Fact* policy =
        f.find(S::trt_policy, [](const Fact& e) { return mentions(e, "GUARANTEED_NO_EVICT"); });
    if (const Fact* stats = f.first(S::trt_stats)) {
        const auto number = [](const Fact& e, std::string_view key) {
            const auto at = e.text.find(key);
            if (at == std::string::npos) return -1.0;
            auto i = at + key.size();
            while (i < e.text.size() && (e.text[i] == '"' || e.text[i] == ':' || e.text[i] == ' '))
                ++i;
            double v = 0;
            bool any = false;
            for (; i < e.text.size() && e.text[i] >= '0' && e.text[i] <= '9' && v < 1e15; ++i)
                v = v * 10 + (e.text[i] - '0'), any = true;
            return any ? v : -1.0;
        };
        const Fact* idle = f.find(S::trt_stats, [&](const Fact& e) {
            const double active = number(e, "Active Request Count"),
                         scheduled = number(e, "Scheduled Requests");
            const double free = number(e, "Free KV cache blocks"),
                         all = number(e, "Max KV cache blocks");
            return active > scheduled && scheduled >= 0 && all > 0 && free > 0.4 * all;
        });
        const Fact* full = f.find(S::trt_stats, [&](const Fact& e) {
            const double free = number(e, "Free KV cache blocks"),
                         all = number(e, "Max KV cache blocks");
            return all > 0 && free >= 0 && free < 0.05 * all;
        });
        const Fact* paused =
            f.find(S::trt_stats, [&](const Fact& e) { return number(e, "Paused Requests") > 0; });
        if (idle) {
            Claim& k = c.claim(C::kv_reserved_unused, policy ? 90 : 74);
            Case::prove(k, policy);
            Case::prove(k, idle,
                        "requests are active but not scheduled, while most blocks are free: they "
                        "are promised to output");
            Case::prove(k, f.last(S::trt_stats), "still so");
        } else if (paused || full) {
            Claim& k = c.claim(C::kv_exhausted_preemption, paused ? 80 : 60);
            Case::prove(k, paused ? paused : full);
        }
        (void)stats;
    }
    if (const Fact* x = f.first(S::trt_no_blocks)) {
        Claim& k = c.claim(C::kv_exhausted_no_preemption, 88);
        Case::prove(k, x);
        Case::prove(k, f.first(S::trt_kv_total));
    }
    const Fact* slot = f.first(S::kv_no_slot);
    if (slot && !c.failure.any()) {
        Claim& k = c.claim(C::kv_exhausted_no_preemption, 80);
        Case::prove(k, slot);
        Case::prove(k, f.first(S::context_exceeded));
    }
    if (const Fact* x =
            f.find(S::context_exceeded,
                   [](const Fact& e) { return mentions(e, "exceeded") || mentions(e, "full"); });
        x && !c.failure.any()) {
        Claim& k = c.claim(C::kv_exhausted_no_preemption, slot ? 90 : 78);
        Case::prove(k, slot);
        Case::prove(k, x);
    }
    if (const Fact* x = f.first(S::kv_fragmented)) {
        Claim& k = c.claim(C::fragmentation, c.failure.torch ? 60 : 82);
        Case::prove(k, x);
    }
    if (const Fact* x = f.first(S::overloaded); x && !c.failure.any()) {
        Claim& k = c.claim(C::kv_exhausted_no_preemption, 50);
        Case::prove(k, x);
    }
}

}  // namespace

void judge_pool(Case& c) {
    vllm(c);
    sglang(c);
    others(c);
}

}  // namespace oomlab::triage
