// Model shapes that ship with oomlab: content/models/<name>.json, each a Hugging Face config.json.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "labs/shapes/model_shape.hpp"

namespace oomlab {

// Path of the config: a name ("llama-3.1-8b"), a file, or a folder that holds config.json.
// On failure: Error::io with the nearest name.
Result<std::string> find_model_config(const std::string& name_or_path);

// The same, read and parsed; the shape's name is the short name or the path.
Result<ModelShape> load_model_shape(const std::string& name_or_path);

std::vector<std::string> model_names();

}  // namespace oomlab
