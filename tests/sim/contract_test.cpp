#include <doctest/doctest.h>

#include "kernels/device/faulty_device.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/device/device_contract.hpp"

using namespace oomlab;
using namespace oomlab::literals;

namespace {
SimProfile profile(bool backed) {
    SimProfile p = plain_sim_profile(1_GiB);
    p.context_bytes = 100_MiB;
    p.backed = backed;
    return p;
}
}  // namespace

TEST_SUITE("device contract") {
    TEST_CASE("device contract: the simulated chip") {
        contract::check_device({.open = [] { return open_sim_device(profile(false)); }});
    }
    TEST_CASE("device contract: the simulated chip that computes") {
        contract::check_device({.open = [] { return open_sim_device(profile(true)); }});
    }
    TEST_CASE("device contract: the fault wrapper without faults") {
        contract::check_device({.open = []() -> std::unique_ptr<Device> {
            return std::make_unique<FaultyDevice>(open_sim_device(profile(false)));
        }});
    }
}
