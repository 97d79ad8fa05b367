#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "labs/lab_b_cliff/probe_book.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/lab_b_files.hpp"

namespace oomlab::cli {

namespace {

struct BisectFlags {
    lab_b::CliffSetup setup;
    u64 batch = 1, step = 128;
    bool show = false;
};

Result<int> run(BisectFlags flags) {
    OOMLAB_TRY(scenario, scenario_or_default(flags.setup.scenario_path));
    flags.setup.scenario_path = scenario;
    const std::string book_path = probe_book_path(scenario);
    if (!book_path.empty() && !flags.show) {
        OOMLAB_TRY(book, lab_b::ProbeBook::open(book_path));
        OOMLAB_TRY(hash, lab_b::configuration_hash(flags.setup));
        const lab_b::ProbePage& page = book.page(hash, flags.batch, {});
        if (!page.narrow() && (page.entries.empty() || page.left() > 0)) {
            return fail(Error::usage("find it yourself first: oomlab probe --prompt-tokens N (or ask for the answer with --show)"));
        }
    }
    OOMLAB_TRY(limits, lab_b::limits_of(flags.setup));
    std::puts(limits.run.chip.reason.c_str());
    if (limits.run.evidence.outcome != supervisor::Outcome::served) {
        return fail(Error::usage(fmt::format("this server does not start ({}, type {}): see `oomlab run {}`",
                                             supervisor::outcome_name(limits.run.evidence.outcome), limits.run.diagnosis.type, scenario)));
    }
    lab_b::Range range = lab_b::default_range(limits.max_model_len);
    range.step = flags.step;
    OOMLAB_TRY(cliff, lab_b::bisect(flags.setup, flags.batch, range, [](const lab_b::ProbeResult& r) {
        std::puts(probe_line(r).c_str());
        std::fflush(stdout);
    }));
    if (!cliff.found) {
        std::puts(fmt::format("no cliff: {} prompt tokens fit, and the server accepts no more", cliff.fits_tokens).c_str());
        return 0;
    }
    const lab_b::ProbeResult* best = nullptr;
    for (const auto& p : cliff.probes) if (p.fits && (best == nullptr || p.prompt_tokens > best->prompt_tokens)) best = &p;
    std::puts(fmt::format("cliff: {} prompt tokens fit, {} do not ({} probes)", cliff.fits_tokens, cliff.fails_tokens, cliff.probes.size()).c_str());
    if (best != nullptr && best->prompt_tokens > 0) {
        std::puts(fmt::format("       {} of activations at the cliff, {} a token; the profile that sized the pool had {}",
                              human_bytes(best->peak_activation_bytes), human_bytes(best->peak_activation_bytes / (best->prompt_tokens * best->batch)),
                              human_bytes(best->profiled_activation_bytes)).c_str());
    }
    return 0;
}

}  // namespace

void add_bisect(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("bisect", "Find the prompt length at which a configuration dies, by probes");
    const auto flags = std::make_shared<BisectFlags>();
    cmd->add_option("scenario", flags->setup.scenario_path, "The configuration; default: scenario.toml here");
    cmd->add_option("--batch", flags->batch, "Prompts in the one prefill batch")->check(CLI::Range(1, 4096));
    cmd->add_option("--step", flags->step, "How exactly, in tokens")->check(CLI::Range(1, 1 << 20));
    cmd->add_option("--device", flags->setup.device, "auto, cuda:N, sim:PROFILE or sim:FILE; default: the scenario's");
    cmd->add_flag("--show", flags->show, "Show the answer before you have found it yourself");
    cmd->callback([&exit_status, flags] {
        auto status = run(*flags);
        exit_status = status ? *status : report(status.error());
    });
}

}  // namespace oomlab::cli
