#include <CLI/CLI.hpp>
#include <cstdio>

#include "kernels/base/result.hpp"
#include "labs/runner/run_scenario.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/course.hpp"

namespace oomlab::cli {

int report(const Error& error) {
    std::fprintf(stderr, "oomlab: %s\n", error.message.c_str());
    return exit_code(error);
}

int run(int argc, char** argv) {
    CLI::App app{"oomlab: why an inference server runs out of memory, and what to do about it"};
    app.name("oomlab");
    app.require_subcommand(0, 1);
    int exit_status = 0;
#define OOMLAB_COMMAND(verb) add_##verb(app, exit_status);
#include "ui/cli/commands.inc"
#undef OOMLAB_COMMAND
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& e) {
        return app.exit(e);
    } catch (const CLI::ParseError& e) {
        std::fprintf(stderr, "oomlab: %s (try: oomlab --help)\n", e.what());
        return 2;
    }
    if (app.get_subcommands().empty()) {
        // Inside a learner's folder: where one stands and what to do now.
        if (!runner::learner_folder(".").empty()) {
            auto here = course_here();
            if (!here) return report(here.error());
            std::fputs(standing(*here).c_str(), stdout);
            return 0;
        }
        std::fputs(app.help().c_str(), stdout);
        std::fputs("\nNew here? oomlab start DIR makes the course's folder.\n", stdout);
        return 0;
    }
    return exit_status;
}

}  // namespace oomlab::cli
