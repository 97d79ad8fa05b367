// A file named on the command line, or standard input for "-".
#pragma once

#include <string>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::cli {

// On failure: Error::io naming the file and the reason, or Error::usage when it is larger than `max_bytes`.
Result<std::string> read_input(const std::string& path, u64 max_bytes);

}  // namespace oomlab::cli
