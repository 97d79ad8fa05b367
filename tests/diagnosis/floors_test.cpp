// Floors over completed requests: shapes that are a rise, and shapes that only look like one.
#include <doctest/doctest.h>

#include "kernels/base/prng.hpp"
#include "labs/diagnosis/floors.hpp"

using namespace oomlab;
using namespace oomlab::diagnosis;
using namespace oomlab::literals;

namespace {
template <class Value>
FloorSeries series_of(u64 requests, Value&& value) {
    FloorSeries s;
    for (u64 i = 0; i < requests; ++i) s.add(i, static_cast<i64>(i) * 500'000, value(i));
    return s;
}
}  // namespace

TEST_SUITE("floors") {

TEST_CASE("bins stay bounded and keep every minimum") {
    const FloorSeries s = series_of(100'000, [](u64 i) { return i == 77'777 ? 1_MiB : 9_MiB; });
    CHECK(s.bins().size() <= FloorSeries::kBins);
    u64 low = UINT64_MAX, last = 0;
    for (const auto& b : s.bins()) {
        low = std::min(low, b.low);
        CHECK(b.completed >= last);
        last = b.completed;
    }
    CHECK(low == 1_MiB);
    CHECK(last == 99'999);
}

TEST_CASE("a straight line rises, and says by how much a request") {
    const Rise r = rise_of(series_of(1000, [](u64 i) { return 10_GiB + i * 300_KiB; }), 20_MiB);
    CHECK(r.risen);
    CHECK(r.bytes_per_request == doctest::Approx(300.0 * 1024).epsilon(0.02));
}

TEST_CASE("flat, a single step, a warm-up and a sawtooth do not rise") {
    CHECK(!rise_of(series_of(1000, [](u64) { return 10_GiB; }), 20_MiB).risen);
    const Rise step = rise_of(series_of(1000, [](u64 i) { return i < 600 ? 10_GiB : 11_GiB; }), 20_MiB);
    CHECK(!step.risen);
    CHECK(step.level_change);
    CHECK(!rise_of(series_of(1000, [](u64 i) { return 10_GiB + std::min<u64>(i, 100) * 8_MiB; }), 20_MiB).risen);
    CHECK(!rise_of(series_of(1000, [](u64 i) { return 10_GiB + (i % 50) * 8_MiB; }), 20_MiB).risen);
}

TEST_CASE("noise alone does not rise, for any seed") {
    for (u64 seed = 1; seed <= 40; ++seed) {
        Prng prng(seed);
        const Rise r = rise_of(series_of(2000, [&](u64) { return 10_GiB + prng.below(400_MiB); }), 20_MiB);
        CHECK_MESSAGE(!r.risen, "seed ", seed);
    }
}

TEST_CASE("too short is never a rise") {
    for (u64 n = 0; n < 4; ++n) {
        CHECK(!rise_of(series_of(n, [](u64 i) { return i * 1_GiB; }), 20_MiB).risen);
    }
}

}  // TEST_SUITE
