#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "labs/diagnosis/run_summary.hpp"
#include "labs/lab_b_cliff/probe_book.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/lab_b_files.hpp"

namespace oomlab::cli {

namespace fs = std::filesystem;

Result<std::string> scenario_or_default(const std::string& given) {
    if (!given.empty()) return given;
    std::error_code ec;
    if (fs::is_regular_file("scenario.toml", ec)) return std::string("scenario.toml");
    return fail(Error::usage("which scenario? name its file, or go to a folder that holds scenario.toml"));
}

std::string probe_book_path(const std::string& scenario) {
    const std::string folder = runner::learner_folder(fs::path(scenario).parent_path().string());
    return folder.empty() ? "" : folder + "/.oomlab/probes.json";
}

std::string probe_line(const lab_b::ProbeResult& r) {
    const std::string what = r.batch == 1 ? fmt::format("{} prompt tokens", r.prompt_tokens)
                                          : fmt::format("{} x {} prompt tokens", r.batch, r.prompt_tokens);
    if (r.fits) return fmt::format("fits  {}: {} of activations at the peak", what, human_bytes(r.peak_activation_bytes));
    if (r.outcome == "rejected") return fmt::format("-     {}: {}", what, diagnosis::printable(r.message));
    const std::string word = r.outcome == "gpu_oom" ? "OOM " : r.outcome;
    return fmt::format("{}  {}: {} of activations when it failed{}", word, what, human_bytes(r.peak_activation_bytes),
                       r.oom_type == 2 || r.outcome != "gpu_oom" ? "" : fmt::format(" (a type {}, not the prompt's)", r.oom_type));
}

namespace {

struct ProbeFlags {
    lab_b::CliffSetup setup;
    u64 prompt_tokens = 0, batch = 1;
    bool force = false;
};

Result<int> run(ProbeFlags flags) {
    OOMLAB_TRY(scenario, scenario_or_default(flags.setup.scenario_path));
    flags.setup.scenario_path = scenario;
    const std::string book_path = probe_book_path(scenario);
    if (book_path.empty()) {   // outside a learner's folder nothing is counted
        OOMLAB_TRY(result, lab_b::probe(flags.setup, flags.prompt_tokens, flags.batch));
        std::puts(result.chip_reason.c_str());
        std::puts(probe_line(result).c_str());
        return result.fits ? 0 : 1;
    }
    OOMLAB_TRY(book, lab_b::ProbeBook::open(book_path));
    OOMLAB_TRY(hash, lab_b::configuration_hash(flags.setup));
    lab_b::ProbePage* page = &book.page(hash, flags.batch, {});
    if (page->range.high == 0) {
        OOMLAB_TRY(limits, lab_b::limits_of(flags.setup));
        page->range = lab_b::default_range(limits.max_model_len);
    }
    if (flags.prompt_tokens > page->range.high) {
        return fail(Error::usage(fmt::format("--prompt-tokens {}: the longest prompt that this server accepts is {}", flags.prompt_tokens,
                                             page->range.high)));
    }
    const std::string known = page->ruled_out(flags.prompt_tokens);
    if (!known.empty() && !flags.force) {
        std::fprintf(stderr, "oomlab: already ruled out: %s. Nothing was run or counted; --force spends a probe on it.\n", known.c_str());
        const bool fits = flags.prompt_tokens <= page->low();
        return fits ? 0 : 1;
    }
    if (page->left() == 0) {
        return fail(Error::usage(fmt::format("all {} probes are spent: the cliff lies between {} (fits) and {} tokens. "
                                             "`oomlab bisect --show {}` shows how it is found",
                                             page->allowance(), page->low(), page->high(), scenario)));
    }
    OOMLAB_TRY(result, lab_b::probe(flags.setup, flags.prompt_tokens, flags.batch));
    std::puts(result.chip_reason.c_str());
    std::puts(probe_line(result).c_str());
    if (result.outcome == "gpu_oom" && result.oom_type == 1) {
        std::puts("The server did not even start: this says nothing about the prompt, and is not counted.");
        return 1;
    }
    page->entries.push_back({flags.prompt_tokens, result.fits, result.peak_activation_bytes});
    OOMLAB_TRY_VOID(book.save());
    std::puts(fmt::format("bracket: {} fits, {} {}; {} of {} probes left", page->low(), page->high(),
                          page->any_failed() ? "fails" : "is the longest there is", page->left(), page->allowance()).c_str());
    if (page->narrow()) std::puts(fmt::format("The bracket is {} tokens wide: that is the cliff.", page->high() - page->low()).c_str());
    return result.fits ? 0 : 1;
}

}  // namespace

void add_probe(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("probe", "One prefill on a fresh server: does a prompt of this length fit?");
    const auto flags = std::make_shared<ProbeFlags>();
    cmd->add_option("--prompt-tokens", flags->prompt_tokens, "Length of each prompt")->required()->check(CLI::Range(1, 1 << 24));
    cmd->add_option("--batch", flags->batch, "Prompts in the one prefill batch")->check(CLI::Range(1, 4096));
    cmd->add_option("scenario", flags->setup.scenario_path, "The configuration; default: scenario.toml here");
    cmd->add_option("--device", flags->setup.device, "auto, cuda:N, sim:PROFILE or sim:FILE; default: the scenario's");
    cmd->add_flag("--force", flags->force, "Spend a probe on what earlier ones already rule out");
    cmd->callback([&exit_status, flags] {
        auto status = run(*flags);
        exit_status = status ? *status : report(status.error());
    });
}

}  // namespace oomlab::cli
