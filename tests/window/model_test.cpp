#include <doctest/doctest.h>

#include "labs/trace/writer.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/temp_dir.hpp"
#include "ui/view_model/live_trace.hpp"

using namespace oomlab;
using namespace oomlab::view;
using oomlab::test::TempDir;
using oomlab::testing::SyntheticRun;
using oomlab::testing::write_synthetic_trace;

namespace {
std::unique_ptr<LiveTrace> open_run(const TempDir& dir, const SyntheticRun& run) {
    const std::string path = dir.file("run.omtrace");
    write_synthetic_trace(path, run);
    auto live = LiveTrace::open(path);
    REQUIRE(live);
    return std::move(*live);
}
}  // namespace

TEST_CASE("model: a run that ends out of memory answers the four questions") {
    TempDir dir;
    const auto live = open_run(dir, {});
    const Model& m = live->model();
    CHECK(m.facts().simulated);
    CHECK(m.facts().device_name == "sim:l4");
    CHECK(m.health_at(m.last_us()) == Health::oom);
    CHECK(m.health_at(m.phases()[2].time_us) == Health::loading);
    REQUIRE(m.failures().size() == 1);
    CHECK(m.failures()[0].text.find("Tried to allocate 1.90 GiB") != std::string::npos);
    const auto now = m.figures_at(m.last_us());
    REQUIRE(now);
    CHECK(now->used_bytes <= now->total_bytes);
    CHECK(now->headroom_bytes() >= now->cached_bytes());
    CHECK(m.phase_at(m.last_us()) == trace::Phase::serving);
    CHECK(live->finished());
    CHECK(live->damage().empty());
}

TEST_CASE("model: events stand in order of time and maps know their place among them") {
    TempDir dir;
    const auto live = open_run(dir, {});
    const Model& m = live->model();
    REQUIRE(m.events().size() > 500);
    for (std::size_t i = 1; i < m.events().size(); ++i)
        CHECK(m.events()[i - 1].time_us <= m.events()[i].time_us);
    REQUIRE(m.block_maps().size() > 10);
    const MapFrame* last = Model::nearest(m.block_maps(), m.last_us());
    CHECK(last == &m.block_maps().back());
    CHECK(Model::nearest(m.block_maps(), -1) == &m.block_maps().front());
    CHECK(parse_block_map(last->time_us, last->payload).problem.empty());
    for (const Event& e : m.events()) CHECK_FALSE(m.describe(e).empty());
}

TEST_CASE("model: the kernel's kill is told by the evidence, not by a failure") {
    TempDir dir;
    SyntheticRun run;
    run.ends_in_oom = false;
    run.killed_by_host = true;
    const auto live = open_run(dir, run);
    const Model& m = live->model();
    CHECK(m.killed());
    CHECK(m.host_oom());
    CHECK(m.health_at(m.last_us()) == Health::killed);
    CHECK(m.failures().empty());
}

TEST_CASE("model: a server that starts again is recovering until it serves") {
    TempDir dir;
    SyntheticRun run;
    run.recovers = true;
    const auto live = open_run(dir, run);
    const Model& m = live->model();
    const i64 failed_us = m.failures().front().time_us;
    i64 again_us = 0, serves_us = 0;
    for (const PhaseMark& mark : m.phases()) {
        if (mark.time_us <= failed_us) continue;
        if (mark.phase == trace::Phase::weights) again_us = mark.time_us;
        if (mark.phase == trace::Phase::serving) serves_us = mark.time_us;
    }
    CHECK(m.health_at(failed_us + 1) == Health::oom);
    CHECK(m.health_at(again_us) == Health::recovering);
    const Health later = m.health_at(serves_us + 1'000'000);
    CHECK((later == Health::ok || later == Health::tight));
}

TEST_CASE("model: a live trace grows under the reader, and a compacted one is read anew") {
    TempDir dir;
    const std::string path = dir.file("live.omtrace");
    REQUIRE(trace::create_trace_file(path));
    auto writer = trace::Writer::open(path);
    REQUIRE(writer);
    auto live = LiveTrace::open(path);
    REQUIRE(live);
    CHECK((*live)->model().health_at(0) == Health::no_data);
    CHECK_FALSE((*live)->poll());
    (*writer)->append(trace::RecordType::phase, 5, trace::PhaseRecord{trace::Phase::start, {}});
    CHECK((*live)->poll());
    CHECK((*live)->model().events().size() == 1);
    CHECK_FALSE((*live)->finished());
    writer->reset();
    REQUIRE(trace::compact_trace_file(path));
    REQUIRE(trace::append_evidence(path, 0, R"({"outcome":"killed"})"));
    CHECK((*live)->poll());
    CHECK((*live)->times_reopened() == 1);
    CHECK((*live)->model().events().size() == 1);
    CHECK((*live)->model().killed());
}

TEST_CASE("model: control characters in a trace never reach the screen") {
    Model m;
    const std::string text = "bad \x1b[31m line\x07";
    m.fold({trace::RecordType::log, 1, 1, std::as_bytes(std::span(text))});
    const std::string shown = m.describe(m.events().front());
    for (const char c : shown) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

TEST_CASE("model: find_trace takes a file, the newest in a folder, or says what it looked for") {
    TempDir dir;
    CHECK_FALSE(find_trace(dir.file("nothing")));
    const auto empty = find_trace(dir.path().string());
    REQUIRE_FALSE(empty);
    CHECK(empty.error().message.find("oomlab run") != std::string::npos);
    SyntheticRun run;
    run.seconds = 2;
    run.requests = 2;
    write_synthetic_trace(dir.file("a.omtrace"), run);
    CHECK(*find_trace(dir.file("a.omtrace")) == dir.file("a.omtrace"));
    CHECK(*find_trace(dir.path().string()) == dir.file("a.omtrace"));
}
