// The texts that other tools parse: every template word for word, with figures put in by hand.
#include <doctest/doctest.h>

#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

namespace {
const std::string kHint =
    "If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation "
    "for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
    "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
}  // namespace

TEST_SUITE("messages") {
    TEST_CASE("messages: out of memory, every clause") {
        AllocFailure f;
        f.segment_bytes = 20_MiB;
        f.device_total_bytes = 80_GiB;
        f.device_free_bytes = 12_MiB;
        f.process_bytes = 79_GiB;
        f.allowed_bytes = 72_GiB;
        f.allocated_bytes = 70_GiB;
        f.private_pool_free_bytes = 512_MiB;
        f.reserved_bytes = 72_GiB;
        CHECK(
            oom_message(f, 3) ==
            "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 80.00 "
            "GiB of which 12.00 MiB is free. Including non-PyTorch memory, this process has 79.00 "
            "GiB memory in use. 72.00 GiB allowed; Of the allocated memory 70.50 GiB is allocated "
            "by PyTorch, with 512.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.50 "
            "GiB is reserved by PyTorch but unallocated. " +
                kHint);
    }

    TEST_CASE("messages: out of memory, without cap and private pools") {
        Rig rig("", 300_MiB);
        rig.get(100_MiB);
        const u64 a = rig.get(100_MiB);
        rig.free(a);
        rig.get(4_MiB);
        CHECK(oom_message(rig.refused(150_MiB)) ==
              "CUDA out of memory. Tried to allocate 150.00 MiB. GPU 0 has a total capacity of "
              "300.00 MiB of which 100.00 MiB is free. Including non-PyTorch memory, this process "
              "has 200.00 MiB memory in use. Of the allocated memory 104.00 MiB is allocated by "
              "PyTorch, and 96.00 MiB is reserved by PyTorch but unallocated. " +
                  kHint);
    }

    TEST_CASE("messages: sizes print two decimals, upper bounds inclusive") {
        AllocFailure f;
        f.segment_bytes = 1_MiB;
        f.device_total_bytes = 1_GiB;
        f.device_free_bytes = 1024;
        f.reserved_bytes = f.allocated_bytes = 4096_GiB;
        const std::string text = oom_message(f);
        CHECK(text.find("allocate 1024.00 KiB. ") != std::string::npos);
        CHECK(text.find("capacity of 1024.00 MiB of which 1024 bytes is free") !=
              std::string::npos);
        CHECK(text.find("memory 4096.00 GiB is allocated") != std::string::npos);
        CHECK(text.find("and 0 bytes is reserved") != std::string::npos);
    }

    TEST_CASE("messages: more than an exbibyte is not even tried") {
        Rig rig;
        const AllocFailure f = rig.refused(u64{1} << 60);
        CHECK(f.kind == AllocFailure::Kind::absurd_size);
        CHECK(oom_message(f) == "CUDA out of memory. Tried to allocate more than 1EB memory.");
        CHECK(rig.stats().num_ooms == 0);
        CHECK(rig.stats().num_alloc_retries == 0);
        // A byte less is tried, and is an ordinary out of memory.
        CHECK(rig.refused((u64{1} << 60) - 1).kind == AllocFailure::Kind::out_of_memory);
    }

    TEST_CASE("messages: an error of the driver is not an out of memory") {
        Rig rig;
        CHECK(rig.device.provoke(DeviceErrc::illegal_address));
        const AllocFailure f = rig.refused(1);
        CHECK(f.kind == AllocFailure::Kind::device_error);
        CHECK(f.device.code == DeviceErrc::illegal_address);
        const std::string text = oom_message(f);
        CHECK(text.rfind("CUDA error: an illegal memory access was encountered\n", 0) == 0);
        CHECK(text.find("Search for `cudaErrorIllegalAddress' in ") != std::string::npos);
        CHECK(text.find("might be asynchronously reported at some other API call") !=
              std::string::npos);
        CHECK(text.find("Tried to allocate") == std::string::npos);
        CHECK(rig.stats().num_ooms == 0);
    }

    TEST_CASE("messages: expandable segments fail in the driver's words") {
        Rig rig("expandable_segments:True");
        rig.device.plant(CallFault{.call = DeviceCall::map});
        const AllocFailure f = rig.refused(30_MiB);
        CHECK(f.kind == AllocFailure::Kind::device_error);
        CHECK(oom_message(f) == "CUDA driver error: out of memory");
        rig.get(30_MiB);
    }

    TEST_CASE("messages: what a failure knows beyond its message") {
        Rig rig("", 300_MiB);
        REQUIRE(rig.device.grow_outside(50_MiB));
        rig.get(100_MiB);
        const u64 a = rig.get(100_MiB);
        rig.free(a);
        rig.get(4_MiB);
        auto result = rig.allocator.malloc(150_MiB - 7, 0, Owner::kv, 42);
        REQUIRE_FALSE(result);
        const AllocFailure& f = result.error();
        CHECK(f.requested_bytes == 150_MiB - 7);
        CHECK(f.rounded_bytes == 150_MiB);
        CHECK(f.owner == Owner::kv);
        CHECK(f.process_bytes == 250_MiB);
        CHECK(f.largest_free_block_bytes == 96_MiB);
        CHECK(f.inactive_split_bytes == 96_MiB);
        CHECK(f.pending_free_bytes == 0);
        CHECK(f.num_alloc_retries == 1);
        CHECK_FALSE(f.capped);
        CHECK(f.device.call == DeviceCall::malloc);
    }

    TEST_CASE("messages: memory_summary is the table people know") {
        Rig rig;
        rig.get(100_MiB);
        rig.get(513);
        const u64 gone = rig.get(30_MiB);
        rig.free(gone);
        const std::string expected =
            "|===========================================================================|\n"
            "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
            "|---------------------------------------------------------------------------|\n"
            "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |\n"
            "|===========================================================================|\n"
            "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Allocated memory      | 102401 KiB | 133121 KiB | 133121 KiB |  30720 KiB |\n"
            "|       from large pool | 102400 KiB | 133120 KiB | 133120 KiB |  30720 KiB |\n"
            "|       from small pool |      1 KiB |      1 KiB |      1 KiB |      0 KiB |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Active memory         | 102401 KiB | 133121 KiB | 133121 KiB |  30720 KiB |\n"
            "|       from large pool | 102400 KiB | 133120 KiB | 133120 KiB |  30720 KiB |\n"
            "|       from small pool |      1 KiB |      1 KiB |      1 KiB |      0 KiB |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Requested memory      | 102400 KiB | 133120 KiB | 133120 KiB |  30720 KiB |\n"
            "|       from large pool | 102400 KiB | 133120 KiB | 133120 KiB |  30720 KiB |\n"
            "|       from small pool |      0 KiB |      0 KiB |      0 KiB |      0 KiB |\n"
            "|---------------------------------------------------------------------------|\n"
            "| GPU reserved memory   | 135168 KiB | 135168 KiB | 135168 KiB |      0 B   |\n"
            "|       from large pool | 133120 KiB | 133120 KiB | 133120 KiB |      0 B   |\n"
            "|       from small pool |   2048 KiB |   2048 KiB |   2048 KiB |      0 B   |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Non-releasable memory |   2047 KiB |   2047 KiB |   2047 KiB |      0 B   |\n"
            "|       from large pool |      0 KiB |      0 KiB |      0 KiB |      0 B   |\n"
            "|       from small pool |   2047 KiB |   2047 KiB |   2047 KiB |      0 B   |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Allocations           |       2    |       3    |       3    |       1    |\n"
            "|       from large pool |       1    |       2    |       2    |       1    |\n"
            "|       from small pool |       1    |       1    |       1    |       0    |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Active allocs         |       2    |       3    |       3    |       1    |\n"
            "|       from large pool |       1    |       2    |       2    |       1    |\n"
            "|       from small pool |       1    |       1    |       1    |       0    |\n"
            "|---------------------------------------------------------------------------|\n"
            "| GPU reserved segments |       3    |       3    |       3    |       0    |\n"
            "|       from large pool |       2    |       2    |       2    |       0    |\n"
            "|       from small pool |       1    |       1    |       1    |       0    |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Non-releasable allocs |       1    |       1    |       1    |       0    |\n"
            "|       from large pool |       0    |       0    |       0    |       0    |\n"
            "|       from small pool |       1    |       1    |       1    |       0    |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Oversize allocations  |       0    |       0    |       0    |       0    |\n"
            "|---------------------------------------------------------------------------|\n"
            "| Oversize GPU segments |       0    |       0    |       0    |       0    |\n"
            "|===========================================================================|\n";
        CHECK(memory_summary(rig.stats()) == expected);
    }

    TEST_CASE("messages: memory_summary changes units at 768 and 750 thousand") {
        AllocatorStats stats;
        auto& bytes = stats.allocated_bytes[kStatAll];
        bytes.current = 768 * 1024 - 1;
        bytes.peak = 768 * 1024;
        bytes.allocated = i64{768} * 1024 * 1024;
        bytes.freed = i64{5} << 50;
        stats.allocation[kStatAll].current = 749'999;
        stats.allocation[kStatAll].peak = 750'000;
        stats.allocation[kStatAll].allocated = 750'000'000;
        const std::string text = memory_summary(stats, 12);
        CHECK(
            text.find(
                "| Allocated memory      | 786431 B   |    768 KiB |    768 MiB |   5120 TiB |") !=
            std::string::npos);
        CHECK(
            text.find(
                "| Allocations           |  749999    |     750 K  |     750 M  |       0    |") !=
            std::string::npos);
        CHECK(text.find("device ID 12") != std::string::npos);
    }
}
