#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "labs/field/triage/triage.hpp"
#include "ui/cli/command.hpp"

namespace oomlab::cli {

void add_triage(CLI::App& app, int& exit_status) {
    struct Options {
        std::vector<std::string> files;
        bool json = false;
    };
    auto options = std::make_shared<Options>();
    auto* cmd = app.add_subcommand(
        "triage", "Say from logs why a server ran out of memory, or why it was something else");
    cmd->add_option("files", options->files,
                    "Logs of one incident: engine log, dmesg, kubectl describe, sacct ...; - is "
                    "standard input")
        ->required();
    cmd->add_flag("--json", options->json, "Print one JSON object");
    cmd->footer("Exit status: 0 classified, 1 not enough evidence, 2 bad input.");
    cmd->callback([options, &exit_status] {
        const auto report_or = triage::triage_files(options->files);
        if (!report_or) {
            exit_status = report(report_or.error());
            return;
        }
        const std::string text =
            options->json ? triage::to_json(*report_or) : triage::to_text(*report_or);
        std::fwrite(text.data(), 1, text.size(), stdout);
        exit_status = report_or->type ? 0 : 1;
    });
}

}  // namespace oomlab::cli
