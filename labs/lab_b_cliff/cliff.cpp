#include "labs/lab_b_cliff/cliff.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "labs/catalog/scenario_edit.hpp"
#include "labs/catalog/text_file.hpp"

namespace oomlab::lab_b {

namespace {

constexpr u64 kTraceLogBytes = 8 * kMiB;
constexpr u64 kStepTokens = 128;

Result<runner::RunResult> run_one(const CliffSetup& setup, u64 prompt_tokens, u64 batch) {
    OOMLAB_TRY(text, read_text_file(setup.scenario_path));
    // Faults of the author's own file are told with its name, before a temporary one is made.
    OOMLAB_TRY(checked, load_scenario(setup.scenario_path));
    ScenarioChange change;
    change.drop = {"gateway", "action", "run"};
    PlannedRequest request;
    request.prompt_tokens = prompt_tokens;
    request.output_tokens = 1;
    request.count = batch;
    change.requests = {request};
    OOMLAB_TRY(edited, edit_scenario(text, setup.scenario_path, change));
    OOMLAB_TRY(scratch, runner::ScratchDir::make());
    runner::RunRequest run;
    run.scenario_path = scratch.path() + "/probe.toml";
    OOMLAB_TRY_VOID(runner::write_file(run.scenario_path, edited));
    run.device = setup.device.empty() ? checked.device.name : setup.device;
    run.seed = setup.seed;
    run.trace_log_bytes = kTraceLogBytes;
    return runner::run_scenario(run);
}

}  // namespace

Result<ProbeResult> probe(const CliffSetup& setup, u64 prompt_tokens, u64 batch) {
    if (prompt_tokens == 0 || batch == 0) return fail(Error::usage("a probe wants at least one prompt of one token"));
    OOMLAB_TRY(run, run_one(setup, prompt_tokens, batch));
    ProbeResult result;
    result.prompt_tokens = prompt_tokens;
    result.batch = batch;
    result.outcome = supervisor::outcome_name(run.evidence.outcome);
    result.oom_type = run.diagnosis.type;
    result.simulated = run.chip.simulated;
    result.chip_reason = run.chip.reason;
    result.max_model_len = run.facts.info.max_model_len;
    const bool served = run.evidence.outcome == supervisor::Outcome::served;
    const u64 completed = run.facts.finish ? run.facts.finish->completed : 0;
    result.fits = served && completed == batch;
    if (served && !result.fits) {
        result.outcome = "rejected";
        result.message = fmt::format("the server accepts no prompt of {} tokens (max_model_len is {})", prompt_tokens,
                                     result.max_model_len);
    }
    if (!run.facts.lives.empty()) {
        const diagnosis::Life& life = run.facts.lives.back();
        result.peak_activation_bytes = life.step_activations_peak_bytes;
        if (life.budget) {
            result.profiled_activation_bytes = life.budget->activation_peak_bytes;
            result.kv_tokens = life.budget->num_gpu_blocks * life.budget->block_size;
        }
    }
    if (!run.facts.failures.empty()) {
        const diagnosis::FailureFacts& f = run.facts.failures.front();
        result.peak_activation_bytes = std::max(result.peak_activation_bytes, f.record.step_activation_bytes);
        result.message = f.message;
    }
    return result;
}

Range default_range(u64 max_model_len) { return {0, max_model_len > 0 ? max_model_len - 1 : 0, kStepTokens}; }

u64 probe_allowance(const Range& range) {
    const u64 steps = div_ceil(range.high - std::min(range.low, range.high), std::max<u64>(1, range.step));
    u64 halvings = 0;
    while ((u64{1} << halvings) < steps) ++halvings;
    return halvings + 2;
}

Result<Cliff> bisect(const CliffSetup& setup, u64 batch, const Range& range,
                     const std::function<void(const ProbeResult&)>& each) {
    Cliff cliff;
    const auto look = [&](u64 tokens) -> Result<bool> {
        OOMLAB_TRY(result, probe(setup, tokens, batch));
        const bool fits = result.fits;
        cliff.probes.push_back(std::move(result));
        if (each) each(cliff.probes.back());
        return fits;
    };
    if (range.high <= range.low) return fail(Error::usage("the range to bisect is empty"));
    OOMLAB_TRY(top_fits, look(range.high));
    if (top_fits) {
        cliff.fits_tokens = range.high;
        return cliff;
    }
    u64 low = range.low, high = range.high;
    if (cliff.probes.front().outcome == "rejected") {
        return fail(Error::usage(cliff.probes.front().message));
    }
    while (high - low > std::max<u64>(1, range.step)) {
        const u64 middle = low + (high - low) / 2;
        OOMLAB_TRY(fits, look(middle));
        (fits ? low : high) = middle;
    }
    if (low == range.low) {   // no probe has fitted yet: is it a cliff at all?
        OOMLAB_TRY(fits, look(std::max<u64>(1, low)));
        if (!fits) {
            return fail(Error::usage(fmt::format("even a prompt of {} tokens fails ({}): this is no cliff, see `oomlab run {}`",
                                                 std::max<u64>(1, low), cliff.probes.back().outcome, setup.scenario_path)));
        }
    }
    cliff.found = true;
    cliff.fits_tokens = low;
    cliff.fails_tokens = high;
    return cliff;
}

Result<Limits> limits_of(const CliffSetup& setup) {
    OOMLAB_TRY(run, run_one(setup, 8, 1));
    Limits limits{run.facts.info.max_model_len, run.facts.info.max_num_seqs, 0, {}};
    if (!run.facts.lives.empty() && run.facts.lives.back().budget) {
        const trace::BudgetRecord& b = *run.facts.lives.back().budget;
        limits.kv_tokens = b.num_gpu_blocks * b.block_size;
    }
    limits.run = std::move(run);
    return limits;
}

}  // namespace oomlab::lab_b
