#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "labs/diagnosis/run_summary.hpp"
#include "labs/lab_b_cliff/stress.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/lab_b_files.hpp"
#include "ui/term/live_run.hpp"

namespace oomlab::cli {

namespace {

struct StressFlags {
    lab_b::CliffSetup setup;
    std::string trace;
    bool json = false, plain = false;
};

Result<int> run(StressFlags flags) {
    OOMLAB_TRY(scenario, scenario_or_default(flags.setup.scenario_path));
    flags.setup.scenario_path = scenario;
    OOMLAB_TRY(limits, lab_b::limits_of(flags.setup));
    OOMLAB_TRY(plan, lab_b::plan_stress(flags.setup, limits));
    OOMLAB_TRY(scratch, runner::ScratchDir::make());
    runner::RunRequest request;
    request.scenario_path = scratch.path() + "/stress.toml";
    OOMLAB_TRY_VOID(runner::write_file(request.scenario_path, plan.scenario_text));
    request.device = flags.setup.device;
    request.seed = flags.setup.seed;
    request.trace_path = flags.trace;
    for (const std::string& line : plan.lines) std::fprintf(stderr, "sent: %s\n", line.c_str());
    term::LiveRun face({flags.plain, flags.json && !term::is_terminal(), "stress"});
    auto result = runner::run_scenario(request, [&](const runner::Progress& p) {
        face.update(p.trace_path, p.chip.reason, p.live);
        return supervisor::Go::on;
    });
    face.finish();
    face.say_chip(limits.run.chip.reason);
    if (!result) return fail(std::move(result.error()));
    const runner::RunResult& r = *result;
    diagnosis::SummaryOptions options;
    options.trace_path = r.trace_path;
    options.withhold_cause = r.drawn;
    if (flags.json) {
        std::puts(diagnosis::summary_json(r.facts, r.diagnosis, options).c_str());
    } else {
        std::fputs(diagnosis::summary_text(r.facts, r.diagnosis, options).c_str(), stdout);
    }
    const bool all = r.facts.finish && r.facts.finish->completed == r.facts.finish->received;
    const bool served = r.evidence.outcome == supervisor::Outcome::served && all;
    if (!flags.json) {
        std::puts(served ? "stress: passed, the extremes of what it accepts were served"
                         : "stress: FAILED, the server accepts what it cannot serve");
    }
    return served ? 0 : 1;
}

}  // namespace

void add_stress(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("stress", "The longest accepted prompt at the largest batch, and the longest output: exit 0 if served");
    const auto flags = std::make_shared<StressFlags>();
    cmd->add_option("scenario", flags->setup.scenario_path, "The configuration; default: scenario.toml here");
    cmd->add_option("--device", flags->setup.device, "auto, cuda:N, sim:PROFILE or sim:FILE; default: the scenario's");
    cmd->add_option("--seed", flags->setup.seed, "Another seed");
    cmd->add_option("--trace", flags->trace, "Keep the trace here");
    cmd->add_flag("--json", flags->json, "One JSON object, last on stdout");
    cmd->add_flag("--plain", flags->plain, "Lines instead of the live view");
    cmd->callback([&exit_status, flags] {
        auto status = run(*flags);
        exit_status = status ? *status : report(status.error());
    });
}

}  // namespace oomlab::cli
