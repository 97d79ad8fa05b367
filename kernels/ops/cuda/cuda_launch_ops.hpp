// The launches of the real chip.
#pragma once

#include <memory>

#include "kernels/ops/cuda/kernels.hpp"

namespace oomlab::kernel {

std::unique_ptr<LaunchOps> cuda_launch_ops(Version version = Version::fast);

}  // namespace oomlab::kernel
