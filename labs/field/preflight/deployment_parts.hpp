// Shared by the readers of commands and of manifests. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "labs/field/preflight/deployment.hpp"

namespace oomlab::field::deployment_parts {

// "32Gi", "64g", "8gb", "65536Mi": Kubernetes', docker's and our spellings.
std::optional<u64> memory_text(const std::string& text);
std::optional<Engine> engine_of_image(const std::string& image);
// "KEY=value"
void set_env(Deployment& d, const std::string& assignment);
bool says(const std::string& text, const char* part);
// A server's command among the words, with wrappers and `docker run` understood.
Result<void> read_words(Deployment& d, std::vector<std::string> words);

}  // namespace oomlab::field::deployment_parts
