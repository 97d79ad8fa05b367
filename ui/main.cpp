// oomlab: one binary, every verb. Each verb lives in ui/cli/<verb>.cpp and is listed in commands.inc.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

#include "ui/cli/command.hpp"

int main(int argc, char** argv) {
    try {
        return oomlab::cli::run(argc, argv);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "oomlab: internal error: %s (please report this)\n", e.what());
        return 5;
    }
}
