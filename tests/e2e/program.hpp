// Starts the real program as a shell would, and looks at what a shell would see.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace oomlab::testing {

struct Ran {
    int exit_status = -1;
    std::string out, err;

    // The last line of stdout, parsed; null when it is no object.
    nlohmann::json json() const;
    // One line on stderr, "oomlab: ...", and nothing else.
    bool one_error_line() const;
};

// bin/oomlab with these arguments. `cwd` empty: where the test runs.
Ran shell(const std::vector<std::string>& args, const std::string& cwd = "");

// The same, and `signal` is sent to the server program that it starts, as soon as it serves.
Ran shell_with_signal(const std::vector<std::string>& args, int signal);

std::string scenario(const std::string& name);   // content/scenarios/<name>.toml
void write_text(const std::string& path, const std::string& text);
std::string read_text(const std::string& path);

}  // namespace oomlab::testing
