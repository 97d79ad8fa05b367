// What nvidia-smi knows of other processes. It is asked twice (before and after our context is made)
// and never while serving; where it is missing, or shows nothing (containers), the rest of the
// accounting goes without.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::cuda {

inline constexpr const char* kQueryProcesses = "--query-compute-apps=pid,used_memory";
inline constexpr const char* kQueryUsed = "--query-gpu=memory.used";

struct GpuProcess {
    u64 pid = 0;
    u64 bytes = 0;   // 0 where nvidia-smi prints [N/A]
};

// Lines "1234, 567" (MiB). Lines of another form are skipped: the tool's wording is not ours.
std::vector<GpuProcess> parse_processes(std::string_view csv);
// One line "567" (MiB).
std::optional<u64> parse_used_bytes(std::string_view csv);

// Runs `nvidia-smi QUERY --id=UUID --format=csv,noheader,nounits` and returns what it printed: at most
// 64 KiB, within two seconds, nothing on any failure. No shell is involved.
std::optional<std::string> ask_nvidia_smi(const std::string& uuid, const std::string& query);

}  // namespace oomlab::cuda
