// How a verb joins the program: `add_<verb>` defines a CLI11 sub-command whose callback stores the
// exit status. Usage errors are exit 2 everywhere; results go to stdout, talk to stderr.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace oomlab {
struct Error;
}

namespace oomlab::cli {

// Parses the command line, runs the verb, returns the exit status.
int run(int argc, char** argv);

// Prints "oomlab: <message>" to stderr and returns the error's documented exit code.
int report(const Error& error);

#define OOMLAB_COMMAND(verb) void add_##verb(CLI::App& app, int& exit_status);
#include "ui/cli/commands.inc"
#undef OOMLAB_COMMAND

}  // namespace oomlab::cli
