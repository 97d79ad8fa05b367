#include <doctest/doctest.h>

#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

namespace {
StreamId stream_of(Rig& rig) {
    const auto stream = rig.device.streams().create_stream();
    REQUIRE(stream);
    return *stream;
}
void busy(Rig& rig) {
    REQUIRE(rig.device.ops().account({.flops = 1e12}));
}
}  // namespace

TEST_SUITE("streams") {
    TEST_CASE("streams: a free block serves only the stream it belongs to") {
        Rig rig("", 300_MiB);
        const StreamId other = stream_of(rig);
        rig.free(rig.get(200_MiB));
        // The cached 200 are of no use to the other stream; releasing the cache makes room.
        rig.get(200_MiB, other);
        CHECK(rig.reserved() == 200_MiB);
        CHECK(rig.stats().num_alloc_retries == 1);
    }

    TEST_CASE("streams: a block used elsewhere stays active until that work is done") {
        Rig rig;
        const StreamId other = stream_of(rig);
        const u64 a = rig.get(30_MiB);
        rig.allocator.record_stream(a, other);
        busy(rig);
        rig.free(a);
        CHECK(rig.allocated() == 0);
        CHECK(rig.stats().active_bytes[kStatAll].current == static_cast<i64>(30_MiB));
        CHECK(rig.stats().requested_bytes[kStatAll].current == static_cast<i64>(30_MiB));
        const auto waiting = rig.allocator.snapshot();
        REQUIRE(waiting.size() == 1);
        CHECK(waiting[0].blocks[0].pending_free);
        CHECK_FALSE(waiting[0].blocks[0].active);
        // Not reusable yet: a second segment.
        rig.get(30_MiB);
        CHECK(rig.reserved() == 60_MiB);
        REQUIRE(rig.device.end_step());
        // The next malloc polls, completes the free and reuses the block.
        rig.get(30_MiB);
        CHECK(rig.reserved() == 60_MiB);
        CHECK(rig.stats().active_bytes[kStatAll].current == static_cast<i64>(60_MiB));
    }

    TEST_CASE("streams: recording the own stream is nothing, the same one twice is once") {
        Rig rig;
        const StreamId other = stream_of(rig);
        const u64 a = rig.get(512);
        rig.allocator.record_stream(a, 0);
        rig.free(a);
        CHECK(rig.stats().active[kStatAll].current == 0);
        const u64 b = rig.get(512);
        rig.allocator.record_stream(b, other);
        rig.allocator.record_stream(b, other);
        rig.device.reset_counts();
        rig.free(b);
        CHECK(rig.device.calls(DeviceCall::record_event) == 1);
    }

    TEST_CASE("streams: two streams, both must be done, and neighbours wait with it") {
        Rig rig;
        const StreamId s1 = stream_of(rig), s2 = stream_of(rig);
        const u64 a = rig.get(512), b = rig.get(512);
        rig.allocator.record_stream(a, s1);
        rig.allocator.record_stream(a, s2);
        busy(rig);
        rig.free(a);
        rig.free(b);
        // b is free beside the pending a: it must not merge with it.
        CHECK(rig.splits() == 1);
        REQUIRE(rig.device.end_step());
        rig.free(rig.get(512));
        CHECK(rig.splits() == 0);
        CHECK(rig.stats().active[kStatAll].current == 0);
    }

    TEST_CASE("streams: releasing the cache waits for all, and a retry finds the memory") {
        Rig rig("", 100_MiB);
        const StreamId other = stream_of(rig);
        const u64 a = rig.get(80_MiB);
        rig.allocator.record_stream(a, other);
        busy(rig);
        rig.free(a);
        rig.get(90_MiB);
        CHECK(rig.reserved() == 90_MiB);
        CHECK(rig.stats().num_sync_all_streams == 1);
        CHECK(rig.stats().num_alloc_retries == 1);
        CHECK(rig.stats().num_ooms == 0);
    }

    TEST_CASE(
        "streams: the known gap, a block recovered during the release is not searched again") {
        Rig rig("", 100_MiB);
        const StreamId other = stream_of(rig);
        rig.free(rig.get(80_MiB));
        const u64 a = rig.get(60_MiB);  // the low part of the 80
        rig.get(20_MiB);                // the rest of it: the segment is pinned
        rig.allocator.record_stream(a, other);
        busy(rig);
        rig.free(a);
        // The wait gives the 60 back to the pool, but only the driver is asked again: as the
        // original.
        rig.refused(50_MiB);
        CHECK(rig.stats().num_ooms == 1);
        rig.get(50_MiB);
        CHECK(rig.reserved() == 80_MiB);
    }

    TEST_CASE("streams: pending bytes are part of the failure") {
        Rig rig("", 100_MiB);
        const StreamId other = stream_of(rig);
        const u64 a = rig.get(60_MiB);
        rig.allocator.record_stream(a, other);
        busy(rig);
        rig.free(a);
        rig.device.plant(CallFault{.call = DeviceCall::synchronize});
        const AllocFailure f = rig.refused(80_MiB);
        CHECK(f.kind == AllocFailure::Kind::device_error);
        CHECK(f.pending_free_bytes == 60_MiB);
        rig.get(80_MiB);
    }

    TEST_CASE("streams: the peak of active counts what waits, that of allocated does not") {
        Rig rig;
        const StreamId other = stream_of(rig);
        const u64 a = rig.get(30_MiB);
        rig.allocator.record_stream(a, other);
        busy(rig);
        rig.free(a);
        const u64 b = rig.get(20_MiB);  // 20 allocated, 50 active
        const auto peak = [&](const PoolStat& stat) {
            return static_cast<u64>(stat[kStatAll].peak);
        };
        CHECK(peak(rig.stats().allocated_bytes) == 30_MiB);
        CHECK(peak(rig.stats().active_bytes) == 50_MiB);
        CHECK(peak(rig.stats().active) == 2);
        CHECK(rig.stats().active_bytes[kStatLarge].peak == static_cast<i64>(50_MiB));
        CHECK(rig.stats().active_bytes[kStatAll].freed == 0);
        rig.free(b);
        rig.allocator.reset_peak_stats();
        CHECK(peak(rig.stats().active_bytes) == 30_MiB);
        CHECK(peak(rig.stats().allocated_bytes) == 0);
        REQUIRE(rig.device.end_step());
        rig.get(512);
        CHECK(rig.stats().active_bytes[kStatAll].freed == static_cast<i64>(50_MiB));
        CHECK(rig.stats().active_bytes[kStatAll].current == 512);
        CHECK(peak(rig.stats().active_bytes) == 30_MiB);
    }

    TEST_CASE("streams: an event that cannot be recorded is tried again later") {
        Rig rig;
        const StreamId other = stream_of(rig);
        const u64 a = rig.get(30_MiB);
        rig.allocator.record_stream(a, other);
        rig.device.plant(
            CallFault{.call = DeviceCall::record_event, .code = DeviceErrc::operating_system});
        rig.free(a);
        CHECK(rig.stats().active_bytes[kStatAll].current == static_cast<i64>(30_MiB));
        rig.get(30_MiB);
        CHECK(rig.reserved() == 30_MiB);  // recorded, done, and reused in one call
    }
}
