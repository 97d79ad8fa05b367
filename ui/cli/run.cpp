#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "labs/catalog/text_file.hpp"
#include "labs/diagnosis/run_summary.hpp"
#include "labs/runner/run_scenario.hpp"
#include "labs/trace/reader.hpp"
#include "ui/cli/command.hpp"
#include "ui/term/live_run.hpp"

namespace oomlab::cli {

namespace fs = std::filesystem;

namespace {

struct RunFlags {
    std::string scenario, device, trace, csv, timeout;
    std::optional<u64> seed;
    double time_scale = 0;
    bool json = false, stand_in = false, plain = false, window = false;
};

// The next free runs/<name>-<n>.omtrace, in the learner's folder or among the temporary files.
Result<std::string> default_trace(const std::string& scenario) {
    const std::string learner = runner::learner_folder(fs::path(scenario).parent_path().string());
    std::error_code ec;
    const fs::path base = !learner.empty() ? fs::path(learner) / ".oomlab" / "runs"
                                           : fs::temp_directory_path(ec) / fmt::format("oomlab-{}", ::getuid()) / "runs";
    fs::create_directories(base, ec);
    if (ec) return fail(Error::io(base.string() + ": cannot be made: " + ec.message()));
    std::string name = fs::path(scenario).stem().string();
    if (name.empty()) name = "run";
    for (unsigned n = 1; n < 1'000'000; ++n) {
        const std::string path = (base / fmt::format("{}-{}.omtrace", name, n)).string();
        // Taken with O_EXCL, so that two runs at once never share a file; the supervisor replaces it.
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return fail(Error::io(path + ": cannot be written"));
        ::close(fd);
        ::unlink(path.c_str());
        return path;
    }
    return fail(Error::io(base.string() + ": holds too many runs, remove some"));
}

Result<void> write_csv(const std::string& trace_path, const std::string& csv_path, double every_s) {
    OOMLAB_TRY(reader, trace::Reader::open(trace_path));
    diagnosis::MemorySeries series(every_s);
    reader->poll([&](const trace::RecordView& r) { series.fold(r); });
    std::string text = "at_s,memory_allocated,memory_reserved,device_used\n";
    for (const auto& row : series.rows()) {
        text += fmt::format("{:.3f},{},{},{}\n", row.at_s, row.memory_allocated_bytes, row.memory_reserved_bytes, row.device_used_bytes);
    }
    return runner::write_file(csv_path, text);
}

void open_window(const std::string& trace_path) {
    char self[4096];
    const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return;
    self[n] = '\0';
    std::string verb = "view", path = trace_path;
    char* const argv[] = {self, verb.data(), path.data(), nullptr};
    pid_t pid = 0;
    if (::posix_spawn(&pid, self, nullptr, nullptr, argv, environ) != 0) std::fputs("oomlab: the window could not be started\n", stderr);
}

// What to look at next, given what came out.
std::string next_command(const runner::RunResult& r, const RunFlags& flags) {
    if (r.evidence.outcome == supervisor::Outcome::served) return "oomlab stress " + flags.scenario + "   (the extremes, before your users send them)";
    if (r.diagnosis.type == 2) return "oomlab probe --prompt-tokens N " + flags.scenario + "   (where is the cliff?)";
    if (r.diagnosis.type == 4) return "oomlab view " + r.trace_path + "   (the growth, drawn)";
    if (r.evidence.outcome == supervisor::Outcome::host_oom || r.diagnosis.stand_in_for == 5) return "oomlab doctor   (how the host's memory is limited here)";
    return fmt::format("edit {}, then oomlab run {}", flags.scenario, flags.scenario);
}

Result<int> run(const RunFlags& flags, bool has_window) {
    runner::RunRequest request;
    request.scenario_path = flags.scenario;
    request.device = flags.device;
    request.seed = flags.seed;
    request.stand_in_allowed = flags.stand_in;
    request.may_reexec = true;
    request.time_scale = flags.time_scale;
    if (!flags.timeout.empty()) {
        const auto seconds = parse_seconds(flags.timeout);
        if (!seconds || *seconds <= 0) return fail(Error::usage(fmt::format("--timeout {}: write 90s, 5m or 1h", flags.timeout)));
        request.timeout_ms = static_cast<i64>(*seconds * 1000);
    }
    OOMLAB_TRY(scenario, load_scenario(flags.scenario));   // before a trace is made for it
    if (flags.trace.empty()) {
        OOMLAB_TRY(path, default_trace(flags.scenario));
        request.trace_path = path;
    } else {
        request.trace_path = flags.trace;
    }

    term::LiveRun face({flags.plain, flags.json && !term::is_terminal(), fs::path(flags.scenario).stem().string()});
    bool first = true;
    auto result = runner::run_scenario(request, [&](const runner::Progress& p) {
        if (first && flags.window && has_window) open_window(p.trace_path);
        first = false;
        face.update(p.trace_path, p.chip.reason, p.live);
        return supervisor::Go::on;
    });
    face.finish();
    if (!result) return fail(std::move(result.error()));
    const runner::RunResult& r = *result;
    face.say_chip(r.chip.reason);

    // As the server would have said it itself.
    const std::string& message = r.facts.failures.empty() ? r.evidence.message : r.facts.failures.front().message;
    if (r.evidence.outcome != supervisor::Outcome::served && !message.empty()) {
        std::fprintf(stderr, "%s\n", diagnosis::printable(message).c_str());
    } else if (r.evidence.outcome == supervisor::Outcome::host_oom || r.evidence.outcome == supervisor::Outcome::killed) {
        std::fputs("Killed\n", stderr);
    }
    if (!flags.csv.empty()) OOMLAB_TRY_VOID(write_csv(r.trace_path, flags.csv, scenario.run.sample_every_s));
    diagnosis::SummaryOptions options;
    options.trace_path = r.trace_path;
    options.withhold_cause = r.drawn;
    if (flags.json) {
        std::puts(diagnosis::summary_json(r.facts, r.diagnosis, options).c_str());
    } else {
        options.next_command = next_command(r, flags);
        std::fputs(diagnosis::summary_text(r.facts, r.diagnosis, options).c_str(), stdout);
    }
    return r.evidence.exit_status;
}

}  // namespace

void add_run(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("run", "Run a scenario, watch its memory, and say why it died; exits as a shell would see the server");
    const auto flags = std::make_shared<RunFlags>();
    cmd->add_option("scenario", flags->scenario, "The scenario file (TOML)")->required();
    cmd->add_option("--device", flags->device, "auto, cuda:N, sim:PROFILE or sim:FILE; default: the scenario's");
    cmd->add_option("--seed", flags->seed, "Another seed for the workload");
    cmd->add_option("--trace", flags->trace, "Where the trace goes; default: .oomlab/runs of your folder, else a temporary one");
    cmd->add_option("--csv", flags->csv, "Also write memory_allocated, memory_reserved and device_used every run.sample_every");
    cmd->add_option("--time-scale", flags->time_scale, "Seconds of the device's clock a second; default: as fast as it goes")
        ->check(CLI::Range(0.001, 1e6));
    cmd->add_option("--timeout", flags->timeout, "End it after this long, exit 124 (90s, 5m)");
    cmd->add_flag("--json", flags->json, "One JSON object, last on stdout");
    cmd->add_flag("--allow-stand-in,--stand-in", flags->stand_in,
                  "Where the kernel cannot limit host memory, kill at the limit ourselves (labelled as that)");
    cmd->add_flag("--plain", flags->plain, "Lines instead of the live view");
    cmd->add_flag("--window", flags->window, "Open the window on this run");
    cmd->callback([&app, &exit_status, flags] {
        const auto all = app.get_subcommands([](CLI::App* sub) { return sub->get_name() == "view"; });
        if (flags->window && all.empty()) std::fputs("oomlab: this build has no window; the terminal shows the run\n", stderr);
        auto status = run(*flags, !all.empty());
        exit_status = status ? *status : report(status.error());
    });
}

}  // namespace oomlab::cli
