#include "labs/field/triage/judge.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "kernels/base/bytes.hpp"
#include "labs/field/triage/lines.hpp"

namespace oomlab::triage {
namespace {

using S = Signal;
using C = Cause;

constexpr double kEnough = 44;  // below, the verdict is "not enough evidence"
constexpr std::size_t kProofsMax = 8;
constexpr std::size_t kTextShown = 400;

std::string size_text(double bytes) {
    return human_bytes(static_cast<u64>(std::max(0.0, bytes)));
}

void find_failure(Case& c) {
    const Facts& f = c.facts;
    auto& d = c.failure;
    if (!f.torch.empty()) {
        d.torch = &f.torch.front();
        d.place = d.torch->place;
        d.phase = d.torch->phase;
        d.frames = d.torch->frames;
    }
    // cuBLAS without a handle is memory only when the card is full: judged by the look-alikes too.
    const Fact* other =
        f.first_of({S::device_oom, S::ggml_oom, S::nccl_oom, S::jax_oom, S::cublas_alloc});
    if (!d.torch && !other) other = f.first(S::torch_oom_bare);
    if (other && (!d.torch || (other->place < d.place && other->place.file == d.place.file &&
                               other->signal != S::cublas_alloc))) {
        d.torch = nullptr;
        d.fact = other;
        d.place = other->place;
        d.phase = other->phase;
        d.frames = {};
        for (const auto& [place, frames] : f.device_frames)
            if (place == other->place) d.frames = frames;
    }
}

Evidence evidence_of(const Facts& f, const Proof& p) {
    return {f.file_names[p.place.file], p.place.line, printable(p.text, kTextShown), p.why};
}

std::string word(double confidence) {
    return confidence >= 0.85            ? "sure"
           : confidence >= 0.6           ? "likely"
           : confidence >= kEnough / 100 ? "plausible"
                                         : "not enough";
}

void not_enough(const Facts& f, const Case& c, Report& r) {
    auto& ask = r.ask_for;
    const bool killed = f.has(S::exit_137) || f.has(S::killed_bare) || f.has(S::signal_9);
    if (killed) {
        ask.emplace_back(
            "dmesg -T | grep -i -E 'killed process|oom-kill'   (did the kernel kill it?)");
        ask.emplace_back("cat /sys/fs/cgroup/memory.events   (is oom_kill above zero?)");
        ask.emplace_back(
            "kubectl describe pod POD, or docker inspect -f '{{.State.OOMKilled}} "
            "{{.State.ExitCode}}' CONTAINER");
    }
    if (c.failure.any()) {
        ask.emplace_back(
            "the log from its first line to the failure: the phase and the traceback above the "
            "message decide");
        ask.emplace_back(
            "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv   (who else "
            "is on the card?)");
    }
    if (ask.empty()) {
        ask.emplace_back("the server's log from its start to its end, all ranks");
        ask.emplace_back("dmesg -T | tail -100   (kernel kills, Xid)");
        ask.emplace_back("nvidia-smi   (who holds the card)");
        ask.emplace_back("how it ended: exit code, kubectl describe pod or systemctl status");
    }
}

}  // namespace

Claim& Case::claim(Cause cause, double strength) {
    return claim(cause, entry(cause).type, strength);
}

Claim& Case::claim(Cause cause, int type, double strength) {
    for (Claim& k : claims) {
        if (k.cause != cause) continue;
        if (strength > k.strength) {
            k.strength = strength;
            k.type = type;
        }
        return k;
    }
    claims.reserve(kCauses + 1);  // references stay good
    claims.push_back({cause, type, strength, {}, {}, false});
    return claims.back();
}

void Case::prove(Claim& k, const Fact* fact, std::string_view why_text) {
    if (fact == nullptr) return;
    for (const Proof& p : k.proofs)
        if (p.place == fact->place) return;
    if (k.proofs.size() >= kProofsMax) return;
    k.proofs.push_back(
        {fact->place, fact->text, std::string(why_text.empty() ? why(fact->signal) : why_text)});
}

void Case::prove(Claim& k, const TorchOom& oom, std::string_view why_text) {
    for (Proof& p : k.proofs)
        if (p.place == oom.place) return;
    if (k.proofs.size() >= kProofsMax) return;
    k.proofs.push_back({oom.place, oom.text, std::string(why_text)});
}

void Case::prove_all(Claim& k, Signal signal) const {
    const auto& shelf = facts.shelf(signal);
    for (std::size_t i = 0; i < shelf.first.size() && i < 3; ++i) prove(k, &shelf.first[i]);
    prove(k, facts.last(signal));
}

void Case::prove_series(Claim& k, const Series& s, std::string_view why_text) const {
    const auto& lines = s.best.lines;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i != 0 && i + 1 != lines.size() && lines.size() > 6 && i % 2 == 1) continue;
        const Place place{s.file, lines[i]};
        if (std::any_of(k.proofs.begin(), k.proofs.end(),
                        [&](const Proof& p) { return p.place == place; }))
            continue;
        if (k.proofs.size() >= kProofsMax) return;
        k.proofs.push_back({place, std::string(facts.series.text(place)), std::string(why_text)});
    }
}

void Case::rule_out(Cause cause, std::string why_text, const Fact* fact) {
    for (const RuledOut& r : ruled_out)
        if (r.cause == entry(cause).id) return;
    if (ruled_out.size() >= 12) return;
    RuledOut r{entry(cause).type, std::string(entry(cause).id), std::move(why_text), std::nullopt};
    if (fact != nullptr)
        r.evidence = Evidence{facts.file_names[fact->place.file], fact->place.line,
                              printable(fact->text, kTextShown), std::string(why(fact->signal))};
    ruled_out.push_back(std::move(r));
}

std::vector<std::string> explain(const TorchOom& o) {
    std::vector<std::string> out;
    if (o.above_1eb)
        out.emplace_back("more than an exbibyte was asked: the size is a mistake, not a need");
    if (o.allowed) {
        out.push_back(fmt::format(
            "the process may use {}{}: the limit is its own share, {} are free on the card",
            size_text(*o.allowed), o.total ? " of the card's " + size_text(*o.total) : "",
            o.free ? size_text(*o.free) : "figures unknown"));
    }
    if (!o.asked) return out;
    const double asked = *o.asked;
    if (o.total && asked > *o.total)
        out.push_back(fmt::format("{} were asked in one piece, the whole card has {}",
                                  size_text(asked), size_text(*o.total)));
    if (o.free && o.unallocated) {
        const double inside = *o.unallocated, outside = *o.free;
        std::string verdict;
        if (inside >= asked) {
            verdict = outside >= 2 * asked
                          ? "the card had room outside as well: memory is not what was missing"
                          : "more than was asked, but in pieces: fragmentation";
        } else if (outside >= asked) {
            verdict =
                o.allowed
                    ? "the card has room, the cap has not"
                    : "the card has room for it: a cap, another library or a fault is behind this";
        } else if (inside + outside >= asked) {
            verdict =
                "together more than was asked, but in two places: nearly full, fragmentation "
                "plausible";
        } else {
            verdict = "together not enough: the card is full";
        }
        out.push_back(fmt::format("{} are free inside the cache and {} outside, {} were asked: {}",
                                  size_text(inside), size_text(outside), size_text(asked),
                                  verdict));
    } else if (o.free) {
        out.push_back(fmt::format("{} are free on the card, {} were asked", size_text(*o.free),
                                  size_text(asked)));
    }
    if (o.total && o.free) {
        const double used = *o.total - *o.free;
        const double torch = o.allocated.value_or(0) + o.unallocated.value_or(0);
        const auto others = o.others();
        if (others && *others > 0.02 * *o.total)
            out.push_back(fmt::format("of {} in use, {} are other processes'", size_text(used),
                                      size_text(*others)));
        if (o.allocated && torch > 0) {
            const double rest = used - torch - others.value_or(0);
            if (rest > 0)
                out.push_back(
                    fmt::format("PyTorch holds {} ({} live); about {} are this process's outside "
                                "PyTorch (context, graphs, NCCL, libraries)",
                                size_text(torch), size_text(*o.allocated), size_text(rest)));
        }
    }
    return out;
}

Report judge(const Facts& facts) {
    Case c(facts);
    find_failure(c);
    judge_host(c);
    judge_lookalike(c);
    judge_device(c);
    judge_pool(c);
    judge_growth(c);

    // Order of judgement: the kernel's own word stands above what the engine said.
    const bool kernel = std::any_of(c.claims.begin(), c.claims.end(),
                                    [](const Claim& k) { return k.type == 5 && k.host_kill; });
    for (Claim& k : c.claims) {
        if (kernel && k.type != 5 && k.cause != C::host_memory_growth &&
            k.cause != C::cache_without_eviction) {
            k.strength *= 0.6;
            k.against.push_back("the host killed the process");
        }
    }
    // With rising figures on record a failed allocation is the end of the growth, not a spike.
    const bool grew = std::any_of(c.claims.begin(), c.claims.end(),
                                  [](const Claim& k) { return k.type == 4 && k.strength >= 70; });
    if (grew)
        for (Claim& k : c.claims)
            if (k.type == 2 && k.cause != C::self_imposed_cap) k.strength *= 0.75;
    // Holes that were seen to grow are the growth's, not a single failure's.
    if (std::any_of(c.claims.begin(), c.claims.end(),
                    [](const Claim& k) { return k.cause == C::fragmentation_growth; }))
        for (Claim& k : c.claims)
            if (k.cause == C::fragmentation) k.strength *= 0.7;
    // A pool that preempts copes: when an allocation fails beside it, that is what ended the
    // server.
    if (c.failure.torch)
        for (Claim& k : c.claims)
            if (k.cause == C::kv_exhausted_preemption || k.cause == C::kv_overcommitted_admission) {
                k.strength *= 0.7;
                k.against.emplace_back(
                    "preemption is the healthy way; the failed allocation is what ended it");
            }

    std::stable_sort(c.claims.begin(), c.claims.end(), [](const Claim& a, const Claim& b) {
        return a.strength != b.strength ? a.strength > b.strength : a.cause < b.cause;
    });
    Report r;
    r.phase = std::string(
        name(c.failure.any()                                                 ? c.failure.phase
             : facts.has(S::serving_ready) || facts.has(S::serving_activity) ? Phase::serving
             : facts.has(S::engine_start) || facts.has(S::loading_weights)   ? Phase::start
                                                                             : Phase::unknown));
    for (const Claim& k : c.claims) {
        if (r.candidates.size() == 5) break;
        r.candidates.push_back(
            {k.type, std::string(entry(k.cause).id), std::round(k.strength) / 100});
    }
    r.figures = std::move(c.figures);
    if (!c.claims.empty()) {
        const Claim& best = c.claims.front();
        r.confidence = std::round(best.strength) / 100;
        for (const Proof& p : best.proofs) r.evidence.push_back(evidence_of(facts, p));
        r.contradicts = best.against;
        if (best.strength >= kEnough) {
            const CauseEntry& e = entry(best.cause);
            r.type = best.type;
            r.cause = std::string(e.id);
            r.meaning = std::string(e.meaning);
            r.actions = {{"now", std::string(e.now)},
                         {"soon", std::string(e.soon)},
                         {"for good", std::string(e.for_good)}};
            for (const RuledOut& x : c.ruled_out)
                if (x.cause != r.cause) r.ruled_out.push_back(x);
            if (best.strength < 85)
                for (const auto& ask : e.ask)
                    if (!ask.empty()) r.ask_for.emplace_back(ask);
            // A close second of another type: say what would tell them apart.
            for (std::size_t i = 1; i < c.claims.size(); ++i) {
                const Claim& next = c.claims[i];
                if (next.type == best.type || next.strength < best.strength - 12 ||
                    next.strength < kEnough)
                    continue;
                r.contradicts.push_back(fmt::format("type {} ({}) is nearly as likely", next.type,
                                                    entry(next.cause).id));
                for (const auto& ask : entry(next.cause).ask)
                    if (!ask.empty() && r.ask_for.size() < 5) r.ask_for.emplace_back(ask);
                break;
            }
        }
    }
    r.confidence_word = word(r.confidence);
    if (!r.type) not_enough(facts, c, r);
    std::stable_sort(
        r.evidence.begin(), r.evidence.end(),
        [](const Evidence& a, const Evidence& b) { return a.file == b.file && a.line < b.line; });
    return r;
}

}  // namespace oomlab::triage
