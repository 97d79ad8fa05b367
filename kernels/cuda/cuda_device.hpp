// The real chip's host code over the table of cuda_api.hpp. Programs use open_cuda.hpp; this header
// is for that and for the tests, which hand in a fake table.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/cuda_api.hpp"
#include "kernels/device/device.hpp"
#include "kernels/ops/launch_ops.hpp"

namespace oomlab::cuda {

struct OpenOptions {
    int index = 0;
    u64 memory_limit_bytes = 0;
};

// Borrows the table and the launches: both must outlive the device. The device's end gives back
// everything it took, whatever failed before, and ends the context.
// On failure: Error::environment with number and text.
Result<std::unique_ptr<Device>> open_device(CudaApi& api, LaunchOps& launch,
                                            const OpenOptions& options);
std::string probe(CudaApi& api, int index);

}  // namespace oomlab::cuda
