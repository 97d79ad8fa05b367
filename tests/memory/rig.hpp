// A device, an allocator on it, and short names for the figures that the tables print.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/faulty_device.hpp"
#include "kernels/sim/sim_device.hpp"
#include "labs/server/memory/caching_allocator.hpp"

namespace oomlab::testing {

using namespace oomlab::literals;

inline AllocConf conf_of(const char* text) {
    auto conf = parse_alloc_conf(text);
    REQUIRE(conf);
    return *conf;
}

struct Rig {
    explicit Rig(const char* conf = "", u64 capacity_bytes = 1024_GiB)
        : device(open_sim_device(plain_sim_profile(capacity_bytes))),
          allocator(device, conf_of(conf)) {}

    // The address; fails the test where there is none.
    u64 get(u64 bytes, StreamId stream = 0) {
        auto a = allocator.malloc(bytes, stream);
        REQUIRE(a);
        check();
        return a->address;
    }
    AllocFailure refused(u64 bytes, StreamId stream = 0) {
        auto a = allocator.malloc(bytes, stream);
        REQUIRE_FALSE(a);
        check();
        return a.error();
    }
    void free(u64 address) {
        allocator.free(address);
        check();
    }
    void empty_cache() {
        allocator.empty_cache();
        check();
    }
    void check() const { REQUIRE(allocator.check_invariants() == ""); }

    u64 allocated() const { return allocator.memory_allocated(); }
    u64 reserved() const { return allocator.memory_reserved(); }
    const AllocatorStats& stats() const { return allocator.stats(); }
    i64 segments() const { return stats().segment[kStatAll].current; }
    u64 split() const { return u(stats().inactive_split_bytes[kStatAll].current); }
    i64 splits() const { return stats().inactive_split[kStatAll].current; }
    u64 requested() const { return u(stats().requested_bytes[kStatAll].current); }
    static u64 u(i64 n) { return static_cast<u64>(n); }

    FaultyDevice device;
    CachingAllocator allocator;
};

}  // namespace oomlab::testing
