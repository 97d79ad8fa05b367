// Where content/ stands: $OOMLAB_CONTENT, else beside the running program, else in the source tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace oomlab {

// On failure: Error::environment that names the places tried.
Result<std::string> content_dir();

// Names of the files in `folder` with `ending`, without it, sorted.
std::vector<std::string> names_in(const std::string& folder, std::string_view ending);

// A name such as "h100-80gb": no path parts, so that it cannot leave content/.
bool is_plain_name(std::string_view text);

}  // namespace oomlab
