// The trend test on generated series: false alarms, detection, coverage of the interval.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/diagnosis/series.hpp"

using namespace oomlab;
using namespace oomlab::diagnosis;
using test::kMB;
using test::SeriesSpec;

namespace {

struct Score {
    int runs = 0, rising = 0, covered = 0, short_ = 0, level = 0;
};

Score run_cell(const SeriesSpec& spec, int runs, std::uint64_t seed) {
    Score score;
    for (int i = 0; i < runs; ++i) {
        Prng prng = Prng(seed).fork(spec.shape + std::to_string(i));
        const Trend t = find_trend(test::make_series(spec, prng));
        ++score.runs;
        score.rising += t.rising();
        score.short_ += t.kind == TrendKind::not_long_enough;
        score.level += t.kind == TrendKind::level_change;
        score.covered +=
            t.low_per_hour <= spec.leak_per_hour && spec.leak_per_hour <= t.high_per_hour;
    }
    return score;
}

// OOMLAB_TREND_RUNS raises the number of series a cell for a closer look; OOMLAB_VERBOSE prints
// cells.
int runs(int usual) {
    return std::getenv("OOMLAB_TREND_RUNS") != nullptr ? std::atoi(std::getenv("OOMLAB_TREND_RUNS"))
                                                       : usual;
}

struct Window {
    double hours, every_s;
};
constexpr Window kWindows[] = {{1, 10}, {6, 10}, {6, 60}, {24, 60}};

void print(const std::string& shape, const Window& w, const Score& s) {
    if (std::getenv("OOMLAB_VERBOSE") == nullptr) return;
    const double n = s.runs;
    std::printf(
        "%-10s %4.0f h every %2.0f s: rising %.3f, not long enough %.2f, level change %.2f, "
        "interval covers %.2f\n",
        shape.c_str(), w.hours, w.every_s, s.rising / n, s.short_ / n, s.level / n, s.covered / n);
}

}  // namespace

TEST_CASE("trend: at most 3 in 100 false alarms in every shape without a leak") {
    int series = 0;
    for (const std::string& shape : test::all_shapes()) {
        Score all;
        for (const Window& w : kWindows) {
            SeriesSpec spec;
            spec.shape = shape;
            spec.hours = w.hours;
            spec.every_s = w.every_s;
            const Score s = run_cell(spec, runs(60), 1);
            print(shape, w, s);
            all.runs += s.runs, all.rising += s.rising, all.covered += s.covered;
        }
        series += all.runs;
        CHECK_MESSAGE(all.rising <= 0.03 * all.runs,
                      shape << ": " << all.rising << " of " << all.runs);
        CHECK_MESSAGE(all.covered >= 0.88 * all.runs,
                      shape << ": the interval covers 0 in " << all.covered << " of " << all.runs);
    }
    MESSAGE(series << " series without a leak");
    CHECK(series >= 2000);
}

TEST_CASE("trend: 50 MB an hour over six hours is found in 30 MB of noise") {
    for (const std::string& shape : test::all_shapes()) {
        const Window w{6, 10};
        SeriesSpec spec;
        spec.shape = shape;
        spec.leak_per_hour = 50 * kMB;
        const Score s = run_cell(spec, runs(60), 2);
        print(shape, w, s);
        // A load that walks by ten times the noise hides a leak of this size for longer.
        const double least = shape == "load walk" ? 0.6 : shape == "seasonal" ? 0.9 : 0.95;
        CHECK_MESSAGE(s.rising >= least * s.runs, shape << ": " << s.rising << " of " << s.runs);
    }
}

TEST_CASE("trend: sparse samples still find it in the plain shapes") {
    for (const char* shape :
         {"white", "ar 0.8", "sawtooth", "warm-up", "bursts", "missing", "constant"}) {
        SeriesSpec spec;
        spec.shape = shape;
        spec.every_s = 60;
        spec.leak_per_hour = 50 * kMB;
        const Score s = run_cell(spec, runs(60), 3);
        CHECK_MESSAGE(s.rising >= 0.95 * s.runs, shape << ": " << s.rising << " of " << s.runs);
    }
}

TEST_CASE("trend: slope, interval and time to the limit are in the caller's units") {
    SeriesSpec spec;
    spec.leak_per_hour = 400 * kMB;
    Prng prng(5);
    const Trend t = find_trend(test::make_series(spec, prng));
    REQUIRE(t.rising());
    CHECK(t.slope_per_hour == doctest::Approx(400 * kMB).epsilon(0.03));
    CHECK(t.low_per_hour <= 400 * kMB);
    CHECK(t.high_per_hour >= 400 * kMB);
    const TimeToLimit left = time_to_limit(t, 20400 * kMB, 24400 * kMB);
    CHECK(left.seconds == doctest::Approx(36000).epsilon(0.03));
    CHECK(left.earliest_s <= left.seconds);
    CHECK(left.latest_s >= left.seconds);
    CHECK(time_to_limit(t, 30000 * kMB, 24400 * kMB).seconds < 0);
}

TEST_CASE("trend: restarts are found and the growth between them counts") {
    SeriesSpec spec;
    spec.shape = "restarts";
    spec.hours = 12;
    spec.leak_per_hour = 100 * kMB;
    Prng prng(6);
    const Trend t = find_trend(test::make_series(spec, prng));
    CHECK(t.rising());
    CHECK(!t.restarts_s.empty());
    CHECK(t.slope_per_hour == doctest::Approx(100 * kMB).epsilon(0.15));
}

TEST_CASE("trend: short, empty and odd input") {
    CHECK(find_trend({}).kind == TrendKind::not_long_enough);
    std::vector<TrendSample> few;
    for (int i = 0; i < 20; ++i) few.push_back({i * 10.0, 1e9 + i * 1e7});
    const Trend t = find_trend(few);
    CHECK(t.kind == TrendKind::not_long_enough);
    CHECK(t.more_seconds_needed > 0);
    std::vector<TrendSample> odd(500, {NAN, NAN});
    CHECK(find_trend(odd).kind == TrendKind::not_long_enough);
    std::vector<TrendSample> same;
    for (int i = 0; i < 500; ++i) same.push_back({5.0, 1e9});
    CHECK(find_trend(same).kind == TrendKind::not_long_enough);
    std::vector<TrendSample> backwards;
    for (int i = 500; i-- > 0;) backwards.push_back({i * 60.0, 1e9 + i * 1e6});
    CHECK(find_trend(backwards).rising());
    std::vector<TrendSample> zero;
    for (int i = 0; i < 500; ++i) zero.push_back({i * 60.0, 0});
    CHECK(find_trend(zero).kind == TrendKind::flat);
}

TEST_CASE("trend: growth within one quantum of the allocator is none") {
    std::vector<TrendSample> slow;
    for (int i = 0; i < 600; ++i) slow.push_back({i * 60.0, 1e9 + i * 1000.0});
    CHECK(find_trend(slow).kind == TrendKind::flat);
    TrendOptions fine;
    fine.quantum = 1000;
    CHECK(find_trend(slow, fine).rising());
}
