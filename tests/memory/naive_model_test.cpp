#include <doctest/doctest.h>

#include <map>

#include "kernels/base/prng.hpp"
#include "tests/memory/naive_model.hpp"
#include "tests/memory/rig.hpp"

using namespace oomlab;
using namespace oomlab::testing;

namespace {

naive::Figures figures_of(const CachingAllocator& allocator) {
    const AllocatorStats& s = allocator.stats();
    const auto u = [](const PoolStat& stat) { return static_cast<u64>(stat[kStatAll].current); };
    return {.allocated = u(s.allocated_bytes),
            .reserved = u(s.reserved_bytes),
            .requested = u(s.requested_bytes),
            .split_bytes = u(s.inactive_split_bytes),
            .segments = u(s.segment),
            .splits = u(s.inactive_split),
            .allocations = u(s.allocation)};
}

// Segment by segment, block by block: the same sizes in the same order, the same ones in use.
void same_arrangement(const CachingAllocator& allocator, const naive::Model& model) {
    const auto segments = allocator.snapshot();
    REQUIRE(segments.size() == model.segments.size());
    for (std::size_t s = 0; s < segments.size(); ++s) {
        REQUIRE(segments[s].small_pool == model.segments[s].small);
        REQUIRE(segments[s].blocks.size() == model.segments[s].pieces.size());
        for (std::size_t b = 0; b < segments[s].blocks.size(); ++b) {
            REQUIRE(segments[s].blocks[b].bytes == model.segments[s].pieces[b].bytes);
            REQUIRE(segments[s].blocks[b].active == model.segments[s].pieces[b].used);
        }
    }
}

u64 draw_size(Prng& prng) {
    // Every decade, with the borders of the rules among them.
    static constexpr u64 kBorders[] = {512, 1_MiB, 2_MiB, 10_MiB, 11_MiB, 20_MiB, 200_MiB};
    if (prng.chance(0.2)) return kBorders[prng.below(7)] + prng.below(3) * 512 - 512 + 1;
    const u64 log2 = prng.between(4, 26);
    return prng.between(u64{1} << log2, u64{2} << log2);
}

u64 drive(u64 seed, const char* conf, const naive::Settings& settings, int steps) {
    CAPTURE(seed);
    CAPTURE(conf);
    Prng prng(seed);
    const auto device = open_sim_device(plain_sim_profile(settings.capacity));
    CachingAllocator allocator(*device, conf_of(conf));
    naive::Model model(settings);
    std::map<u64, u64> live;  // key to address
    u64 key = 0;
    for (int i = 0; i < steps; ++i) {
        CAPTURE(i);
        const bool growing = i / 120 % 2 == 0;
        if (prng.chance(0.01)) {
            allocator.empty_cache();
            model.release_all();
        } else if (live.empty() || prng.chance(growing ? 0.65 : 0.35)) {
            const u64 bytes = draw_size(prng);
            const auto a = allocator.malloc(bytes);
            const bool served = model.malloc(key, bytes);
            REQUIRE(a.has_value() == served);
            if (served) live[key] = a->address;
            ++key;
        } else {
            auto it = live.begin();
            std::advance(it, static_cast<std::ptrdiff_t>(prng.below(live.size())));
            allocator.free(it->second);
            model.free(it->first);
            live.erase(it);
        }
        REQUIRE(figures_of(allocator) == model.figures());
        REQUIRE(allocator.stats().num_alloc_retries == static_cast<i64>(model.retries));
        REQUIRE(allocator.stats().num_ooms == static_cast<i64>(model.ooms));
        if (i % 7 == 0) same_arrangement(allocator, model);
    }
    same_arrangement(allocator, model);
    return model.retries;
}

}  // namespace

TEST_SUITE("naive model") {
    TEST_CASE("naive model: default rules, figure by figure") {
        u64 retries = 0;
        for (u64 seed = 1; seed <= 8; ++seed) {
            retries += drive(seed, "", {.capacity = 1_GiB, .cap = {}}, 1500);
        }
        // Runs that never met the end of memory would prove little.
        CHECK(retries > 8);
    }
    TEST_CASE("naive model: under a cap") {
        for (u64 seed = 11; seed <= 14; ++seed) {
            drive(seed, "per_process_memory_fraction:0.4",
                  {.capacity = 2_GiB, .cap = static_cast<u64>(0.4 * 2 * 1024 * 1048576.0)}, 1500);
        }
    }
    TEST_CASE("naive model: with a limit on splitting") {
        for (u64 seed = 21; seed <= 26; ++seed) {
            drive(seed, "max_split_size_mb:50", {.capacity = 1_GiB, .cap = {}, .max_split = 50_MiB},
                  1500);
        }
        for (u64 seed = 27; seed <= 29; ++seed) {
            drive(seed, "max_split_size_mb:20,max_non_split_rounding_mb:5",
                  {.capacity = 1_GiB, .cap = {}, .max_split = 20_MiB, .non_split_rounding = 5_MiB},
                  1500);
        }
    }
    TEST_CASE("naive model: rounding to parts of a power of two") {
        for (u64 seed = 31; seed <= 33; ++seed) {
            drive(seed, "roundup_power2_divisions:8",
                  {.capacity = 1_GiB, .cap = {}, .divisions = 8}, 1500);
        }
    }
}
