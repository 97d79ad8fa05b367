#include <doctest/doctest.h>

#include "kernels/device/faulty_device.hpp"
#include "kernels/sim/sim_device.hpp"

using namespace oomlab;
using namespace oomlab::literals;

TEST_SUITE("faulty device") {
    TEST_CASE("faulty device: the n-th call of a kind fails, the ones around it do not") {
        FaultyDevice device(open_sim_device(plain_sim_profile()));
        device.plant(CallFault{.call = DeviceCall::malloc, .nth = 2});
        CHECK(device.memory().malloc(2_MiB));
        const auto second = device.memory().malloc(4_MiB);
        REQUIRE_FALSE(second);
        CHECK(second.error().out_of_memory());
        CHECK(second.error().call == DeviceCall::malloc);
        CHECK(second.error().bytes == 4_MiB);
        CHECK(device.memory().malloc(4_MiB));
        CHECK(device.calls(DeviceCall::malloc) == 3);
        CHECK(device.faults_fired() == 1);
        // The failed call never reached the chip.
        CHECK(device.memory().mem_info()->free_bytes == 80_GiB - 6_MiB);
    }

    TEST_CASE("faulty device: a fault repeats as often as asked, or for ever") {
        FaultyDevice device(open_sim_device(plain_sim_profile()));
        device.plant(CallFault{.call = DeviceCall::create, .nth = 1, .times = 2});
        CHECK_FALSE(device.memory().create(2_MiB));
        CHECK_FALSE(device.memory().create(2_MiB));
        CHECK(device.memory().create(2_MiB));
        device.plant(CallFault{.call = DeviceCall::create, .nth = 2, .times = 0});
        CHECK(device.memory().create(2_MiB));
        for (int i = 0; i < 5; ++i) CHECK_FALSE(device.memory().create(2_MiB));
        device.clear_faults();
        CHECK(device.memory().create(2_MiB));
    }

    TEST_CASE("faulty device: above a size every allocation fails") {
        FaultyDevice device(open_sim_device(plain_sim_profile()));
        device.plant(CallFault{.call = DeviceCall::malloc, .times = 0, .above_bytes = 10_MiB});
        CHECK(device.memory().malloc(10_MiB));
        CHECK_FALSE(device.memory().malloc(10_MiB + 1));
        CHECK(device.memory().malloc(1_MiB));
        CHECK_FALSE(device.memory().malloc(1_GiB));
    }

    TEST_CASE("faulty device: any call whatever its kind, for sweeps") {
        FaultyDevice device(open_sim_device(plain_sim_profile()));
        device.plant(
            CallFault{.call = CallFault::kAnyCall, .nth = 2, .code = DeviceErrc::invalid_value});
        CHECK(device.memory().mem_info());
        CHECK_FALSE(device.streams().synchronize());
        CHECK(device.memory().mem_info());
        CHECK(device.calls_total() == 3);
        device.reset_counts();
        CHECK(device.calls_total() == 0);
    }

    TEST_CASE("faulty device: a sticky code poisons, also through the wrapper") {
        FaultyDevice device(open_sim_device(plain_sim_profile()));
        device.plant(CallFault{.call = DeviceCall::launch, .code = DeviceErrc::device_assert});
        CHECK_FALSE(device.ops().account({}));
        const auto later = device.memory().mem_info();
        REQUIRE_FALSE(later);
        CHECK(later.error().code == DeviceErrc::device_assert);
    }

    TEST_CASE("faulty device: at a step the chip itself faults") {
        FaultyDevice device(open_sim_device(plain_sim_profile()));
        device.plant(StepFault{.step = 3, .code = DeviceErrc::illegal_address});
        CHECK(device.end_step());
        CHECK(device.end_step());
        const auto third = device.end_step();
        REQUIRE_FALSE(third);
        CHECK(third.error().code == DeviceErrc::illegal_address);
        CHECK_FALSE(device.memory().mem_info());
    }

    TEST_CASE("faulty device: a graph that cannot be instantiated leaves no memory behind") {
        FaultyDevice device(open_sim_device(plain_sim_profile()));
        device.plant(CallFault{.call = DeviceCall::instantiate});
        CHECK(device.graphs().begin_capture(0));
        const auto graph = device.graphs().end_capture(0);
        REQUIRE_FALSE(graph);
        CHECK(graph.error().call == DeviceCall::instantiate);
        CHECK(device.graph_bytes() == 0);
        CHECK(device.graphs().begin_capture(0));
        CHECK(device.graphs().end_capture(0));
    }

    TEST_CASE("faulty device: a borrowed chip lives on") {
        const auto chip = open_sim_device(plain_sim_profile());
        {
            FaultyDevice device(*chip);
            CHECK(device.memory().malloc(2_MiB));
        }
        CHECK(chip->memory().mem_info()->free_bytes == 80_GiB - 2_MiB);
    }
}
