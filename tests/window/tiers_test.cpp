#include <doctest/doctest.h>

#include "ui/view_model/tiers.hpp"

using namespace oomlab;
using namespace oomlab::view;

namespace {
Bucket sample(i64 time_us, u64 value) {
    Bucket b;
    b.begin_us = time_us - 100'000;
    b.end_us = time_us;
    for (auto& e : b.value) e = {value, value, value};
    return b;
}
}  // namespace

TEST_CASE("tiers: a spike of one sample is there at every zoom") {
    Tiers tiers;
    const i64 n = 200'000;   // 5.5 hours at 10 Hz
    for (i64 i = 1; i <= n; ++i) tiers.add(sample(i * 100'000, i == 77'777 ? 1000 : 10));
    for (const std::size_t most : {std::size_t{40}, std::size_t{700}, std::size_t{5000}}) {
        const auto slice = tiers.slice(0, n * 100'000, most);
        CHECK(slice.buckets.size() <= most);
        CHECK(slice.buckets.size() > 0);
        u64 high = 0;
        for (const Bucket& b : slice.buckets) high = std::max(high, b.value[kAllocated].high);
        CHECK(high == 1000);
    }
}

TEST_CASE("tiers: memory stays under its ceiling however long the run") {
    Tiers tiers;
    for (i64 i = 1; i <= 400'000; ++i) tiers.add(sample(i * 10'000'000, 5));
    CHECK(tiers.samples() == 400'000);
    CHECK(tiers.bytes_held() <= Tiers::kTiers * (Tiers::kBuckets + 1) * sizeof(Bucket));
}

TEST_CASE("tiers: the newest minutes are exact, and the beginning is never lost") {
    Tiers tiers;
    const i64 n = 50'000;
    for (i64 i = 1; i <= n; ++i) tiers.add(sample(i * 100'000, static_cast<u64>(i)));
    const auto newest = tiers.slice((n - 100) * 100'000, n * 100'000, 400);
    CHECK(newest.samples_per_bucket == 1);
    CHECK(newest.buckets.back().value[kAllocated].now == static_cast<u64>(n));
    const auto all = tiers.slice(0, n * 100'000, 2000);
    CHECK(all.samples_per_bucket > 1);
    CHECK(all.buckets.front().value[kAllocated].low == 1);
    CHECK(all.buckets.back().value[kAllocated].high == static_cast<u64>(n));
}

TEST_CASE("tiers: buckets follow each other without gap or overlap") {
    Tiers tiers;
    for (i64 i = 1; i <= 3000; ++i) tiers.add(sample(i * 100'000, 1));
    const auto slice = tiers.slice(0, 300'000'000, 900);
    for (std::size_t i = 1; i < slice.buckets.size(); ++i)
        CHECK(slice.buckets[i].begin_us == slice.buckets[i - 1].end_us);
}

TEST_CASE("tiers: the moment asked for is found, before the first there is none") {
    Tiers tiers;
    CHECK_FALSE(tiers.at(5));
    for (i64 i = 1; i <= 100; ++i) tiers.add(sample(i * 100'000, static_cast<u64>(i)));
    CHECK(tiers.at(4'950'000)->value[kAllocated].now == 50);
    CHECK(tiers.at(i64{1} << 60)->value[kAllocated].now == 100);
    CHECK_FALSE(tiers.at(-1));
}
