#include <doctest/doctest.h>

#include "kernels/base/prng.hpp"
#include "ui/view_model/growth.hpp"

using namespace oomlab;
using namespace oomlab::view;

namespace {
std::vector<Bucket> series(double per_minute_mib, u64 seed) {
    Prng prng(seed);
    std::vector<Bucket> out;
    for (int i = 0; i < 360; ++i) {   // an hour, every ten seconds
        Bucket b;
        b.begin_us = i * 10'000'000LL;
        b.end_us = b.begin_us + 10'000'000;
        const double base = 1000 + per_minute_mib * i / 6.0 + prng.uniform() * 40;
        const u64 low = static_cast<u64>(base * static_cast<double>(kMiB));
        b.value[kAllocated] = {low, low, low + 300 * kMiB};
        out.push_back(b);
    }
    return out;
}
}  // namespace

TEST_CASE("growth: a leak of 5 MiB a minute is found with its interval") {
    const Growth g = growth(series(5, 3), GrowthOf::allocated);
    REQUIRE(g.known);
    CHECK(g.rising());
    CHECK(g.low < 5 * static_cast<double>(kMiB));
    CHECK(g.high > 5 * static_cast<double>(kMiB));
    // 1000 MiB now at 5 a minute: 2000 MiB is met after about 200 minutes.
    const double minutes = static_cast<double>(g.meets_us(2000 * kMiB)) / 60e6;
    CHECK(minutes == doctest::Approx(200).epsilon(0.1));
}

TEST_CASE("growth: noise without a trend is rarely called rising") {
    int rising = 0;
    for (u64 seed = 1; seed <= 100; ++seed)
        if (growth(series(0, seed), GrowthOf::allocated).rising()) ++rising;
    CHECK(rising <= 6);
}

TEST_CASE("growth: too little to say is said to be unknown") {
    const auto all = series(5, 1);
    CHECK_FALSE(growth(std::span(all).first(7), GrowthOf::allocated).known);
    CHECK(growth(std::span(all).first(7), GrowthOf::allocated).meets_us(1) == -1);
}
