// A GPU as figures: memory as the driver reports it, peak rates, and what CUDA takes for itself.
// content/gpus/<id>.toml, every figure with its source in the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab {

struct GpuProfile {
    std::string id, name;      // "h100-80gb", "NVIDIA H100 80GB HBM3"
    u64 total_bytes = 0;       // cudaMemGetInfo's total, not the number on the box
    u64 context_bytes = 0;     // total - free of a fresh process
    double peak_flops_16 = 0;  // dense, fp32 accumulation; 0: not known
    double peak_ops_8 = 0;     // dense, int8 or fp8
    double peak_bytes_per_s = 0;
    int sm_major = 0, sm_minor = 0;
    bool has_bf16 = true;
    // Time: shares of the peaks that a serving step reaches, and its fixed cost. The same for every
    // card of content/gpus, fitted once against a published run; a calibrated profile has its own.
    double flops_share = 0.65, bandwidth_share = 0.90, step_overhead_s = 1e-3;
    // CUDA graphs: the first capture, and each further size and mode.
    u64 graph_first_bytes = 0, graph_each_bytes = 0;
    u64 cublas_workspace_bytes = 0;  // per handle and stream, as PyTorch asks for it
    std::vector<std::string> sources;
};

// A name of content/gpus, or a path to such a file.
// On failure: Error::io with the nearest name, Error::parse with file, line and key.
Result<GpuProfile> load_gpu_profile(const std::string& name_or_path);

// The same, or a plain size ("24GiB"): then the rates are 0 and the context is a middle value.
Result<GpuProfile> load_gpu_or_size(const std::string& name_path_or_size);

std::vector<std::string> gpu_profile_names();

// The id of a card from what drivers, selectors and people call it: "NVIDIA-H100-80GB-HBM3",
// "A100 40GB", "Tesla T4" -> "h100-80gb", "a100-40gb", "t4". Nothing for cards that have no profile.
std::optional<std::string> guess_gpu(const std::string& text);

}  // namespace oomlab
