// The real chip as a Device: the contract that every chip keeps, products through cuBLAS, and the
// allocator on real memory beside its simulated twin.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "kernels/cuda/open_cuda.hpp"
#include "kernels/sim/sim_device.hpp"
#include "labs/server/memory/caching_allocator.hpp"
#include "tests/device/device_contract.hpp"
#include "tests/ops/arena.hpp"

using namespace oomlab;
using namespace oomlab::test;

namespace {

std::unique_ptr<Device> open_card(u64 memory_limit_bytes = 0) {
    auto device = open_cuda_device(0, memory_limit_bytes);
    REQUIRE(device.has_value());
    return std::move(*device);
}

template <class In, class Out>
void check_matmul(u64 rows, u64 k, u64 n) {
    auto device = open_card();
    Prng prng(41);
    const auto in = random_values<In>(prng, rows * k, 1);
    const auto weight = random_values<In>(prng, n * k, 1);
    Arena h;
    MatmulArgs want{.in = h.put(in), .weight = h.put(weight), .out = h.reserve(rows * n * sizeof(Out)),
                    .rows = rows, .k = k, .n = n, .in_type = kType<In>, .out_type = kType<Out>};
    host::matmul(want, h.at());
    MatmulArgs got = want;
    const auto put = [&](const auto& values) {
        const u64 bytes = values.size() * sizeof(values[0]);
        const auto address = device->memory().malloc(bytes);
        REQUIRE(address.has_value());
        REQUIRE(device->memory().copy_to_device(*address, values.data(), bytes).has_value());
        return *address;
    };
    got.in = put(in);
    got.weight = put(weight);
    std::vector<Out> result(rows * n);
    got.out = put(result);
    REQUIRE(device->ops().matmul(got).has_value());
    REQUIRE(device->memory()
                .copy_to_host(static_cast<void*>(result.data()), got.out, rows * n * sizeof(Out))
                .has_value());
    const auto expected = h.get<Out>(want.out, rows * n);
    for (u64 i = 0; i < rows * n; ++i) {
        const double w = static_cast<double>(number::to_float(expected[i]));
        const double g = static_cast<double>(number::to_float(result[i]));
        // another order of k products of at most 1, and both results rounded
        REQUIRE(std::abs(g - w) <= 2 * kHalfStep<Out> * std::abs(w) + 1e-6 * static_cast<double>(k));
    }
}

}  // namespace

TEST_CASE("card: it keeps the contract of a device") {
    contract::check_device({.open = [] { return open_card(); }, .may_poison = false});
}

TEST_CASE("card: it keeps the contract under a memory limit") {
    contract::check_device({.open = [] { return open_card(2 * kGiB); }, .may_poison = false});
}

TEST_CASE("card: products through cuBLAS agree with those of the host") {
    check_matmul<float, float>(5, 64, 24);
    check_matmul<number::f16, number::f16>(33, 128, 40);
    check_matmul<number::bf16, number::bf16>(33, 128, 40);
    check_matmul<number::bf16, float>(7, 256, 16);
    check_matmul<std::int8_t, std::int32_t>(8, 64, 16);
}

TEST_CASE("card: context and graphs are measured and within what cards are known to take") {
    auto device = open_card();
    REQUIRE(device->create_context().has_value());
    MESSAGE("context with modules and cuBLAS: ", human_bytes(device->context_bytes()));
    CHECK(device->context_bytes() > 50 * kMiB);
    CHECK(device->context_bytes() < 3 * kGiB);
    const auto stream = device->streams().create_stream();
    const auto x = device->memory().malloc(kMiB);
    REQUIRE((stream.has_value() && x.has_value()));
    REQUIRE(device->graphs().begin_capture(*stream).has_value());
    for (u64 i = 0; i < 50; ++i) {
        REQUIRE(device->ops().fill({.out = *x, .elements = 1000, .seed = i}).has_value());
    }
    const auto graph = device->graphs().end_capture(*stream);
    REQUIRE(graph.has_value());
    MESSAGE("a graph of 50 kernels: ", human_bytes(device->graph_bytes()));
    REQUIRE(device->graphs().launch_graph(*graph, *stream).has_value());
    REQUIRE(device->end_step().has_value());
}

TEST_CASE("card: the allocator gives the same figures as on the simulated chip") {
    for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:40"}) {
        CAPTURE(conf);
        auto real = open_card();
        auto simulated = open_sim_device(plain_sim_profile());
        CachingAllocator a(*real, *parse_alloc_conf(conf)), b(*simulated, *parse_alloc_conf(conf));
        Prng prng(42);
        std::vector<std::pair<u64, u64>> live;
        for (int step = 0; step < 2000; ++step) {
            if (!live.empty() && prng.chance(0.48)) {
                const u64 victim = prng.below(live.size());
                a.free(live[victim].first);
                b.free(live[victim].second);
                live.erase(live.begin() + static_cast<i64>(victim));
            } else {
                // Sizes never repeat, so that no two free blocks tie and addresses cannot matter.
                const u64 bytes = 512 * (1 + prng.below(prng.chance(0.2) ? 60000 : 3000)) + 1;
                const auto x = a.malloc(bytes);
                const auto y = b.malloc(bytes);
                REQUIRE((x.has_value() && y.has_value()));
                live.push_back({x->address, y->address});
            }
            CAPTURE(step);
            REQUIRE(a.memory_allocated() == b.memory_allocated());
            REQUIRE(a.memory_reserved() == b.memory_reserved());
        }
    }
}
