// For n = 1, 2, 3, ...: the n-th call of the driver fails, once and for ever, until the script runs
// through without meeting the fault. After a failed call: the figures are as before (but for what a
// release of the cache gave back), nothing is lost, and when the driver works again so does the
// allocator. Every kind of call is swept, not only the allocations.
#include <doctest/doctest.h>

#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

namespace {

constexpr u64 kCapacity = 400_MiB;

struct Script {
    Script(const char* conf, CallFault fault)
        : device(open_sim_device(plain_sim_profile(kCapacity))),
          allocator(std::make_unique<CachingAllocator>(device, conf_of(conf))) {
        const auto created = device.streams().create_stream();
        REQUIRE(created);
        other = *created;
        device.plant(std::move(fault));
    }

    void get(u64 bytes, StreamId stream = 0) {
        const AllocatorStats before = allocator->stats();
        const auto a = allocator->malloc(bytes, stream);
        REQUIRE(allocator->check_invariants() == "");
        if (a) {
            held.push_back(a->address);
            return;
        }
        const AllocatorStats& after = allocator->stats();
        REQUIRE(after.allocated_bytes[0].current == before.allocated_bytes[0].current);
        REQUIRE(after.allocation[0].current == before.allocation[0].current);
        // More may be reserved only as cached pages, mapped by a step that preceded the failure.
        const bool expandable = after.segment[0].current == 0;
        if (!expandable)
            REQUIRE(after.reserved_bytes[0].current <= before.reserved_bytes[0].current);
    }
    void free(std::size_t at) {
        if (at >= held.size()) return;
        allocator->free(held[at]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
        REQUIRE(allocator->check_invariants() == "");
    }

    // Touches every way to the driver: segments, reuse, other streams, retries, an out of memory.
    void play() {
        get(100_MiB);
        get(700_KiB);
        get(30_MiB, other);
        free(0);
        get(60_MiB);
        if (!held.empty()) allocator->record_stream(held.back(), other);
        (void)device.ops().account({.flops = 1e9});  // this and end_step() may be what fails
        if (!held.empty()) free(held.size() - 1);
        get(150_MiB);
        (void)device.end_step();
        get(200_MiB);  // releases the cache
        get(3_MiB);
        free(0);
        free(0);
        allocator->empty_cache();
        REQUIRE(allocator->check_invariants() == "");
        get(390_MiB);
        get(40_MiB);
    }

    // The driver works again: everything can be served and everything comes back.
    void recover() {
        device.clear_faults();
        while (!held.empty()) free(held.size() - 1);
        REQUIRE(device.end_step());
        allocator->empty_cache();
        REQUIRE(allocator->check_invariants() == "");
        REQUIRE(allocator->memory_reserved() == 0);
        get(300_MiB);
        REQUIRE(held.size() == 1);
        allocator.reset();
        REQUIRE(device.memory().mem_info()->free_bytes == kCapacity);
    }

    FaultyDevice device;
    std::unique_ptr<CachingAllocator> allocator;
    std::vector<u64> held;
    StreamId other = 0;
};

void sweep(const char* conf, u64 times, DeviceErrc code) {
    CAPTURE(conf);
    CAPTURE(times);
    u64 n = 1;
    for (bool fired = true; fired; ++n) {
        CAPTURE(n);
        REQUIRE(n < 2000);
        Script script(conf, {.call = CallFault::kAnyCall, .nth = n, .times = times, .code = code});
        script.play();
        fired = script.device.faults_fired() > 0;
        script.recover();
    }
    CHECK(n > 10);
}

}  // namespace

TEST_SUITE("oom sweep") {
    TEST_CASE("oom sweep: each call of the driver runs out of memory once") {
        for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:50"}) {
            sweep(conf, 1, DeviceErrc::memory_allocation);
        }
    }
    TEST_CASE("oom sweep: from some call on the driver has no memory for ever") {
        for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:50"}) {
            sweep(conf, 0, DeviceErrc::memory_allocation);
        }
    }
    TEST_CASE("oom sweep: each call of the driver fails for another reason") {
        for (const char* conf :
             {"", "expandable_segments:True",
              "garbage_collection_threshold:0.3,per_process_memory_fraction:0.9"}) {
            sweep(conf, 1, DeviceErrc::invalid_value);
            sweep(conf, 0, DeviceErrc::operating_system);
        }
    }
}
