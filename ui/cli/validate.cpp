// `oomlab validate`: runs the program beside this one that links the server and the simulated chip.
#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ui/cli/command.hpp"

namespace oomlab::cli {

void add_validate(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("validate", "Our server held against published measurements");
    auto names = std::make_shared<std::vector<std::string>>();
    auto serving = std::make_shared<std::string>();
    auto json = std::make_shared<bool>(false);
    cmd->add_option("NAME", *names, "Cases (R1, R2, ...); all when none is given");
    cmd->add_option("--serving", *serving, "A measured run: folder, or .json with its .tsv beside it");
    cmd->add_flag("--json", *json, "One JSON list");
    cmd->callback([=, &exit_status] {
        char self[4096];
        const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        std::string program(self, n > 0 ? static_cast<std::size_t>(n) : 0);
        program = program.substr(0, program.rfind('/') + 1) + "oomlab-validate";
        std::vector<std::string> words = {program};
        words.insert(words.end(), names->begin(), names->end());
        if (!serving->empty()) words.insert(words.end(), {"--serving", *serving});
        if (*json) words.emplace_back("--json");
        std::vector<char*> argv;
        for (std::string& w : words) argv.push_back(w.data());
        argv.push_back(nullptr);
        std::fflush(stdout);
        execv(program.c_str(), argv.data());
        std::fprintf(stderr, "oomlab: %s is not there; build it: cmake --build --preset release --target oomlab-validate\n",
                     program.c_str());
        exit_status = 3;
    });
}

}  // namespace oomlab::cli
