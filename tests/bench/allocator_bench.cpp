// What one malloc with its free costs. Every benchmark reports nanoseconds for such a pair.
//
//   bench_allocator --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
//
// warm_mixed       a trace of mixed sizes over a fixed number of live blocks, replaced in random
// order holes_*          N separated free holes; a published pool needs 10 to 154 us there, an
// indexed one
//                  1 to 1.5 us
// random           sizes and lifetimes at random, as RMM's random-allocations benchmark draws them
// activations      the allocations of one transformer layer, again and again
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/base/prng.hpp"
#include "kernels/sim/sim_device.hpp"
#include "labs/server/memory/caching_allocator.hpp"

using namespace oomlab;
using namespace oomlab::literals;

namespace {

constexpr u64 kDeviceBytes = 16 * 1024 * kGiB;
// So many steps are drawn before the clock starts, so that drawing is not measured.
constexpr std::size_t kTraceSteps = 1 << 14;

struct Bench {
    Bench() : device(open_sim_device(plain_sim_profile(kDeviceBytes))), allocator(*device, {}) {}

    u64 get(u64 bytes) {
        auto a = allocator.malloc(bytes);
        OOMLAB_CHECK(a.has_value());
        return a->address;
    }

    std::unique_ptr<Device> device;
    CachingAllocator allocator;
};

// Half of the requests are small; the rest spread over the decades up to 64 MiB.
u64 mixed_size(Prng& prng) {
    const u64 log2 = prng.chance(0.5) ? prng.between(9, 19) : prng.between(20, 25);
    return prng.between(u64{1} << log2, (u64{1} << (log2 + 1)) - 1);
}

struct Step {
    u32 slot;
    u32 bytes;
};

std::vector<Step> replacements(u64 live, Prng& prng) {
    std::vector<Step> steps(kTraceSteps);
    for (Step& step : steps) {
        step = {static_cast<u32>(prng.below(live)), static_cast<u32>(mixed_size(prng))};
    }
    return steps;
}

void warm_mixed(benchmark::State& state) {
    const u64 live = static_cast<u64>(state.range(0));
    Bench bench;
    Prng prng(1);
    std::vector<u64> addresses(live);
    for (u64& address : addresses) address = bench.get(mixed_size(prng));
    const std::vector<Step> steps = replacements(live, prng);
    const auto turn = [&](const Step& step) {
        bench.allocator.free(addresses[step.slot]);
        addresses[step.slot] = bench.get(step.bytes);
    };
    for (int lap = 0; lap < 16; ++lap) {
        for (const Step& step : steps) turn(step);
    }
    std::size_t i = 0;
    for (auto _ : state) {
        turn(steps[i]);
        i = (i + 1) % kTraceSteps;
    }
    state.counters["driver_calls"] = static_cast<double>(bench.allocator.stats().num_device_alloc);
}
BENCHMARK(warm_mixed)->Arg(100)->Arg(1'000)->Arg(10'000)->Arg(100'000);

// N holes of `hole_bytes`, each between live blocks. Returns the live ones.
std::vector<u64> make_holes(Bench& bench, u64 holes, u64 hole_bytes) {
    std::vector<u64> live, dead;
    for (u64 i = 0; i < holes; ++i) {
        dead.push_back(bench.get(hole_bytes));
        live.push_back(bench.get(512));
    }
    for (const u64 address : dead) bench.allocator.free(address);
    return live;
}

// The request fits every hole exactly: the lowest is taken and given back.
void holes_fit(benchmark::State& state) {
    Bench bench;
    make_holes(bench, static_cast<u64>(state.range(0)), 4_KiB);
    for (auto _ : state) bench.allocator.free(bench.get(4_KiB));
}
BENCHMARK(holes_fit)->Arg(4'096)->Arg(16'384)->Arg(65'536);

// The request is larger than every hole: all of them must be passed over.
void holes_too_small(benchmark::State& state) {
    Bench bench;
    make_holes(bench, static_cast<u64>(state.range(0)), 4_KiB);
    bench.allocator.free(bench.get(512_KiB));
    for (auto _ : state) bench.allocator.free(bench.get(512_KiB));
}
BENCHMARK(holes_too_small)->Arg(4'096)->Arg(16'384)->Arg(65'536);

// Holes of all sizes, requests of all sizes: each splits one hole and mends it.
void holes_mixed(benchmark::State& state) {
    Bench bench;
    Prng prng(2);
    std::vector<u64> dead;
    for (i64 i = 0; i < state.range(0); ++i) {
        dead.push_back(bench.get(512 * prng.between(1, 1024)));
        bench.get(512);
    }
    for (const u64 address : dead) bench.allocator.free(address);
    std::vector<u64> sizes(kTraceSteps);
    for (u64& size : sizes) size = 512 * prng.between(1, 1024);
    std::size_t i = 0;
    for (auto _ : state) {
        bench.allocator.free(bench.get(sizes[i]));
        i = (i + 1) % kTraceSteps;
    }
}
BENCHMARK(holes_mixed)->Arg(4'096)->Arg(16'384)->Arg(65'536);

// Equal holes that open and close in random order: the worst case of one tree.
void holes_shuffled(benchmark::State& state) {
    Bench bench;
    const u64 holes = static_cast<u64>(state.range(0));
    Prng prng(3);
    std::vector<u64> blocks;
    for (u64 i = 0; i < 2 * holes; ++i) {
        blocks.push_back(bench.get(4_KiB));
        bench.get(512);
    }
    // Half of them are holes at any time.
    std::vector<u64> live;
    for (const u64 address : blocks) {
        if (prng.chance(0.5)) {
            live.push_back(address);
        } else {
            bench.allocator.free(address);
        }
    }
    std::vector<u32> order(kTraceSteps);
    for (u32& at : order) at = static_cast<u32>(prng.below(live.size()));
    std::size_t i = 0;
    for (auto _ : state) {
        u64& address = live[order[i]];
        bench.allocator.free(address);
        address = bench.get(4_KiB);
        i = (i + 1) % kTraceSteps;
    }
}
BENCHMARK(holes_shuffled)->Arg(4'096)->Arg(16'384)->Arg(65'536);

// RMM's random allocations: sizes uniform up to a maximum, more frees the fuller it is.
void random_sizes(benchmark::State& state) {
    const u64 max_bytes = static_cast<u64>(state.range(0)) * kMiB;
    const u64 capacity = 64 * kGiB;
    Bench bench;
    Prng prng(4);
    std::vector<std::pair<u64, u64>> live;
    u64 used = 0;
    const auto turn = [&] {
        const u64 bytes = prng.between(1, max_bytes);
        const bool full = used + bytes > capacity;
        if (!full && (live.empty() || prng.chance(0.5))) {
            live.emplace_back(bench.get(bytes), bytes);
            used += bytes;
        } else {
            const u64 at = prng.below(live.size());
            bench.allocator.free(live[at].first);
            used -= live[at].second;
            live[at] = live.back();
            live.pop_back();
        }
    };
    for (int i = 0; i < 200'000; ++i) turn();
    for (auto _ : state) {
        turn();
        turn();
    }
}
BENCHMARK(random_sizes)->Arg(1)->Arg(64)->Arg(1024);

// One decode step of an 8 B model by layers: the same tensors come and go in the same order.
void activations(benchmark::State& state) {
    Bench bench;
    constexpr u64 kTokens = 64, kHidden = 4096, kQkv = 6144, kGateUp = 28672, kInner = 14336;
    const u64 residual = bench.get(kTokens * kHidden * 2);
    for (auto _ : state) {
        const u64 normed = bench.get(kTokens * kHidden * 2);
        const u64 qkv = bench.get(kTokens * kQkv * 2);
        bench.allocator.free(normed);
        const u64 attended = bench.get(kTokens * kHidden * 2);
        bench.allocator.free(qkv);
        const u64 projected = bench.get(kTokens * kHidden * 2);
        bench.allocator.free(attended);
        const u64 gate_up = bench.get(kTokens * kGateUp * 2);
        bench.allocator.free(projected);
        const u64 inner = bench.get(kTokens * kInner * 2);
        bench.allocator.free(gate_up);
        bench.allocator.free(inner);
    }
    bench.allocator.free(residual);
    constexpr double kPairs = 6;
    state.counters["pair"] = benchmark::Counter(
        kPairs, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(activations);

}  // namespace

BENCHMARK_MAIN();
