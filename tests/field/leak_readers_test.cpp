// Every format that collectors write, their quirks, and what is refused.
#include <doctest/doctest.h>

#include "labs/field/leak/leak.hpp"
#include "labs/field/leak/table_parts.hpp"
#include "tests/field/leak_files.hpp"

using namespace oomlab;
using namespace oomlab::field;
using namespace oomlab::field::leak_parts;

namespace {
SampleTable read(const std::string& text, ReadOptions options = {}) {
    auto table = read_samples(text, "file.csv", options);
    REQUIRE_MESSAGE(table, (table ? "" : table.error().message));
    return *table;
}
std::string refused(const std::string& text, ReadOptions options = {}) {
    auto table = read_samples(text, "file.csv", options);
    return table ? std::string() : table.error().message;
}
bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("leak readers: the same series through four formats gives the same verdict and slope") {
    test::FileSpec spec = test::usual_file(9);
    spec.allocated.leak_per_hour = 300e6;
    const test::Rows rows = test::make_rows(spec);
    for (const std::string& text :
         {test::csv_file(rows, spec.total), test::smi_file(rows, spec.total, 1),
          test::prometheus_file(rows, "DCGM_FI_DEV_FB_USED", 1048576),
          test::prometheus_file(rows, "nvidia_gpu_memory_used_bytes", 1), test::stats_file(rows)}) {
        const LeakReport r = find_leak(read(text), {});
        CHECK_MESSAGE(r.decisive().verdict == LeakVerdict::leak,
                      r.format << ": " << r.decisive().reason);
        CHECK(r.decisive()
                  .series[static_cast<std::size_t>(r.decisive().decisive)]
                  .trend.slope_per_hour == doctest::Approx(300e6).epsilon(0.06));
    }
}

TEST_CASE("leak readers: times as they are written") {
    bool clock = false;
    CHECK(*read_time("1714550400", &clock) == 1714550400.0);
    CHECK(*read_time("1714550400123", &clock) == doctest::Approx(1714550400.123));
    CHECK(*read_time("2024-05-01T08:00:00Z", &clock) == 1714550400.0);
    CHECK(*read_time("2024-05-01 10:00:00.5+02:00", &clock) == 1714550400.5);
    CHECK(*read_time("2024/05/01 08:00:00.250", &clock) == 1714550400.25);
    CHECK(!clock);
    CHECK(*read_time("08:00:05", &clock) == 28805.0);
    CHECK(clock);
    CHECK(!read_time("yesterday", &clock));
    CHECK(!read_time("2024-13-01 00:00:00", &clock));
}

TEST_CASE("leak readers: units in names, in cells, and none") {
    CHECK(meaning_of("memory.used [MiB]").scale == 1048576);
    CHECK(meaning_of("memory.used [MiB]").role == Role::device_used);
    CHECK(meaning_of("torch_memory_allocated_bytes").role == Role::allocated);
    CHECK(meaning_of("torch_memory_allocated_bytes").scale == 1);
    CHECK(meaning_of("reserved_gb").role == Role::reserved);
    CHECK(meaning_of("reserved_gb").scale == 1073741824.0);
    CHECK(meaning_of("max_memory_allocated").role == Role::ignored);
    CHECK(meaning_of("utilization.gpu [%]").role == Role::ignored);
    CHECK(meaning_of("process_resident_memory_bytes").role == Role::host_used);
    CHECK(meaning_of("container_memory_working_set_bytes").role == Role::host_used);
    CHECK(meaning_of("container_spec_memory_limit_bytes").role == Role::host_limit);
    CHECK(meaning_of("vllm:num_requests_running").role == Role::ignored);
    CHECK(meaning_of("vllm:request_success_total").role == Role::requests);
    double scale = 0;
    CHECK(*read_value("1,234 MiB", &scale) == 1234);
    CHECK(scale == 1048576);
    CHECK(!read_value("[N/A]", &scale));
    CHECK(!read_value("nan", &scale));
    const SampleTable t = read("time,mem\n0,18000\n10,18001\n20,18002\n");
    CHECK(t.groups[0].columns[0].samples[0].value == 18000 * 1048576.0);
    CHECK(has(t.notes.front(), "read as MiB"));
}

TEST_CASE("leak readers: a collector that changes its unit is converted and named") {
    std::string text = "time,used\n";
    for (int i = 0; i < 300; ++i)
        text +=
            fmt::format("{},{}\n", i * 60, i < 200 ? 18000.0 + i % 7 : (18000.0 + i % 7) * 1048576);
    const SampleTable t = read(text);
    CHECK(t.groups[0].columns[0].samples.back().value ==
          doctest::Approx(18000 * 1048576.0).epsilon(0.001));
    CHECK(find_leak(t, {}).decisive().verdict == LeakVerdict::flat);
    bool named = false;
    for (const std::string& n : t.notes) named |= has(n, "another unit");
    CHECK(named);
}

TEST_CASE("leak readers: restarts by clock and by pid") {
    std::string by_clock = "elapsed_s,allocated_mib\n", by_pid = "time,pid,allocated_mib\n";
    for (int i = 0; i < 600; ++i) {
        by_clock += fmt::format("{},{}\n", (i % 300) * 30, 8000 + i % 300);
        by_pid += fmt::format("{},{},{}\n", i * 30, i < 300 ? 17 : 23, 8000 + i % 300);
    }
    for (const std::string& text : {by_clock, by_pid}) {
        const SampleTable t = read(text);
        CHECK(t.groups[0].restarts_s.size() == 1);
        CHECK(find_leak(t, {}).decisive().verdict == LeakVerdict::leak);
    }
}

TEST_CASE("leak readers: lines of text and printed dicts") {
    std::string text, dict;
    for (int i = 0; i < 400; ++i) {
        text += fmt::format(
            "2026-05-01 {:02}:{:02}:00,000 INFO step {} memory allocated: {:.3f} GiB, memory "
            "reserved: 20.5 GiB, max allocated: 22 GiB\n",
            i / 60, i % 60, i, 15.0 + i * 0.002);
        dict += fmt::format(
            "[2026-05-01 {:02}:{:02}:00] {{'allocated_bytes.all.current': {}, "
            "'reserved_bytes.all.current': 22000000000, 'inactive_split_bytes.all.current': "
            "5000}}\n",
            i / 60, i % 60, 16000000000 + i * 2000000LL);
    }
    const LeakReport a = find_leak(read(text), {});
    CHECK(a.format == "lines");
    CHECK(a.decisive().verdict == LeakVerdict::leak);
    CHECK(a.decisive().series[0].trend.slope_per_hour ==
          doctest::Approx(0.12 * 1073741824.0).epsilon(0.01));
    const LeakReport b = find_leak(read(dict), {});
    CHECK(b.decisive().verdict == LeakVerdict::leak);
    ReadOptions spaced;
    spaced.every_s = 60;
    std::string untimed;
    for (int i = 0; i < 400; ++i)
        untimed +=
            fmt::format("allocated={} reserved={}\n", 16000000000 + i * 2000000LL, 22000000000);
    CHECK(find_leak(read(untimed, spaced), {}).decisive().verdict == LeakVerdict::leak);
    CHECK(has(refused(untimed), "--every 10s"));
}

TEST_CASE("leak readers: semicolons, tabs, quotes, BOM, CRLF, repeated headers, comments") {
    const std::string body =
        "\xef\xbb\xbf# by hand\r\n\"time\";\"memory_allocated "
        "(MiB)\"\r\n0;\"100\"\r\n\"time\";\"memory_allocated (MiB)\"\r\n10;101\r\n";
    const SampleTable t = read(body);
    CHECK(t.groups[0].columns[0].samples.size() == 2);
    CHECK(t.groups[0].columns[0].samples[0].value == 100 * 1048576.0);
    CHECK(read("time\tused_mib\n0\t5\n1\t6\n").rows == 2);
}

TEST_CASE("leak readers: refused with place and remedy") {
    CHECK(has(refused(""), "empty"));
    CHECK(has(refused("a,b\n1,2\n"), "--column-map"));
    CHECK(has(refused("allocated,b\n1,2\n"), "--every 10s"));
    CHECK(has(refused("hello world\n"), "neither a CSV header"));
    CHECK(has(refused("{\"status\":\"error\",\"data\":{},\"error\":\"query timed out\"}"),
              "query timed out"));
    CHECK(
        has(refused("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}"),
            "no samples"));
    CHECK(has(refused("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" +
                      std::string(100, '[')),
              "nested"));
    CHECK(has(refused("time,allocated\nnever,5\n"), "no row"));
    CHECK(!has(refused("a\x1b[31m,b\n1,2\n"), "\x1b"));
    ReadOptions mapped;
    mapped.column_map["b"] = Role::allocated;
    mapped.column_map["a"] = Role::time;
    CHECK(read("a,b\n1,2\n3,4\n", mapped).rows == 2);
    CHECK(!parse_role("leaked"));
}

TEST_CASE("leak readers: mutated files neither crash nor hang") {
    test::FileSpec spec = test::usual_file(2);
    spec.allocated.hours = spec.reserved_gap.hours = spec.beside.hours = spec.host.hours = 0.2;
    const test::Rows rows = test::make_rows(spec);
    Prng prng(77);
    for (const std::string& original :
         {test::csv_file(rows, spec.total), test::smi_file(rows, spec.total, 2),
          test::prometheus_file(rows, "x_bytes", 1), test::stats_file(rows)}) {
        for (int i = 0; i < 400; ++i) {
            std::string text = original;
            for (u64 e = prng.between(1, 6); e > 0 && !text.empty(); --e) {
                const std::size_t at = prng.below(text.size());
                switch (prng.below(5)) {
                    case 0:
                        text[at] = static_cast<char>(prng.below(256));
                        break;
                    case 1:
                        text.erase(at, prng.between(1, 60));
                        break;
                    case 2:
                        text.insert(at, std::to_string(prng.next()));
                        break;
                    case 3:
                        text.insert(at, "\n\"{[,;e-.:");
                        break;
                    default:
                        text.resize(at);
                        break;
                }
            }
            if (auto table = read_samples(text, "m", {})) {
                const LeakReport r = find_leak(*table, {});
                CHECK(!leak_json(r).empty());
                CHECK(!leak_text(r, true).empty());
            }
        }
    }
}
