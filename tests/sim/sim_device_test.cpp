#include <doctest/doctest.h>

#include <cmath>

#include "kernels/sim/sim_device.hpp"

using namespace oomlab;
using namespace oomlab::literals;

namespace {
MemInfo info(Device& device) {
    const auto result = device.memory().mem_info();
    REQUIRE(result);
    return *result;
}
}  // namespace

TEST_SUITE("sim") {
    TEST_CASE("sim: it says that it is simulated") {
        const auto device = open_sim_device(plain_sim_profile());
        CHECK(device->props().simulated);
        CHECK_FALSE(device->props().computes);
    }

    TEST_CASE("sim: the context costs memory, once") {
        SimProfile profile = plain_sim_profile(1_GiB);
        profile.context_bytes = 300_MiB;
        const auto device = open_sim_device(profile);
        CHECK(device->context_bytes() == 0);
        CHECK(device->create_context());
        CHECK(device->create_context());
        CHECK(device->context_bytes() == 300_MiB);
        CHECK(info(*device).free_bytes == 1_GiB - 300_MiB);
    }

    TEST_CASE("sim: a full device has no room for a context") {
        SimProfile profile = plain_sim_profile(1_GiB);
        profile.context_bytes = 300_MiB;
        profile.tenants = {{.name = "trainer", .bytes = 800_MiB}};
        const auto device = open_sim_device(profile);
        const auto created = device->create_context();
        REQUIRE_FALSE(created);
        CHECK(created.error().out_of_memory());
        CHECK(created.error().call == DeviceCall::create_context);
        CHECK_FALSE(device->memory().malloc(2_MiB));
    }

    TEST_CASE("sim: memory is taken in the driver's grain") {
        const auto device = open_sim_device(plain_sim_profile(100_MiB));
        const auto address = device->memory().malloc(2_MiB + 1);
        REQUIRE(address);
        CHECK(info(*device).free_bytes == 96_MiB);
        CHECK_FALSE(device->memory().malloc(96_MiB + 1));
        CHECK(device->memory().malloc(96_MiB));
        CHECK(info(*device).free_bytes == 0);
        CHECK_FALSE(device->memory().malloc(1));
    }

    TEST_CASE("sim: addresses grow and never touch, and are the same in every run") {
        const auto run = [] {
            const auto device = open_sim_device(plain_sim_profile(1_GiB));
            std::vector<DeviceAddress> addresses;
            for (int i = 0; i < 20; ++i) {
                const auto address = device->memory().malloc(i % 2 == 0 ? 2_MiB : 21_MiB);
                REQUIRE(address);
                addresses.push_back(*address);
                if (i % 3 == 0) CHECK(device->memory().free(*address));
            }
            return addresses;
        };
        const auto first = run();
        for (std::size_t i = 1; i < first.size(); ++i) CHECK(first[i] > first[i - 1] + 2_MiB);
        CHECK(run() == first);
    }

    TEST_CASE("sim: tenants come, grow and go with the virtual clock") {
        SimProfile profile = plain_sim_profile(1_GiB);
        profile.tenants = {{.name = "notebook",
                            .bytes = 100_MiB,
                            .from_s = 10,
                            .until_s = 3700,
                            .grows_bytes_per_hour = 36.0 * kMiB}};
        const auto device = open_sim_device(profile);
        CHECK(info(*device).other_processes_bytes == 0);
        device->wait_until_s(10);
        CHECK(info(*device).other_processes_bytes == 100_MiB);
        CHECK(info(*device).free_bytes == 1_GiB - 100_MiB);
        device->wait_until_s(3610);
        CHECK(info(*device).other_processes_bytes == 136_MiB);
        device->wait_until_s(3700);
        CHECK(info(*device).other_processes_bytes == 0);
    }

    TEST_CASE("sim: a tenant never takes what we have") {
        SimProfile profile = plain_sim_profile(1_GiB);
        profile.tenants = {{.name = "greedy", .bytes = 1_GiB, .from_s = 5}};
        const auto device = open_sim_device(profile);
        const auto mine = device->memory().malloc(512_MiB);
        REQUIRE(mine);
        device->wait_until_s(5);
        CHECK(info(*device).other_processes_bytes == 512_MiB);
        CHECK(info(*device).free_bytes == 0);
        CHECK_FALSE(device->memory().malloc(2_MiB));
    }

    TEST_CASE("sim: a limit of this process shows as its total") {
        SimProfile profile = plain_sim_profile(1_GiB);
        profile.props.memory_limit_bytes = 256_MiB;
        profile.tenants = {{.name = "other", .bytes = 100_MiB}};
        const auto device = open_sim_device(profile);
        CHECK(info(*device).total_bytes == 256_MiB);
        CHECK(info(*device).free_bytes == 256_MiB);
        CHECK(device->props().total_bytes == 1_GiB);
        CHECK_FALSE(device->memory().malloc(258_MiB));
        CHECK(device->memory().malloc(256_MiB));
        CHECK(info(*device).free_bytes == 0);
        CHECK(info(*device).other_processes_bytes == 100_MiB);
    }

    TEST_CASE("sim: a step takes as long as the slower half, and its overhead") {
        SimProfile profile = plain_sim_profile();
        profile.props.peak_flops_16 = 100e12;
        profile.props.peak_ops_8 = 200e12;
        profile.props.peak_bytes_per_s = 1e12;
        profile.props.flops_share = 0.5;
        profile.props.bandwidth_share = 0.8;
        profile.props.step_overhead_s = 1e-3;
        const auto device = open_sim_device(profile);
        const auto step = [&](OpCost cost) {
            const double start = device->now_s();
            REQUIRE(device->ops().account(cost));
            REQUIRE(device->end_step());
            return device->now_s() - start;
        };
        CHECK(step({.flops = 1e12, .bytes = 1e9}) == doctest::Approx(0.02 + 1e-3));
        CHECK(step({.flops = 1e9, .bytes = 8e9}) == doctest::Approx(0.01 + 1e-3));
        CHECK(step({.flops = 1e12, .bytes = 0, .eight_bit = true}) == doctest::Approx(0.01 + 1e-3));
        CHECK(step({}) == doctest::Approx(1e-3));
    }

    TEST_CASE("sim: waiting moves the clock, never back") {
        const auto device = open_sim_device(plain_sim_profile());
        device->wait_until_s(3600);
        CHECK(device->now_s() == 3600);
        device->wait_until_s(10);
        CHECK(device->now_s() == 3600);
    }

    TEST_CASE("sim: an event waits for the work before it, not for the work after it") {
        const auto device = open_sim_device(plain_sim_profile());
        DeviceStreams& streams = device->streams();
        const auto idle = streams.record_event(0);
        REQUIRE(idle);
        CHECK(*streams.query_event(*idle));
        REQUIRE(device->ops().account({.flops = 1e12}));
        const auto busy = streams.record_event(0);
        REQUIRE(busy);
        CHECK_FALSE(*streams.query_event(*busy));
        REQUIRE(device->end_step());
        CHECK(*streams.query_event(*busy));
        REQUIRE(device->ops().account({.flops = 1e12}));
        CHECK(*streams.query_event(*busy));
        const double before = device->now_s();
        CHECK(streams.synchronize());
        CHECK(device->now_s() > before);
        CHECK_FALSE(streams.query_event(999));
    }

    TEST_CASE("sim: the first graph costs most, each has its own, and all come back") {
        SimProfile profile = plain_sim_profile(1_GiB);
        profile.first_graph_bytes = 100_MiB;
        profile.further_graph_bytes = 10_MiB;
        const auto device = open_sim_device(profile);
        DeviceGraphs& graphs = device->graphs();
        std::vector<GraphId> ids;
        for (int i = 0; i < 3; ++i) {
            REQUIRE(graphs.begin_capture(0));
            REQUIRE(device->ops().account({.flops = 1e12}));
            const auto graph = graphs.end_capture(0);
            REQUIRE(graph);
            ids.push_back(*graph);
        }
        CHECK(device->graph_bytes() == 120_MiB);
        CHECK(info(*device).free_bytes == 1_GiB - 120_MiB);
        for (const GraphId id : ids) CHECK(graphs.destroy_graph(id));
        CHECK(info(*device).free_bytes == 1_GiB);
    }

    TEST_CASE("sim: capture records work, launch does it") {
        SimProfile profile = plain_sim_profile();
        profile.props.step_overhead_s = 0;
        const auto device = open_sim_device(profile);
        REQUIRE(device->graphs().begin_capture(0));
        REQUIRE(device->ops().account({.flops = 300e12 * 0.65}));
        const auto graph = device->graphs().end_capture(0);
        REQUIRE(graph);
        REQUIRE(device->end_step());
        CHECK(device->now_s() == 0);
        REQUIRE(device->graphs().launch_graph(*graph, 0));
        REQUIRE(device->end_step());
        CHECK(device->now_s() == doctest::Approx(1.0));
    }

    TEST_CASE("sim: no room for a graph is an out of memory without figures of an allocator") {
        SimProfile profile = plain_sim_profile(64_MiB);
        profile.first_graph_bytes = 100_MiB;
        const auto device = open_sim_device(profile);
        REQUIRE(device->graphs().begin_capture(0));
        const auto graph = device->graphs().end_capture(0);
        REQUIRE_FALSE(graph);
        CHECK(graph.error().out_of_memory());
        CHECK(graph.error().call == DeviceCall::instantiate);
        CHECK(device->graph_bytes() == 0);
    }

    TEST_CASE("sim: what synchronises is refused during capture and spoils it") {
        const auto device = open_sim_device(plain_sim_profile());
        REQUIRE(device->graphs().begin_capture(0));
        const auto sync = device->streams().synchronize();
        REQUIRE_FALSE(sync);
        CHECK(sync.error().code == DeviceErrc::stream_capture_unsupported);
        CHECK_FALSE(sync.error().sticky());
        const auto graph = device->graphs().end_capture(0);
        REQUIRE_FALSE(graph);
        CHECK(graph.error().code == DeviceErrc::stream_capture_invalidated);
        CHECK(device->streams().synchronize());
    }

    TEST_CASE("sim: allocations are permitted during capture") {
        const auto device = open_sim_device(plain_sim_profile());
        REQUIRE(device->graphs().begin_capture(0));
        CHECK(device->memory().malloc(2_MiB));
        CHECK(device->graphs().end_capture(0));
    }

    TEST_CASE("sim: a library that cannot allocate says so in its own words") {
        const auto device = open_sim_device(plain_sim_profile());
        const auto result = device->provoke(DeviceErrc::memory_allocation);
        REQUIRE_FALSE(result);
        CHECK(result.error().call == DeviceCall::create_blas);
        CHECK(result.error().detail == "CUBLAS_STATUS_ALLOC_FAILED");
        CHECK(device->end_step());
    }

    TEST_CASE("sim: planted faults come with the profile") {
        SimProfile profile = plain_sim_profile();
        profile.call_faults = {{.call = DeviceCall::malloc, .nth = 2}};
        profile.step_faults = {{.step = 1, .code = DeviceErrc::device_assert}};
        const auto device = open_sim_device(profile);
        CHECK(device->memory().malloc(2_MiB));
        CHECK_FALSE(device->memory().malloc(2_MiB));
        const auto step = device->end_step();
        REQUIRE_FALSE(step);
        CHECK(step.error().code == DeviceErrc::device_assert);
    }

    TEST_CASE("sim: growth outside the allocator ends where the device ends") {
        const auto device = open_sim_device(plain_sim_profile(64_MiB));
        CHECK(device->grow_outside(60_MiB));
        CHECK(device->outside_bytes() == 60_MiB);
        const auto more = device->grow_outside(5_MiB);
        REQUIRE_FALSE(more);
        CHECK(more.error().out_of_memory());
        CHECK(device->outside_bytes() == 60_MiB);
    }

    TEST_CASE("sim: addresses that were given back are refused") {
        const auto device = open_sim_device(plain_sim_profile());
        const auto address = device->memory().malloc(2_MiB);
        REQUIRE(address);
        CHECK(device->memory().free(*address));
        CHECK_FALSE(device->memory().free(*address));
        CHECK_FALSE(device->memory().free(*address + 512));
        char byte = 1;
        CHECK_FALSE(device->memory().copy_to_device(*address, &byte, 1));
    }
}
