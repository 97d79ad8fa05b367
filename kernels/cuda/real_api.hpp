// The table over the real CUDA: runtime linked statically, driver functions by entry point, cuBLAS
// opened at run time. Needs the toolkit to build and nothing to start.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_api.hpp"

namespace oomlab::cuda {

std::unique_ptr<CudaApi> real_api();

}  // namespace oomlab::cuda
