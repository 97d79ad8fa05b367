#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "kernels/base/prng.hpp"
#include "labs/runner/run_scenario.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/course.hpp"

namespace oomlab::cli {

void add_start(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("start", "Make the course's folder, or complete it (nothing is overwritten)");
    auto dir = std::make_shared<std::string>();
    auto seed = std::make_shared<std::string>();
    cmd->add_option("DIR", *dir, "The learner's folder")->required();
    cmd->add_option("--seed", *seed, "Draws the variants of the tasks; default: from the folder's name and the day");
    cmd->callback([=, &exit_status] {
        auto exercises = course::load_course();
        if (!exercises) {
            exit_status = report(exercises.error());
            return;
        }
        u64 drawn = stable_hash(*seed);
        if (seed->empty()) {
            timespec t{};
            clock_gettime(CLOCK_REALTIME, &t);
            drawn = stable_hash(*dir) ^ static_cast<u64>(t.tv_sec);
        }
        auto folder = course::Folder::start(*dir, *exercises, drawn >> 8);
        if (!folder) {
            exit_status = report(folder.error());
            return;
        }
        fmt::print("{}: {}\n\n", folder->root(), folder->made.empty() ? "the course was here already, nothing was changed" : fmt::format("{} files made", folder->made.size()));
        CourseHere here{std::move(*exercises), std::move(*folder)};
        fmt::print("{}\nGo on:  cd {}  and then  oomlab\n", standing(here), here.folder.root());
        const std::string place = runner::programs_dir();
        const char* path = std::getenv("PATH");
        if (path == nullptr || (":" + std::string(path) + ":").find(":" + place + ":") == std::string::npos) {
            fmt::print("oomlab is not on your PATH yet:  export PATH=\"{}:$PATH\"\n", place);
        }
        exit_status = 0;
    });
}

}  // namespace oomlab::cli
