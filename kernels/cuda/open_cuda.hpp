// The two ways into the real chip: open it, or ask what there is without making a context.
#pragma once

#include <memory>
#include <string>

#include "kernels/device/device.hpp"

namespace oomlab {

// Opens card `index` of the CUDA driver. A memory_limit of 0 is none; otherwise this process keeps to
// that many bytes, context included, and a refusal says in its detail that it was the limit. The
// context is made by create_context() or by the first call that needs one.
// On failure: Error::environment with CUDA's number and text, or why cuBLAS was not found.
Result<std::unique_ptr<Device>> open_cuda_device(int index, u64 memory_limit_bytes);

// One line of JSON for `--probe`, never a failure. With a card: {"usable":true,"index":0,"name":...,
// "total_bytes":...,"free_bytes":...,"compute_capability":"9.0","driver":"13.0","cublas":true}.
// Without: {"usable":false,"error":35,"name":"cudaErrorInsufficientDriver","reason":"..."}.
// free_bytes is nvidia-smi's figure, null where it cannot be asked: asking the driver would need a context.
std::string probe_cuda(int index);

}  // namespace oomlab
