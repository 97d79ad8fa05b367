// The backed chip: data is really there, ops really compute, and a wrong address faults as on a
// GPU.
#include <doctest/doctest.h>

#include <vector>

#include "kernels/sim/sim_device.hpp"

using namespace oomlab;
using namespace oomlab::literals;

namespace {

std::unique_ptr<Device> open_backed() {
    SimProfile profile = plain_sim_profile(256_MiB);
    profile.backed = true;
    return open_sim_device(profile);
}

u64 put(Device& device, const std::vector<float>& values) {
    const u64 bytes = values.size() * sizeof(float);
    const auto address = device.memory().malloc(bytes);
    REQUIRE(address);
    REQUIRE(device.memory().copy_to_device(*address, values.data(), bytes));
    return *address;
}
std::vector<float> get(Device& device, u64 address, std::size_t n) {
    std::vector<float> values(n);
    REQUIRE(device.memory().copy_to_host(values.data(), address, n * sizeof(float)));
    return values;
}

}  // namespace

TEST_SUITE("sim computes") {
    TEST_CASE("sim computes: a product of two small matrices") {
        const auto device = open_backed();
        CHECK(device->props().computes);
        // [2, 2] = [2, 3] x [2, 3]^T
        const u64 in = put(*device, {1, 2, 3, 4, 5, 6});
        const u64 weight = put(*device, {1, 0, 1, 0, 2, 0});
        const u64 out = put(*device, {0, 0, 0, 0});
        MatmulArgs args{.in = in,
                        .weight = weight,
                        .out = out,
                        .rows = 2,
                        .k = 3,
                        .n = 2,
                        .in_type = DType::f32,
                        .out_type = DType::f32};
        REQUIRE(device->ops().matmul(args));
        REQUIRE(device->end_step());
        CHECK(get(*device, out, 4) == std::vector<float>{4, 4, 10, 10});
        CHECK(device->now_s() > 0);
    }

    TEST_CASE("sim computes: a captured product is done at each launch, not at capture") {
        const auto device = open_backed();
        const u64 in = put(*device, {3});
        const u64 weight = put(*device, {5});
        const u64 out = put(*device, {0});
        REQUIRE(device->graphs().begin_capture(0));
        REQUIRE(device->ops().matmul({.in = in,
                                      .weight = weight,
                                      .out = out,
                                      .rows = 1,
                                      .k = 1,
                                      .n = 1,
                                      .in_type = DType::f32,
                                      .out_type = DType::f32}));
        const auto graph = device->graphs().end_capture(0);
        REQUIRE(graph);
        CHECK(get(*device, out, 1)[0] == 0);
        REQUIRE(device->graphs().launch_graph(*graph, 0));
        CHECK(get(*device, out, 1)[0] == 15);
    }

    TEST_CASE("sim computes: mapped pages hold data across their borders") {
        const auto device = open_backed();
        DeviceMemory& memory = device->memory();
        const auto range = memory.reserve(8_MiB);
        REQUIRE(range);
        for (u64 page = 0; page < 3; ++page) {
            const auto handle = memory.create(2_MiB);
            REQUIRE(handle);
            REQUIRE(memory.map(*range + page * 2_MiB, 2_MiB, *handle));
            REQUIRE(memory.destroy(*handle));
        }
        REQUIRE(device->ops().fill(
            {.out = *range, .elements = 3_MiB / 2, .seed = 7, .type = DType::f32}));
        const auto sum = device->ops().checksum(*range, 6_MiB);
        REQUIRE(sum);
        const auto flat = memory.malloc(6_MiB);
        REQUIRE(flat);
        REQUIRE(device->ops().fill(
            {.out = *flat, .elements = 3_MiB / 2, .seed = 7, .type = DType::f32}));
        CHECK(*device->ops().checksum(*flat, 6_MiB) == *sum);
        CHECK_FALSE(device->ops().checksum(*range, 6_MiB + 1));
    }

    TEST_CASE("sim computes: an address that is no memory is an illegal access, and sticky") {
        const auto device = open_backed();
        const auto address = device->memory().malloc(4096);
        REQUIRE(address);
        REQUIRE(device->memory().free(*address));
        // The launch passes, the step does not: errors of kernels are reported later.
        CHECK(device->ops().fill({.out = *address, .elements = 16}));
        const auto step = device->end_step();
        REQUIRE_FALSE(step);
        CHECK(step.error().code == DeviceErrc::illegal_address);
        CHECK_FALSE(device->memory().mem_info());
    }

    TEST_CASE("sim computes: a token beyond the vocabulary trips the device-side assert") {
        const auto device = open_backed();
        const std::vector<i32> ids{1, 7};
        const auto address = device->memory().malloc(8);
        REQUIRE(address);
        REQUIRE(device->memory().copy_to_device(*address, ids.data(), 8));
        const u64 table = put(*device, std::vector<float>(4 * 2, 1.0f));
        const u64 out = put(*device, std::vector<float>(2 * 2, 0.0f));
        CHECK(device->ops().embed({.ids = *address,
                                   .table = table,
                                   .out = out,
                                   .rows = 2,
                                   .width = 2,
                                   .vocab = 4,
                                   .type = DType::f32}));
        const auto step = device->end_step();
        REQUIRE_FALSE(step);
        CHECK(step.error().code == DeviceErrc::device_assert);
    }

    TEST_CASE("sim computes: a null tensor is cost only") {
        const auto device = open_backed();
        CHECK(device->ops().matmul({.rows = 1000, .k = 1000, .n = 1000}));
        CHECK(device->end_step());
        CHECK(device->now_s() > 0);
    }
}
