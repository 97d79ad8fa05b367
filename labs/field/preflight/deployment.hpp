// How a server is started, from what people keep: a command line, a shell script, `docker run`, a
// Kubernetes manifest, or a compose file. Says what stands there; judges nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "labs/field/budget/server_flags.hpp"

namespace oomlab::field {

struct Deployment {
    std::string kind;  // "command line", "docker run", "kubernetes", "compose"
    std::string container, image;
    ServerFlags flags;
    std::map<std::string, std::string> env;
    std::optional<u64> host_memory_limit_bytes, shm_bytes;
    u64 gpus = 0;          // 0: not said
    std::string gpu_hint;  // a node selector's product, such as "NVIDIA-H100-80GB-HBM3"
    std::string restart_policy;
    std::vector<std::string> notes;
};

// Words of a command, as the shell splits them.
std::vector<std::string> shell_words(std::string_view text);

// From the words after `--`. On failure: Error::usage with the forms that are understood.
Result<Deployment> deployment_from_words(const std::vector<std::string>& words);
// From a file's text. On failure: Error::parse naming the file and what was looked for.
Result<Deployment> deployment_from_text(std::string_view text, const std::string& name);

}  // namespace oomlab::field
