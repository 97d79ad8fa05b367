// The real chip's host code on the fake runtime: its books, its limit, its faults, its measurements.
#include <doctest/doctest.h>

#include "kernels/cuda/nvidia_smi.hpp"
#include "tests/cuda/scenario.hpp"

using namespace oomlab;
using namespace oomlab::test;

TEST_CASE("cuda: opening reads the card and makes no context") {
    FakeCuda fake;
    auto device = open_fake(fake);
    CHECK(device->props().name == "Fake GPU");
    CHECK(device->props().granularity_bytes == 2 * kMiB);
    CHECK(device->props().computes);
    CHECK_FALSE(device->props().simulated);
    CHECK(device->props().has_bf16);
    CHECK(device->props().peak_flops_16 == doctest::Approx(312e12).epsilon(0.01));   // A100's figures
    CHECK(device->props().peak_bytes_per_s == doctest::Approx(2.04e12).epsilon(0.01));
    CHECK_FALSE(fake.has_context());
}

TEST_CASE("cuda: without a driver or a card or cuBLAS there is an environment error with the reason") {
    FakeCuda fake;
    fake.driver_error = 35;
    auto none = cuda::open_device(fake, fake, {});
    REQUIRE_FALSE(none.has_value());
    CHECK(exit_code(none.error()) == 3);
    CHECK(none.error().message == "cuda:0: CUDA driver version is insufficient for CUDA runtime "
                                  "version (35: cudaErrorInsufficientDriver)");
    CHECK(cuda::probe(fake, 0).find(R"("usable":false,"error":35)") != std::string::npos);
    fake.driver_error = 0;
    auto third = cuda::open_device(fake, fake, {.index = 2});
    REQUIRE_FALSE(third.has_value());
    CHECK(third.error().message == "cuda:2: there is no such card; the driver sees 1");
    fake.no_blas = "libcublas.so.13 was not found";
    auto blas = cuda::open_device(fake, fake, {});
    REQUIRE_FALSE(blas.has_value());
    CHECK(blas.error().message == "cuda:0: libcublas.so.13 was not found");
}

TEST_CASE("cuda: the probe makes no context and prints one line") {
    FakeCuda fake(16 * kGiB);
    fake.others_bytes = 4 * kGiB;
    CHECK(cuda::probe(fake, 0) ==
          R"({"usable":true,"index":0,"name":"Fake GPU","total_bytes":17179869184,)"
          R"("free_bytes":12884901888,"compute_capability":"8.0","driver":"13.0","cublas":true})");
    CHECK_FALSE(fake.has_context());
}

TEST_CASE("cuda: context and modules and library are measured as they appear") {
    for (const bool has_smi : {true, false}) {
        FakeCuda fake;
        fake.has_smi = has_smi;
        auto device = open_fake(fake);
        REQUIRE(device->create_context().has_value());
        // 300 + 6 + 24 MiB and the workspace of 8519680 B in whole pages
        CHECK(device->context_bytes() == 340 * kMiB);
        const auto info = device->memory().mem_info();
        REQUIRE(info.has_value());
        CHECK(info->total_bytes - info->free_bytes == 340 * kMiB);
        CHECK(info->other_processes_bytes == 0);
    }
}

TEST_CASE("cuda: memory of other processes is what is used and not ours") {
    FakeCuda fake;
    fake.others_bytes = 3 * kGiB;
    auto device = open_fake(fake);
    REQUIRE(device->memory().malloc(100 * kMiB).has_value());
    REQUIRE(device->memory().create(20 * kMiB).has_value());
    CHECK(device->memory().mem_info()->other_processes_bytes == 3 * kGiB);
    fake.others_bytes = 4 * kGiB;
    CHECK(device->memory().mem_info()->other_processes_bytes == 4 * kGiB);
    CHECK(device->context_bytes() == 340 * kMiB);
}

TEST_CASE("cuda: without nvidia-smi a used card is not taken for our context") {
    FakeCuda fake;
    fake.has_smi = false;
    fake.others_bytes = 3 * kGiB;
    auto device = open_fake(fake);
    REQUIRE(device->create_context().has_value());
    CHECK(device->context_bytes() == (512 + 40) * kMiB);
    CHECK(device->memory().mem_info()->other_processes_bytes == 3 * kGiB - 212 * kMiB);
}

TEST_CASE("cuda: another process takes the memory between two calls") {
    FakeCuda fake(4 * kGiB);
    auto device = open_fake(fake);
    const auto info = device->memory().mem_info();
    REQUIRE(info.has_value());
    fake.before_call = [&](const std::string& name) {
        if (name == "malloc") fake.others_bytes = 3 * kGiB;
    };
    const auto refused = device->memory().malloc(info->free_bytes / 2);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().out_of_memory());
    CHECK(refused.error().bytes == info->free_bytes / 2);
    CHECK(device->memory().mem_info()->other_processes_bytes == 3 * kGiB);
    CHECK(device->memory().malloc(kMiB).has_value());   // not sticky
}

TEST_CASE("cuda: the memory limit refuses by itself and says so") {
    FakeCuda fake(80 * kGiB);
    auto device = open_fake(fake, 4 * kGiB);
    const auto info = device->memory().mem_info();
    REQUIRE(info.has_value());
    CHECK(info->total_bytes == 4 * kGiB);
    CHECK(info->free_bytes == 4 * kGiB - 340 * kMiB);
    const u64 asked = fake.count("malloc");
    const auto refused = device->memory().malloc(4 * kGiB);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().out_of_memory());
    CHECK(refused.error().detail == "memory_limit of 4 GiB");
    CHECK(fake.count("malloc") == asked);   // the card was not asked
    const auto pages = device->memory().create(4 * kGiB);
    REQUIRE_FALSE(pages.has_value());
    CHECK(pages.error().call == DeviceCall::create);
    CHECK_FALSE(device->grow_outside(4 * kGiB).has_value());
    CHECK(device->memory().malloc(2 * kGiB).has_value());
    CHECK(device->memory().mem_info()->free_bytes == 2 * kGiB - 340 * kMiB);
}

TEST_CASE("cuda: physical memory lives until its handle and its last mapping are gone") {
    FakeCuda fake;
    auto device = open_fake(fake);
    DeviceMemory& memory = device->memory();
    const u64 page = 2 * kMiB;
    const u64 before = memory.mem_info()->free_bytes;
    const auto range = memory.reserve(4 * page);
    const auto handle = memory.create(page);
    REQUIRE((range.has_value() && handle.has_value()));
    REQUIRE(memory.map(*range, page, *handle).has_value());
    REQUIRE(memory.destroy(*handle).has_value());
    CHECK(memory.mem_info()->free_bytes == before - page);
    CHECK(memory.mem_info()->other_processes_bytes == 0);
    REQUIRE(memory.unmap(*range, page).has_value());
    CHECK(memory.mem_info()->free_bytes == before);
    CHECK(memory.mem_info()->other_processes_bytes == 0);
    CHECK_FALSE(memory.create(page + 1).has_value());
    CHECK_FALSE(memory.reserve(0).has_value());
}

TEST_CASE("cuda: a mapping that cannot be made accessible is undone") {
    FakeCuda fake;
    auto device = open_fake(fake);
    DeviceMemory& memory = device->memory();
    const auto range = memory.reserve(2 * kMiB);
    const auto handle = memory.create(2 * kMiB);
    fake.plan({.nth = 1, .error = 2, .only = "mem_set_access"});
    const auto mapped = memory.map(*range, 2 * kMiB, *handle);
    REQUIRE_FALSE(mapped.has_value());
    CHECK(mapped.error().detail == "cuMemSetAccess");
    CHECK(memory.map(*range, 2 * kMiB, *handle).has_value());
}

TEST_CASE("cuda: the memory of a graph is measured at its instantiation") {
    FakeCuda fake;
    auto device = open_fake(fake);
    const auto capture = [&] {
        REQUIRE(device->graphs().begin_capture(0).has_value());
        return device->graphs().end_capture(0);
    };
    const auto graph = capture();
    REQUIRE(graph.has_value());
    CHECK(device->graph_bytes() == 10 * kMiB);
    fake.others_bytes = device->memory().mem_info()->free_bytes - 4 * kMiB;
    const auto refused = capture();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().call == DeviceCall::instantiate);
    CHECK(refused.error().out_of_memory());
    REQUIRE(device->graphs().destroy_graph(*graph).has_value());
    CHECK(device->graph_bytes() == 0);
    CHECK(capture().has_value());
}

TEST_CASE("cuda: a captured op runs when its graph is launched and not before") {
    FakeCuda fake;
    auto device = open_fake(fake);
    const auto x = device->memory().malloc(64);
    REQUIRE(x.has_value());
    const u64 before = *device->ops().checksum(*x, 64);
    REQUIRE(device->graphs().begin_capture(0).has_value());
    REQUIRE(device->ops().fill({.out = *x, .elements = 32, .seed = 9}).has_value());
    const auto graph = device->graphs().end_capture(0);
    REQUIRE(graph.has_value());
    CHECK(*device->ops().checksum(*x, 64) == before);
    REQUIRE(device->graphs().launch_graph(*graph, 0).has_value());
    CHECK(*device->ops().checksum(*x, 64) != before);
}

TEST_CASE("cuda: provoked faults are those of CUDA and sticky as they are") {
    for (const DeviceErrc code : {DeviceErrc::illegal_address, DeviceErrc::device_assert}) {
        FakeCuda fake;
        auto device = open_fake(fake);
        const auto fault = device->provoke(code);
        REQUIRE_FALSE(fault.has_value());
        CHECK(fault.error().code == code);
        CHECK(device->memory().malloc(64).error().code == code);
        CHECK(device->end_step().error().code == code);
        CHECK(device->create_context().error().code == code);
    }
    FakeCuda fake;
    auto device = open_fake(fake);
    CHECK(device->provoke(DeviceErrc::invalid_configuration).error().code ==
          DeviceErrc::invalid_configuration);
    CHECK(device->memory().malloc(64).has_value());
    CHECK(device->provoke(DeviceErrc::ecc_uncorrectable).error().code == DeviceErrc::not_supported);
}

TEST_CASE("cuda: a library that cannot allocate leaves the card as it was") {
    FakeCuda fake;
    auto device = open_fake(fake);
    const u64 before = device->memory().mem_info()->free_bytes;
    const auto fault = device->provoke(DeviceErrc::memory_allocation);
    REQUIRE_FALSE(fault.has_value());
    CHECK(fault.error().call == DeviceCall::create_blas);
    CHECK(fault.error().out_of_memory());
    CHECK(fault.error().detail == "CUBLAS_STATUS_ALLOC_FAILED");
    CHECK(device->memory().mem_info()->free_bytes == before);
}

TEST_CASE("cuda: cuBLAS failing after a fault is told as the fault") {
    FakeCuda fake;
    auto device = open_fake(fake);
    const auto x = device->memory().malloc(4096);
    fake.plan({.nth = 1, .error = 700, .only = "fill"});
    // The launch fails behind our back, as an asynchronous fault does.
    FakeCuda::Plan none;
    CHECK(fake.fill({.out = *x, .elements = 1}, nullptr) == 700);
    fake.plan(none);
    const auto product = device->ops().matmul({.in = *x, .weight = *x, .out = *x, .rows = 1, .k = 8,
                                               .n = 8});
    REQUIRE_FALSE(product.has_value());
    CHECK(product.error().code == DeviceErrc::illegal_address);
    CHECK(product.error().call == DeviceCall::matmul);
}

TEST_CASE("cuda: products that cuBLAS has not are refused before it is asked") {
    FakeCuda fake;
    auto device = open_fake(fake);
    REQUIRE(device->create_context().has_value());
    MatmulArgs a{.in = 512, .weight = 512, .out = 512, .rows = 1, .k = 1, .n = 1,
                 .in_type = DType::fp8};
    CHECK(device->ops().matmul(a).error().code == DeviceErrc::not_supported);
    a.in_type = DType::bf16;
    a.rows = u64{1} << 31;
    CHECK(device->ops().matmul(a).error().code == DeviceErrc::invalid_value);
    CHECK(fake.count("blas_gemm") == 0);
}

TEST_CASE("cuda: an op that is cost only launches nothing") {
    FakeCuda fake;
    auto device = open_fake(fake);
    REQUIRE(device->create_context().has_value());
    const u64 before = fake.calls();
    CHECK(device->ops().matmul({.rows = 4, .k = 8, .n = 8}).has_value());
    CHECK(device->ops().rms_norm({.rows = 4, .width = 8}).has_value());
    CHECK(device->ops().attention({.rows = 4, .seqs = 1}).has_value());
    CHECK(device->ops().account({.flops = 1e12}).has_value());
    CHECK(fake.calls() == before);
}

TEST_CASE("cuda: time is that of the machine since the opening") {
    FakeCuda fake;
    auto device = open_fake(fake);
    CHECK(device->now_s() == 0);
    device->wait_until_s(2.5);
    CHECK(device->now_s() == 2.5);
}

TEST_CASE("cuda: lists of nvidia-smi are read and foreign lines skipped") {
    const auto list = cuda::parse_processes("1234, 567\n 99 , 1\nNo running processes found\n5, [N/A]\n");
    REQUIRE(list.size() == 3);
    CHECK(list[0].pid == 1234);
    CHECK(list[0].bytes == 567 * kMiB);
    CHECK(list[1].bytes == kMiB);
    CHECK(list[2].bytes == 0);
    CHECK(cuda::parse_processes("").empty());
    CHECK(cuda::parse_processes("1,99999999999999999999\n")[0].bytes == 0);
    CHECK(cuda::parse_used_bytes("412\n") == 412 * kMiB);
    CHECK_FALSE(cuda::parse_used_bytes("[N/A]\n").has_value());
    CHECK_FALSE(cuda::parse_used_bytes("").has_value());
}
