// Do the commands in a runbook exist? Tools, sub-commands and options that the field has are listed in
// content/runbook/commands.toml; a tool that is not listed is taken for in-house and believed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "grader/runbook/markdown.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::grader {

struct CommandBook {
    struct Tool {
        bool has_subcommands = false;
        std::set<std::string> options;                              // of the tool itself
        std::map<std::string, std::set<std::string>> subcommands;   // name -> its options
        std::map<std::string, std::string> instead;                 // wrong word -> what to write
    };
    std::map<std::string, Tool> tools;
    std::vector<std::string> wrong_paths;  // beginnings of paths that no system has
};
Result<CommandBook> load_commands(const std::string& file);

struct CommandFault {
    u32 line = 0;
    std::string command;
    std::string what;  // "kubectl logs has no --last-crash (use --previous)"
};
struct CommandReport {
    u32 known = 0;      // commands of listed tools
    u32 in_house = 0;   // others that look like commands
    std::vector<CommandFault> faults;
};
CommandReport check_commands(const CommandBook& book, const std::vector<MdCommand>& code);

}  // namespace oomlab::grader
