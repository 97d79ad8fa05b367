#include "tests/device/device_contract.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <vector>

namespace oomlab::contract {
namespace {

using namespace oomlab::literals;

u64 free_bytes(Device& device) {
    const auto info = device.memory().mem_info();
    REQUIRE(info);
    return info->free_bytes;
}

void memory_comes_and_goes(Device& device) {
    DeviceMemory& memory = device.memory();
    const u64 before = free_bytes(device);
    std::vector<DeviceAddress> addresses;
    std::set<DeviceAddress> distinct;
    for (const u64 bytes : {2_MiB, 20_MiB, 2_MiB}) {
        const auto address = memory.malloc(bytes);
        REQUIRE(address);
        CHECK(*address != 0);
        CHECK(*address % 512 == 0);
        addresses.push_back(*address);
        distinct.insert(*address);
    }
    CHECK(distinct.size() == 3);
    CHECK(free_bytes(device) + 24_MiB <= before);
    for (const DeviceAddress address : addresses) CHECK(memory.free(address));
    CHECK(free_bytes(device) == before);
}

void null_and_nothing(Device& device) {
    const auto address = device.memory().malloc(0);
    REQUIRE(address);
    CHECK(*address == 0);
    CHECK(device.memory().free(0));
    CHECK(device.memory().host_free(nullptr));
}

void too_much_is_refused(Device& device) {
    const auto info = device.memory().mem_info();
    REQUIRE(info);
    const u64 before = info->free_bytes;
    const auto address = device.memory().malloc(info->total_bytes + 2_MiB);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == DeviceErrc::memory_allocation);
    CHECK(address.error().call == DeviceCall::malloc);
    CHECK(address.error().bytes == info->total_bytes + 2_MiB);
    CHECK_FALSE(address.error().sticky());
    const auto handle =
        device.memory().create(round_up(info->total_bytes + 1, device.props().granularity_bytes));
    REQUIRE_FALSE(handle);
    CHECK(handle.error().code == DeviceErrc::memory_allocation);
    // Nothing was taken, and the next call is served.
    CHECK(free_bytes(device) == before);
    const auto small = device.memory().malloc(2_MiB);
    REQUIRE(small);
    CHECK(device.memory().free(*small));
}

void pages_are_mapped(Device& device) {
    DeviceMemory& memory = device.memory();
    const u64 page = device.props().granularity_bytes;
    REQUIRE(page > 0);
    const u64 before = free_bytes(device);
    const auto range = memory.reserve(8 * page);
    REQUIRE(range);
    CHECK(*range % page == 0);
    CHECK(free_bytes(device) == before);  // addresses cost nothing
    const auto first = memory.create(page);
    const auto second = memory.create(3 * page);
    REQUIRE(first);
    REQUIRE(second);
    CHECK(free_bytes(device) + 4 * page <= before);
    CHECK(memory.map(*range, page, *first));
    CHECK(memory.map(*range + page, 3 * page, *second));
    // The handles may go first: mapped memory stays until it is unmapped.
    CHECK(memory.destroy(*first));
    CHECK(memory.destroy(*second));
    CHECK(free_bytes(device) + 4 * page <= before);
    CHECK(memory.unmap(*range, 4 * page));
    CHECK(free_bytes(device) == before);
    CHECK(memory.release(*range, 8 * page));
}

void mapping_is_checked(Device& device) {
    DeviceMemory& memory = device.memory();
    const u64 page = device.props().granularity_bytes;
    const auto odd = memory.create(page + 512);
    REQUIRE_FALSE(odd);
    CHECK(odd.error().code == DeviceErrc::invalid_value);
    const auto range = memory.reserve(4 * page);
    const auto handle = memory.create(page);
    REQUIRE(range);
    REQUIRE(handle);
    CHECK(memory.map(*range, page, *handle));
    const auto other = memory.create(page);
    REQUIRE(other);
    CHECK_FALSE(memory.map(*range, page, *other));             // occupied
    CHECK_FALSE(memory.map(*range + 4 * page, page, *other));  // outside the range
    CHECK_FALSE(memory.unmap(*range + page, page));            // nothing there
    CHECK_FALSE(memory.release(*range, 4 * page));             // still mapped
    CHECK(memory.unmap(*range, page));
    CHECK(memory.release(*range, 4 * page));
    CHECK(memory.destroy(*handle));
    CHECK(memory.destroy(*other));
    CHECK_FALSE(memory.destroy(*other));
}

void copies_go_there_and_back(Device& device) {
    const u64 bytes = 1000;
    std::vector<unsigned char> out(bytes), back(bytes, 0xee);
    for (u64 i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>(i * 7 + 1);
    const auto address = device.memory().malloc(2_MiB);
    REQUIRE(address);
    CHECK(device.memory().copy_to_device(*address + 512, out.data(), bytes));
    CHECK(device.memory().copy_to_host(back.data(), *address + 512, bytes));
    if (device.props().computes) CHECK(back == out);
    CHECK(device.memory().free(*address));
}

void pinned_memory_is_host_memory(Device& device) {
    const auto pointer = device.memory().host_alloc(1_MiB);
    REQUIRE(pointer);
    REQUIRE(*pointer != nullptr);
    std::memset(*pointer, 0x5a, 1_MiB);
    CHECK(static_cast<unsigned char*>(*pointer)[1_MiB - 1] == 0x5a);
    CHECK(device.memory().host_free(*pointer));
}

void events_complete(Device& device) {
    DeviceStreams& streams = device.streams();
    const auto stream = streams.create_stream();
    REQUIRE(stream);
    CHECK(*stream != 0);
    const auto event = streams.record_event(*stream);
    REQUIRE(event);
    CHECK(streams.synchronize_event(*event));
    const auto done = streams.query_event(*event);
    REQUIRE(done);
    CHECK(*done);
    CHECK(streams.destroy_event(*event));
    const auto on_default = streams.record_event(0);
    REQUIRE(on_default);
    CHECK(streams.synchronize());
    const auto all_done = streams.query_event(*on_default);
    REQUIRE(all_done);
    CHECK(*all_done);
    CHECK(streams.destroy_event(*on_default));
    CHECK(streams.destroy_stream(*stream));
}

void graphs_take_memory_outside(Device& device) {
    DeviceGraphs& graphs = device.graphs();
    const u64 before = device.graph_bytes();
    const auto stream = device.streams().create_stream();
    REQUIRE(stream);
    REQUIRE(graphs.begin_capture(*stream));
    CHECK(device.ops().account({.flops = 1e6, .bytes = 1e6}));
    const auto graph = graphs.end_capture(*stream);
    REQUIRE(graph);
    CHECK(device.graph_bytes() >= before);
    CHECK(graphs.launch_graph(*graph, *stream));
    CHECK(device.end_step());
    CHECK(graphs.destroy_graph(*graph));
    CHECK(device.graph_bytes() == before);
    CHECK(device.streams().destroy_stream(*stream));
}

void time_never_runs_back(Device& device) {
    const double start = device.now_s();
    CHECK(device.ops().account({.flops = 1e9, .bytes = 1e6}));
    CHECK(device.end_step());
    const double after = device.now_s();
    CHECK(after >= start);
    device.wait_until_s(after + 0.001);
    CHECK(device.now_s() >= after + 0.001);
    const double later = device.now_s();
    device.wait_until_s(start);  // the past: nothing to wait for
    CHECK(device.now_s() >= later);
}

void growth_outside_is_seen(Device& device) {
    const u64 before = free_bytes(device);
    const u64 held = device.outside_bytes();
    CHECK(device.grow_outside(4_MiB));
    CHECK(device.outside_bytes() == held + 4_MiB);
    CHECK(free_bytes(device) + 4_MiB <= before);
}

void a_bad_launch_is_not_sticky(Device& device) {
    const auto result = device.provoke(DeviceErrc::invalid_configuration);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == DeviceErrc::invalid_configuration);
    CHECK(device.end_step());
    CHECK(device.memory().mem_info());
}

void a_sticky_error_stays(Device& device) {
    const auto address = device.memory().malloc(2_MiB);
    REQUIRE(address);
    // The launch itself may pass: such an error is reported by whichever call comes next.
    if (const auto launched = device.provoke(DeviceErrc::illegal_address); !launched) {
        CHECK(launched.error().code == DeviceErrc::illegal_address);
    }
    const auto step = device.end_step();
    REQUIRE_FALSE(step);
    CHECK(step.error().code == DeviceErrc::illegal_address);
    CHECK(step.error().sticky());
    const auto memory = device.memory().malloc(2_MiB);
    REQUIRE_FALSE(memory);
    CHECK(memory.error().code == DeviceErrc::illegal_address);
    const auto freed = device.memory().free(*address);
    REQUIRE_FALSE(freed);
    CHECK(freed.error().code == DeviceErrc::illegal_address);
    const auto sync = device.streams().synchronize();
    REQUIRE_FALSE(sync);
    CHECK(sync.error().code == DeviceErrc::illegal_address);
}

void facts_are_there(Device& device) {
    const DeviceProps& props = device.props();
    CHECK_FALSE(props.name.empty());
    CHECK(props.total_bytes > 0);
    CHECK(props.granularity_bytes >= 64 * 1024);
    const auto info = device.memory().mem_info();
    REQUIRE(info);
    CHECK(info->free_bytes <= info->total_bytes);
    CHECK(info->total_bytes <= props.total_bytes);
}

}  // namespace

void check_device(const Subject& subject) {
    const auto device = subject.open();
    REQUIRE(device != nullptr);
    REQUIRE(device->create_context());
    SUBCASE("facts are there") {
        facts_are_there(*device);
    }
    SUBCASE("memory comes and goes") {
        memory_comes_and_goes(*device);
    }
    SUBCASE("nothing asked is nothing given") {
        null_and_nothing(*device);
    }
    SUBCASE("pages are mapped and unmapped") {
        pages_are_mapped(*device);
    }
    SUBCASE("mapping is checked") {
        mapping_is_checked(*device);
    }
    SUBCASE("copies go there and back") {
        copies_go_there_and_back(*device);
    }
    SUBCASE("pinned memory is host memory") {
        pinned_memory_is_host_memory(*device);
    }
    SUBCASE("events complete") {
        events_complete(*device);
    }
    SUBCASE("graphs take memory outside") {
        graphs_take_memory_outside(*device);
    }
    SUBCASE("time never runs back") {
        time_never_runs_back(*device);
    }
    SUBCASE("growth outside is seen") {
        growth_outside_is_seen(*device);
    }
    SUBCASE("a bad launch is not sticky") {
        a_bad_launch_is_not_sticky(*device);
    }
    if (subject.bounded) {
        SUBCASE("too much is refused and changes nothing") {
            too_much_is_refused(*device);
        }
    }
    if (subject.may_poison) {
        SUBCASE("a sticky error stays") {
            a_sticky_error_stays(*device);
        }
    }
}

}  // namespace oomlab::contract
