#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/base/result.hpp"
#include "labs/supervisor/machine.hpp"
#include "ui/cli/command.hpp"

namespace oomlab::cli {

// The card is measured by a program of its own, so that this one starts without CUDA.
void add_calibrate(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand(
        "calibrate", "Measure this machine's GPU and print its profile, for --device sim:FILE");
    const auto index = std::make_shared<int>(0);
    cmd->add_option("--index", *index, "Which card, from 0")->check(CLI::Range(0, 1024));
    cmd->callback([&exit_status, index] {
        const std::string program = supervisor::own_program_folder() + "/oomlab-calibrate";
        std::string number = std::to_string(*index);
        std::string name = "oomlab-calibrate";
        char* arguments[] = {name.data(), number.data(), nullptr};
        execv(program.c_str(), arguments);
        exit_status = report(Error::environment(
            program + ": " + std::strerror(errno) +
            " (oomlab was built without CUDA: install the CUDA Toolkit and build again)"));
    });
}

}  // namespace oomlab::cli
