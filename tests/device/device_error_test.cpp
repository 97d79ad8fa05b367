#include <doctest/doctest.h>

#include <set>
#include <string>

#include "kernels/device/device_error.hpp"
#include "kernels/device/owner.hpp"

using namespace oomlab;

TEST_SUITE("device error") {
    TEST_CASE("device error: numbers, names and texts are CUDA 13's") {
        CHECK(static_cast<int>(DeviceErrc::memory_allocation) == 2);
        CHECK(std::string(errc_name(DeviceErrc::memory_allocation)) == "cudaErrorMemoryAllocation");
        CHECK(std::string(errc_text(DeviceErrc::memory_allocation)) == "out of memory");
        CHECK(static_cast<int>(DeviceErrc::illegal_address) == 700);
        CHECK(std::string(errc_text(DeviceErrc::illegal_address)) ==
              "an illegal memory access was encountered");
        CHECK(std::string(errc_name(DeviceErrc::device_assert)) == "cudaErrorAssert");
        CHECK(std::string(errc_text(DeviceErrc::invalid_configuration)) ==
              "invalid configuration argument");
        CHECK(std::string(errc_text(static_cast<DeviceErrc>(12345))) == "unrecognized error code");
    }

    TEST_CASE("device error: what poisons the context is sticky, what merely fails is not") {
        for (const DeviceErrc code :
             {DeviceErrc::illegal_address, DeviceErrc::device_assert, DeviceErrc::launch_failure,
              DeviceErrc::launch_timeout, DeviceErrc::misaligned_address,
              DeviceErrc::illegal_instruction, DeviceErrc::ecc_uncorrectable}) {
            CHECK(is_sticky(code));
        }
        for (const DeviceErrc code :
             {DeviceErrc::success, DeviceErrc::memory_allocation, DeviceErrc::invalid_value,
              DeviceErrc::invalid_configuration, DeviceErrc::launch_out_of_resources,
              DeviceErrc::not_ready, DeviceErrc::cooperative_launch_too_large}) {
            CHECK_FALSE(is_sticky(code));
        }
    }

    TEST_CASE("device error: every kind of call has a name of its own") {
        std::set<std::string> names;
        for (int i = 0; i < static_cast<int>(DeviceCall::count_); ++i) {
            names.insert(call_name(static_cast<DeviceCall>(i)));
        }
        CHECK(names.size() == static_cast<std::size_t>(DeviceCall::count_));
        CHECK(std::string(call_name(DeviceCall::malloc)) == "cudaMalloc");
        CHECK(std::string(call_name(DeviceCall::create)) == "cuMemCreate");
        CHECK(std::string(call_name(DeviceCall::instantiate)) == "cudaGraphInstantiate");
        CHECK(std::string(call_name(DeviceCall::module_load)) == "cuModuleLoad");
    }

    TEST_CASE("owner: names are the contract's") {
        CHECK(owner_name(Owner::context) == "context");
        CHECK(owner_name(Owner::communication) == "communication");
        CHECK(owner_name(Owner::unattributed) == "unattributed");
    }
}
