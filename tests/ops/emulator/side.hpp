// The kernels' side where the emulator runs them: host memory, and an order of turns to choose.
#pragma once

#include "tests/ops/emulator/order.hpp"
#include "tests/ops/host_side.hpp"

namespace oomlab::test {

using KernelSide = HostSide;
using emulator::set_backwards;
// Host and emulated kernels call the same functions.
inline constexpr double kAngleError = 1e-6;

}  // namespace oomlab::test
