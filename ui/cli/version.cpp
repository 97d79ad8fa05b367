#include <CLI/CLI.hpp>
#include <cstdio>

#include "ui/cli/command.hpp"

namespace oomlab::cli {

void add_version(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("version", "Print the version");
    cmd->callback([&exit_status] {
        std::puts("oomlab " OOMLAB_VERSION);
        exit_status = 0;
    });
}

}  // namespace oomlab::cli
