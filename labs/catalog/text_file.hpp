// Reading small text files of strangers, and words people mistype.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab {

// Reads a whole file of at most `max_bytes`. On failure: Error::io naming the file and the reason.
Result<std::string> read_text_file(const std::string& path, u64 max_bytes = 4 * kMiB);
// "90s", "1h", "500ms", "2m", "1d" or a number of seconds.
std::optional<double> parse_seconds(std::string_view text);
// One line that is safe on a terminal: control characters of a stranger's file become '?'.
std::string one_line(std::string text);
// The nearest of `known` within edit distance 3, or "".
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace oomlab
