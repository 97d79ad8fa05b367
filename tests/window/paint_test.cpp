#include <doctest/doctest.h>

#include "tests/support/synthetic_trace.hpp"
#include "tests/support/temp_dir.hpp"
#include "ui/view_model/live_trace.hpp"
#include "ui/window/paint/memory_map.hpp"
#include "ui/window/paint/timeline.hpp"

using namespace oomlab;
using namespace oomlab::paint;

namespace {
u64 count(const Canvas& canvas, std::uint32_t colour) {
    u64 n = 0;
    for (int y = 0; y < canvas.height(); ++y)
        for (int x = 0; x < canvas.width(); ++x) n += canvas.at(x, y) == colour ? 1 : 0;
    return n;
}

std::unique_ptr<view::LiveTrace> run(const test::TempDir& dir, double seconds, bool oom) {
    testing::SyntheticRun options;
    options.seconds = seconds;
    options.ends_in_oom = oom;
    testing::write_synthetic_trace(dir.file("a.omtrace"), options);
    auto live = view::LiveTrace::open(dir.file("a.omtrace"));
    REQUIRE(live);
    return std::move(*live);
}

view::BlockMap small_map() {
    using trace::BlockState;
    view::BlockMap map;
    map.segments.push_back({1 << 20, 64 * kMiB, 0, 3, 0, 0, 0, 0});
    map.blocks.push_back({1 << 20, 32 * kMiB, 7, Owner::weights, BlockState::active, 0});
    map.blocks.push_back({(1 << 20) + 32 * kMiB, 16 * kMiB, 0, Owner::cached, BlockState::free, 0});
    map.blocks.push_back({(1 << 20) + 48 * kMiB, 16 * kMiB, 3, Owner::kv, BlockState::active, 0});
    return map;
}
}  // namespace

TEST_CASE("timeline: each owner takes the share of the picture that it takes of the card") {
    test::TempDir dir;
    const auto live = run(dir, 120, false);
    const view::Model& m = live->model();
    Canvas canvas;
    canvas.resize(400, 200);
    const i64 end = m.last_us();
    paint_stack(canvas, m, {end - 40'000'000, end - 1'000'000, m.total_bytes()}, Palette());
    const double cells = 400 * 200;
    const double weights = static_cast<double>(count(canvas, pack(kBlue))) / cells;
    CHECK(weights == doctest::Approx(16'060'522'496.0 / 23'676'387'328.0).epsilon(0.03));
    const double kv = static_cast<double>(count(canvas, pack(kOrange))) / cells;
    CHECK(kv == doctest::Approx(2296.0 * 2 * 1048576 / 23'676'387'328.0).epsilon(0.06));
}

TEST_CASE("timeline: a failure is a mark over the full height, at its moment") {
    test::TempDir dir;
    const auto live = run(dir, 20, true);
    const view::Model& m = live->model();
    const i64 failed = m.failures().front().time_us;
    Canvas canvas;
    canvas.resize(401, 90);
    const Palette palette;
    paint_stack(canvas, m, {failed - 10'000'000, failed + 10'000'000, m.total_bytes()}, palette);
    const std::uint32_t mark = pack(palette.theme().text);
    for (int y = 0; y < 90; ++y) CHECK(canvas.at(200, y) == mark);
}

TEST_CASE("timeline: an empty canvas and an empty model are painted as nothing") {
    const view::Model empty;
    Canvas canvas;
    const Palette palette;
    canvas.resize(0, 0);
    paint_stack(canvas, empty, {0, 1, 1}, palette);
    canvas.resize(30, 20);
    paint_stack(canvas, empty, {0, 1, 1}, palette);
    for (int lane = 0; lane < static_cast<int>(Lane::count_); ++lane)
        paint_lane(canvas, 0, 20, static_cast<Lane>(lane), empty, {0, 1, 1}, palette);
    CHECK(count(canvas, pack(palette.owner(Owner::weights))) == 0);
}

TEST_CASE("map: pixels answer for the block that they show") {
    const view::BlockMap map = small_map();
    Canvas canvas;
    canvas.resize(200, 60);
    const MapLayout layout = paint_block_map(canvas, map, {}, Palette());
    double seen[3] = {};
    for (int y = 0; y < 60; ++y)
        for (int x = 0; x < 200; ++x) {
            const auto hit = layout.hit(map, x, y);
            if (hit.block >= 0) ++seen[hit.block];
        }
    CHECK(seen[0] > 0);
    CHECK(seen[0] / seen[2] == doctest::Approx(2).epsilon(0.1));
    CHECK(seen[1] / seen[2] == doctest::Approx(1).epsilon(0.1));
    CHECK(layout.hit(map, -1, 0).block == -1);
    CHECK(layout.hit(map, 5000, 5000).block == -1);
}

TEST_CASE("map: a hole too small for what failed is hatched, and plain otherwise") {
    const view::BlockMap map = small_map();
    const Palette palette;
    Canvas plain, hatched;
    plain.resize(200, 60);
    hatched.resize(200, 60);
    MapView ask;
    ask.asked_bytes = 8 * kMiB;
    paint_block_map(plain, map, ask, palette);
    ask.asked_bytes = 17 * kMiB;
    paint_block_map(hatched, map, ask, palette);
    CHECK(count(plain, pack(kYellow)) == 0);
    CHECK(count(hatched, pack(kYellow)) > 500);
}

TEST_CASE("kv grid: each block has a cell and the cell names its request") {
    view::KvMap map;
    map.blocks_total = 1000;
    map.blocks_used = 300;
    map.blocks_cached = 50;
    map.owners = {{4, 100, 0, 0}, {9, 200, 100, 0}};
    Canvas canvas;
    canvas.resize(300, 200);
    const Palette palette;
    const KvLayout layout = paint_kv_grid(canvas, map, trace::kNoRequest, palette);
    CHECK(kv_owner_of(map, layout, 0) == 0);
    CHECK(kv_owner_of(map, layout, 99) == 0);
    CHECK(kv_owner_of(map, layout, 100) == 1);
    CHECK(kv_owner_of(map, layout, 299) == 1);
    CHECK(kv_owner_of(map, layout, 300) == -1);
    CHECK(kv_owner_of(map, layout, 350) == -2);
    CHECK(layout.block_at(0, 0) == 0);
    CHECK(count(canvas, pack(request_colour(9, palette))) > 200);
    map.blocks_total = 3'000'000;   // far more blocks than pixels
    CHECK(paint_kv_grid(canvas, map, 4, palette).blocks_per_cell > 1);
}
