// What every chip promises, as one list of checks. Each implementation's test runs the same list on
// a device of its own: sim, the fault wrapper without faults, CUDA on a fake driver, CUDA on a GPU.
#pragma once

#include <functional>
#include <memory>

#include "kernels/device/device.hpp"

namespace oomlab::contract {

// Opens a fresh device. It needs 64 MiB free at least, and no more than `capacity_bytes` in all may
// be filled by the suite (the check of a full device stops there).
struct Subject {
    std::function<std::unique_ptr<Device>()> open;
    // Whether a sticky error may be provoked: on a real chip it ends the process' use of the GPU.
    bool may_poison = true;
    // Whether asking for more than the device has fails at once: false on a chip that overcommits.
    bool bounded = true;
};

// To be called inside a TEST_CASE; every check is a SUBCASE.
void check_device(const Subject& subject);

}  // namespace oomlab::contract
