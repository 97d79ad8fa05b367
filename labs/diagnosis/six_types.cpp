#include "labs/diagnosis/six_types.hpp"

#include "labs/diagnosis/judge_parts.hpp"

namespace oomlab::diagnosis {

using trace::Phase;

const char* type_title(int type) {
    switch (type) {
        case 1: return "does not fit at load";
        case 2: return "activation spike of a long prompt";
        case 3: return "KV exhaustion or fragmentation under load";
        case 4: return "accumulation over completed requests";
        case 5: return "killed by the host's memory limit";
        case 6: return "an error that is not about memory";
        default: return "no OOM";
    }
}

Case case_of(const RunFacts& facts, const FailureFacts& failure) {
    Case c{facts, failure, facts.lives.at(failure.life), failure.record};
    const trace::FailureRecord& f = failure.record;
    c.asked_bytes = std::max({f.segment_bytes, f.rounded_bytes, f.requested_bytes});
    c.available_bytes = f.device_free_bytes;
    if (f.capped != 0 && f.limit_bytes != 0) {
        c.available_bytes = std::min(c.available_bytes, minus(f.limit_bytes, f.reserved_bytes));
    }
    if (c.memory()) c.short_by_bytes = minus(c.asked_bytes, c.available_bytes);
    u64 step = f.step_activation_bytes;
    const bool workspace = f.kind == trace::FailureKind::allocator_oom && f.owner == Owner::workspace &&
                           f.step_requests > 0;
    if (workspace) step += f.rounded_bytes;
    const u64 stays = failure.before && f.phase == Phase::serving
                          ? failure.before->owner[index(Owner::activations)].now : 0;
    c.step_activation_bytes = minus(step, stays);
    return c;
}

namespace {

std::string asked_line(const Case& c) {
    const trace::FailureRecord& f = c.f;
    const std::string who = f.request == trace::kNoRequest ? "" : fmt::format(", request {}", f.request);
    if (f.kind == trace::FailureKind::refused) {
        return fmt::format("refused in phase {}{}: no allocation failed, the plan did not fit",
                           trace::phase_name(f.phase), who);
    }
    const std::string asked = c.asked_bytes == 0 ? std::string("an unknown size") : human_bytes(c.asked_bytes);
    return fmt::format("{} was asked for {}{} in phase {}, {} was free on a card of {}", asked,
                       name_of(f.owner), who, trace::phase_name(f.phase),
                       human_bytes(f.device_free_bytes), human_bytes(f.device_total_bytes));
}

void rule_out_before(const Case& c, const Growth& growth, int type, Diagnosis& d) {
    // In the contract's order; the verdict ends the list.
    const auto say = [&](int n, std::string why) {
        d.ruled_out.push_back(fmt::format("type {}: {}", n, why));
    };
    say(5, c.facts.host.known && c.facts.host.signal == 0
               ? fmt::format("the server ended by itself with exit {}, the kernel killed nothing", c.facts.host.exit_status)
               : std::string("the server wrote its own failure down before it ended"));
    if (type == 6) return;
    say(6, c.refused() ? std::string("no CUDA call failed")
                       : fmt::format("the error is {} ({}), not sticky, and {} was short",
                                     errc_name(static_cast<DeviceErrc>(c.f.code == 0 ? 2 : c.f.code)),
                                     c.f.code == 0 ? 2 : c.f.code, human_bytes(c.short_by_bytes)));
    if (type == 1) return;
    say(1, fmt::format("it was serving, after {} completed requests", c.f.completed));
    if (type == 4) return;
    say(4, growth.what == Growing::nothing
               ? fmt::format("no floor rose over {} completed requests (allocated between steps {} -> {})",
                             minus(c.f.completed, c.life.completed_at_begin), human_bytes(c.life.allocated.first()),
                             human_bytes(c.life.allocated.last()))
               : fmt::format("{} grew by {}, less than the {} that were short", growing_name(growth.what),
                             human_bytes(growth.rise.grown_bytes()), human_bytes(c.short_by_bytes)));
    if (type == 2) return;
    say(2, c.f.profiled_activation_bytes == 0
               ? std::string("no profile was taken")
               : fmt::format("the failing step held {} of activations, within the {} that were profiled",
                             human_bytes(c.step_activation_bytes), human_bytes(c.f.profiled_activation_bytes)));
}

Diagnosis nothing_failed(const RunFacts& facts) {
    Diagnosis d;
    d.confidence = 1;
    const u64 total = facts.last_sample ? facts.last_sample->total_bytes : facts.info.total_bytes;
    if (!facts.lives.empty()) d.growth = growth_of(facts.lives.back(), 0);
    if (facts.finish) {
        d.summary = fmt::format("{} at the most of {}: {} of {} requests completed", human_bytes(facts.device_used_peak),
                                human_bytes(total), facts.finish->completed, facts.finish->received);
        d.evidence.push_back(fmt::format("{} was free when it was fullest",
                                         human_bytes(minus(total, facts.device_used_peak))));
        if (facts.finish->num_preemptions > 0) {
            d.evidence.push_back(fmt::format(
                "the KV pool was full {} times and somebody was preempted: slower, and no OOM "
                "(kv_exhausted_preemption)", facts.finish->num_preemptions));
        }
        if (facts.finish->rejected > 0) {
            d.evidence.push_back(fmt::format("the gateway turned {} requests away", facts.finish->rejected));
        }
    } else {
        d.confidence = 0;
        d.summary = "the trace holds neither a failure nor an end";
    }
    // What the supervisor saw besides: a stop on request, pressure at the host's limit.
    for (const std::string& line : facts.host.sentences) {
        if (line != "exit 0") d.evidence.push_back(line);
    }
    if (d.growth.what != Growing::nothing) {
        d.evidence.push_back(fmt::format("{} rose by {} over {} completed requests: it did not fail yet",
                                         growing_name(d.growth.what), human_bytes(d.growth.rise.grown_bytes()),
                                         d.growth.rise.completed));
    }
    return d;
}

}  // namespace

Diagnosis diagnose_failure(const RunFacts& facts, std::size_t index_of_failure) {
    const Case c = case_of(facts, facts.failures.at(index_of_failure));
    Diagnosis d;
    d.short_by_bytes = c.short_by_bytes;
    const Growth growth = c.f.phase == Phase::serving ? growth_of(c.life, c.short_by_bytes) : Growth{};
    d.growth = growth;
    d.evidence.push_back(asked_line(c));
    const bool serving = c.f.phase >= Phase::serving;
    if (not_memory(c, d)) {
        // type and cause are set
    } else if (!serving) {
        d.type = 1;
        judge_at_load(c, d);
    } else if (growth.what != Growing::nothing && (c.memory() || c.refused())) {
        d.type = 4;
        judge_growth(c, growth, d);
    } else if (c.f.profiled_activation_bytes > 0 && c.memory() && c.f.owner != Owner::kv &&
               c.step_activation_bytes > c.f.profiled_activation_bytes) {
        d.type = 2;
        judge_spike(c, d);
    } else {
        d.type = 3;
        judge_under_load(c, d);
    }
    rule_out_before(c, growth, d.type, d);
    if (d.type != 6) add_remedies(c, d);
    if (d.summary.empty()) {
        d.summary = fmt::format("type {}, {} ({})", d.type, type_title(d.type), d.cause);
    }
    return d;
}

Diagnosis diagnose(const RunFacts& facts) {
    const HostFacts& h = facts.host;
    if (h.kernel_killed()) {
        Diagnosis d;
        judge_host_kill(facts, d);
        return d;
    }
    if (h.stand_in_killed()) {
        Diagnosis d;
        judge_host_kill(facts, d);   // the same causes, without the proof
        d.type = 0;
        d.cause.clear();
        d.confidence = 0;
        d.stand_in_for = 5;
        return d;
    }
    if (!facts.failures.empty()) {
        Diagnosis d = diagnose_failure(facts, 0);
        if (facts.failures.size() > 1) {
            std::string types;
            for (std::size_t i = 0; i < facts.failures.size() && i < 12; ++i) {
                types += fmt::format("{}{}", i == 0 ? "" : ", ", diagnose_failure(facts, i).type);
            }
            d.evidence.push_back(fmt::format("it failed {} times and was started again {} times; the types: {}", facts.failures.size(),
                                             facts.restarts(), types));
        }
        return d;
    }
    if (h.known && h.outcome == "timeout") {
        Diagnosis d;
        d.summary = "the time limit passed before the server ended";
        d.evidence = h.sentences;
        return d;
    }
    if (h.known && h.outcome == "killed") {
        Diagnosis d;
        d.summary = "killed with SIGKILL (137), and nothing proves that memory was the reason";
        d.evidence = h.sentences;
        if (h.killed_by.find("asked to stop") != std::string::npos) {
            d.type = 6;
            d.cause = "killed_by_operator";
            d.confidence = 1;
        }
        return d;
    }
    if (h.known && h.outcome == "crashed") {
        Diagnosis d;
        d.summary = fmt::format("the server crashed (exit status {}): a bug, not a lack of memory", h.exit_status);
        d.evidence = h.sentences;
        return d;
    }
    return nothing_failed(facts);
}

}  // namespace oomlab::diagnosis
