#include "labs/diagnosis/run_summary.hpp"

#include <nlohmann/json.hpp>

#include "labs/diagnosis/judge_parts.hpp"

namespace oomlab::diagnosis {

namespace {

using Json = nlohmann::ordered_json;

const FailureFacts* first_failure(const RunFacts& facts) {
    return facts.failures.empty() ? nullptr : &facts.failures.front();
}

Json owners(const std::array<u64, kOwners>& bytes) {
    Json j = Json::object();
    for (std::size_t o = 0; o < kOwners; ++o) j[std::string(kOwnerNames[o])] = bytes[o];
    return j;
}

std::array<u64, kOwners> owners_end(const RunFacts& facts) {
    // A failed server's end is the moment of its failure, not the emptied process.
    if (!facts.failures.empty() && facts.restarts() == 0) return facts.failures.back().record.owner_bytes;
    if (facts.finish) return facts.finish->owners_end;
    std::array<u64, kOwners> bytes{};
    for (std::size_t o = 0; o < kOwners && facts.last_sample; ++o) bytes[o] = facts.last_sample->owner[o].now;
    return bytes;
}

Json value(double v) { return v < 0 ? Json() : Json(v); }

// The evidence that may be said: all of it, or only what failed.
std::vector<std::string> evidence_of(const RunFacts& facts, const Diagnosis& d, const SummaryOptions& options) {
    std::vector<std::string> lines = d.evidence;
    if (options.withhold_cause) {
        const std::size_t keep = facts.failures.empty() ? 0 : 1;
        if (lines.size() > keep) lines.resize(keep);
    }
    return lines;
}

trace::Phase phase_of(const RunFacts& facts) {
    if (const FailureFacts* f = first_failure(facts)) return f->record.phase;
    // What came before the ordinary end says more than the end.
    const bool ended = facts.phase == trace::Phase::shutdown && !facts.lives.empty();
    return ended ? facts.lives.back().last_phase : facts.phase;
}

struct Peaks {
    u64 allocated, reserved, device;
    std::array<u64, kOwners> owners;
};
Peaks peaks_of(const RunFacts& facts) {
    Peaks p{facts.allocated_peak, facts.reserved_peak, facts.device_used_peak, facts.owner_peaks};
    if (facts.finish) {
        p.allocated = std::max(p.allocated, facts.finish->peak_allocated_bytes);
        p.reserved = std::max(p.reserved, facts.finish->peak_reserved_bytes);
        p.device = std::max(p.device, facts.finish->peak_device_used_bytes);
        for (std::size_t o = 0; o < kOwners; ++o) p.owners[o] = std::max(p.owners[o], facts.finish->owners_peak[o]);
    }
    return p;
}

}  // namespace

std::string outcome_of(const RunFacts& facts) {
    if (facts.host.known) return facts.host.outcome;
    if (const FailureFacts* f = first_failure(facts)) {
        switch (f->record.kind) {
            case trace::FailureKind::allocator_oom:
            case trace::FailureKind::device_oom: return "gpu_oom";
            case trace::FailureKind::refused: return "refused";
            case trace::FailureKind::cuda_error:
            case trace::FailureKind::host_alloc: return "cuda_error";
            default: return "crashed";
        }
    }
    return facts.finish ? "served" : "killed";
}

int exit_status_of(const RunFacts& facts) {
    if (facts.host.known) return facts.host.exit_status;
    if (facts.finish) return facts.finish->exit_status;
    return facts.failures.empty() ? 137 : 1;
}

std::string summary_json(const RunFacts& facts, const Diagnosis& d, const SummaryOptions& options) {
    Json j;
    const FailureFacts* failure = first_failure(facts);
    const bool served = outcome_of(facts) == "served";
    j["outcome"] = outcome_of(facts);
    j["oom_type"] = d.type == 0 || served ? Json() : Json(d.type);
    j["cause"] = d.cause.empty() || served || options.withhold_cause ? Json() : Json(d.cause);
    j["phase"] = trace::phase_name(phase_of(facts));
    j["exit_status"] = exit_status_of(facts);
    j["simulated"] = facts.info.simulated;
    j["message"] = failure == nullptr ? Json() : Json(failure->message);
    const Peaks peaks = peaks_of(facts);
    j["peak_allocated_bytes"] = peaks.allocated;
    j["peak_reserved_bytes"] = peaks.reserved;
    j["device_used_bytes"] = peaks.device;
    j["owners"]["end"] = owners(owners_end(facts));
    j["owners"]["peak"] = owners(peaks.owners);

    u64 blocks = 0, block_size = 0, total = 0;
    for (const Life& l : facts.lives) {
        if (!l.budget) continue;
        blocks = l.budget->num_gpu_blocks;
        block_size = l.budget->block_size;
    }
    total = blocks > 0 ? blocks - 1 : 0;   // one is the null block
    u64 peak = facts.kv_blocks_peak, preemptions = facts.preemptions;
    if (facts.finish) {
        peak = std::max(peak, facts.finish->kv_blocks_peak);
        preemptions = std::max(preemptions, facts.finish->num_preemptions);
        if (facts.finish->kv_blocks_total != 0) total = facts.finish->kv_blocks_total;
    }
    j["kv"] = {{"num_gpu_blocks", blocks},
               {"block_size", block_size},
               {"tokens", blocks * block_size},
               {"usage_peak", total == 0 ? 0.0 : std::min(1.0, static_cast<double>(peak) / static_cast<double>(total))},
               {"num_preemptions", preemptions}};

    u64 received = facts.arrivals, completed = 0, rejected = facts.rejections, preempted = 0, failed = 0;
    if (facts.last_sample) {
        completed = facts.last_sample->completed;
        failed = facts.last_sample->failed;
    }
    double makespan = 0;
    Json latency;
    const trace::FinishRecord none{};
    const trace::FinishRecord& e = facts.finish ? *facts.finish : none;
    if (facts.finish) {
        received = e.received;
        completed = e.completed;
        rejected = e.rejected;
        preempted = e.preempted;
        failed = e.failed;
        makespan = e.makespan_s;
    } else if (!facts.lives.empty() && facts.lives.front().serving_us >= 0) {
        makespan = static_cast<double>(facts.last_us - facts.lives.front().serving_us) * 1e-6;
    }
    j["requests"] = {{"received", received}, {"completed", completed}, {"rejected", rejected}, {"preempted", preempted}, {"failed", failed}};
    const auto or_none = [&](double v) { return facts.finish && e.completed > 0 ? value(v) : Json(); };
    j["latency"]["ttft_s"] = {{"mean", or_none(e.ttft_mean_s)}, {"p50", or_none(e.ttft_p50_s)}, {"p99", or_none(e.ttft_p99_s)}};
    j["latency"]["tpot_s"] = {{"mean", or_none(e.tpot_mean_s)}, {"p50", or_none(e.tpot_p50_s)}, {"p99", or_none(e.tpot_p99_s)}};
    j["latency"]["itl_s"] = {{"p50", or_none(e.itl_p50_s)}, {"p99", or_none(e.itl_p99_s)}};
    j["latency"]["e2e_s"] = {{"mean", or_none(e.e2e_mean_s)}, {"p99", or_none(e.e2e_p99_s)}};
    j["makespan_s"] = makespan;
    j["evidence"] = evidence_of(facts, d, options);
    j["restarts"] = facts.restarts();
    j["trace"] = options.trace_path;
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
    }
    return out;
}

std::string summary_text(const RunFacts& facts, const Diagnosis& d, const SummaryOptions& options) {
    const std::string outcome = outcome_of(facts);
    const bool served = outcome == "served";
    std::string out = fmt::format("\n{}, exit {}{}", outcome, exit_status_of(facts), facts.info.simulated ? " [simulated]" : "");
    if (!served && d.type != 0) {
        out += fmt::format(": type {}, {}", d.type, type_title(d.type));
        if (!options.withhold_cause) out += fmt::format(" ({})", d.cause);
    }
    if (d.stand_in_for != 0) out += ": the stand-in for type 5; the kernel killed nobody";
    out += "\n";
    const auto line = [&](const std::string& text) { out += "  " + printable(text) + "\n"; };
    if (!d.summary.empty() && !options.withhold_cause) line(d.summary);
    const Peaks peaks = peaks_of(facts);
    line(fmt::format("{} used on the device at the most, {} allocated, {} reserved", human_bytes(peaks.device),
                     human_bytes(peaks.allocated), human_bytes(peaks.reserved)));
    if (facts.finish) {
        const trace::FinishRecord& e = *facts.finish;
        line(fmt::format("requests: {} received, {} completed, {} rejected, {} preempted, {} failed", e.received, e.completed,
                         e.rejected, e.preempted, e.failed));
        if (e.completed > 0) {
            line(fmt::format("time to first token {:.3f} s (p99 {:.3f}), per token {:.1f} ms, {:.1f} s in all", e.ttft_mean_s, e.ttft_p99_s,
                             std::max(0.0, e.tpot_mean_s) * 1e3, e.makespan_s));
        }
    }
    const auto list = [&](const char* title, const std::vector<std::string>& lines) {
        if (lines.empty()) return;
        out += fmt::format("  {}:\n", title);
        for (const std::string& l : lines) out += "    - " + printable(l) + "\n";
    };
    list("evidence", evidence_of(facts, d, options));
    if (!served && !options.withhold_cause) {
        list("why not another type", d.ruled_out);
        if (!d.remedies.empty()) {
            out += d.short_by_bytes > 0 ? fmt::format("  {} was short; what would have made it fit:\n", human_bytes(d.short_by_bytes))
                                        : std::string("  what would have made it fit:\n");
            for (const Remedy& r : d.remedies) {
                out += fmt::format("    {:>12}  {}{}\n", r.bytes > 0 ? "+" + human_bytes(r.bytes) : "", r.what, r.enough ? "" : " - not enough alone");
            }
        }
    }
    if (options.withhold_cause) line("the cause was drawn: finding it is the exercise");
    if (!options.trace_path.empty()) line("trace: " + options.trace_path);
    if (!options.next_command.empty()) line("next:  " + options.next_command);
    return out;
}

}  // namespace oomlab::diagnosis
