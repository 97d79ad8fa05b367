// The verdict on whole files: what grows, how fast, and when it ends.
#include <doctest/doctest.h>

#include "labs/field/leak/leak.hpp"
#include "tests/field/leak_files.hpp"

using namespace oomlab;
using namespace oomlab::field;
using namespace oomlab::test;

namespace {
LeakReport judge(const std::string& text, ReadOptions options = {}, LeakOptions leak = {}) {
    auto table = read_samples(text, "file", options);
    REQUIRE_MESSAGE(table, (table ? "" : table.error().message));
    return find_leak(*table, leak);
}
LeakVerdict verdict(const FileSpec& spec) {
    return judge(csv_file(make_rows(spec), spec.total)).decisive().verdict;
}
}  // namespace

TEST_CASE("leak: allocated, gap, beside and host each have their verdict") {
    int right[5] = {}, runs = 25;
    for (int i = 0; i < runs; ++i) {
        FileSpec flat = usual_file(static_cast<u64>(i));
        right[0] += verdict(flat) == LeakVerdict::flat;
        FileSpec leak = flat;
        leak.allocated.leak_per_hour = 100e6;
        right[1] += verdict(leak) == LeakVerdict::leak;
        FileSpec fragments = flat;
        fragments.reserved_gap.leak_per_hour = 150e6;
        right[2] += verdict(fragments) == LeakVerdict::fragmentation;
        FileSpec outside = flat;
        outside.beside.leak_per_hour = 60e6;
        right[3] += verdict(outside) == LeakVerdict::outside;
        FileSpec host = flat;
        host.host.leak_per_hour = 100e6;
        const LeakReport r = judge(csv_file(make_rows(host), host.total));
        right[4] += r.decisive().verdict == LeakVerdict::leak && r.decisive().where == "host";
    }
    for (int kind = 0; kind < 5; ++kind)
        CHECK_MESSAGE(right[kind] >= runs - 2,
                      "kind " << kind << ": " << right[kind] << " of " << runs);
}

TEST_CASE("leak: slope, interval and time to the card's end") {
    FileSpec spec = usual_file(3);
    spec.allocated.leak_per_hour = 500e6;
    const LeakReport r = judge(csv_file(make_rows(spec), spec.total));
    const GroupFinding& g = r.decisive();
    REQUIRE(g.verdict == LeakVerdict::leak);
    const auto& t = g.series[static_cast<std::size_t>(g.decisive)].trend;
    CHECK(t.slope_per_hour == doctest::Approx(500e6).epsilon(0.05));
    CHECK(t.low_per_hour < 500e6);
    CHECK(t.high_per_hour > 500e6);
    // 16 + 3 GB allocated and 0.7 beside at the end, of 25.25 GB: 5.55 GB at 0.5 GB an hour
    CHECK(g.until_limit.seconds == doctest::Approx(11.1 * 3600).epsilon(0.08));
    CHECK(g.limit_bytes == doctest::Approx(spec.total));
    const std::string text = leak_text(r, true);
    CHECK(text.find("full in") != std::string::npos);
    CHECK(text.find("* floor") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
    const std::string json = leak_json(r);
    for (const char* key :
         {"\"verdict\": \"leak\"", "slope_bytes_per_hour", "interval_95", "time_to_oom_s"})
        CHECK(json.find(key) != std::string::npos);
}

TEST_CASE("leak: a minute of samples is not long enough, and says how much more") {
    std::string text = "time,allocated_mib\n";
    for (int i = 0; i < 6; ++i) text += fmt::format("{},{}\n", i * 10, 1000 + i);
    const LeakReport r = judge(text);
    CHECK(r.decisive().verdict == LeakVerdict::not_long_enough);
    CHECK(r.decisive().reason.find("more minutes") != std::string::npos);
}

TEST_CASE("leak: two GPUs in one nvidia-smi file are judged apart") {
    FileSpec spec = usual_file(4);
    spec.allocated.leak_per_hour = 200e6;
    const LeakReport r = judge(smi_file(make_rows(spec), spec.total, 2));
    REQUIRE(r.groups.size() == 2);
    CHECK(r.decisive().group == "index 0");
    CHECK(r.decisive().verdict == LeakVerdict::leak);
    CHECK(r.groups[1].verdict == LeakVerdict::flat);
    CHECK(!r.decisive().ask_for.empty());
    CHECK(r.format == "nvidia-smi");
}

TEST_CASE("leak: bytes per thousand requests from a counter that restarts") {
    std::string text = "time,allocated_bytes,requests_total\n";
    for (int i = 0; i < 1000; ++i)
        text += fmt::format("{},{},{}\n", i * 20, 8000000000 + i * 1000000,
                            (i < 500 ? i : i - 500) * 10);
    const GroupFinding g = judge(text).decisive();
    REQUIRE(g.verdict == LeakVerdict::leak);
    CHECK(g.bytes_per_1000_requests == doctest::Approx(100e6).epsilon(0.02));
}

TEST_CASE("leak: the picture is written") {
    FileSpec spec = usual_file(5);
    const std::string path = std::string(OOMLAB_BIN_DIR) + "/leak_test.png";
    CHECK(leak_png(judge(csv_file(make_rows(spec), spec.total)), path));
    std::remove(path.c_str());
    CHECK(!leak_png(judge(csv_file(make_rows(spec), spec.total)), "/no/such/folder/x.png"));
}
