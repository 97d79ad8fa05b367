// How fast `oomlab triage` reads: a log of which little matters, one where every line is a
// scheduler's counter, and beside them `grep -E` with the same words on the same bytes.
//
//   build/release/bin/bench_triage
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "kernels/base/prng.hpp"
#include "labs/field/triage/signals.hpp"
#include "labs/field/triage/triage.hpp"

namespace {

constexpr std::size_t kBytes = 64U << 20;

std::string quiet_log() {
    static constexpr const char* kWords[] = {"handled", "request", "route",  "status", "latency",
                                             "user",    "session", "tokens", "worker", "upstream",
                                             "header",  "body",    "bytes",  "sent",   "received",
                                             "pool",    "region",  "update", "config", "schedule"};
    oomlab::Prng rng(1);
    std::string text;
    text.reserve(kBytes + 256);
    while (text.size() < kBytes) {
        text += "2026-05-01 10:00:" + std::to_string(10 + rng.below(50)) + ".123 INFO [http-" +
                std::to_string(rng.below(16)) + "]";
        for (int w = 0; w < 8; ++w) text.append(" ").append(kWords[rng.below(std::size(kWords))]);
        text += " id=" + std::to_string(rng.next()) + "\n";
    }
    text +=
        "[ 1.0] Memory cgroup out of memory: Killed process 1 (python) total-vm:1kB, anon-rss:1kB, "
        "file-rss:0kB\n";
    return text;
}

std::string busy_log() {
    oomlab::Prng rng(2);
    std::string text;
    text.reserve(kBytes + 256);
    while (text.size() < kBytes)
        text += "[2026-05-24 03:50:58 TP0] Decode batch, #running-req: " +
                std::to_string(rng.below(64)) + ", #token: " + std::to_string(rng.below(400000)) +
                ", token usage: 0." + std::to_string(10 + rng.below(80)) +
                ", cuda graph: True, gen throughput (token/s): 341.92, #queue-req: 2\n";
    return text;
}

void read_log(benchmark::State& state, const std::string& text) {
    for (auto _ : state) {
        oomlab::triage::Session session;
        session.begin_file("bench");
        session.feed(text);
        if (!session.end_file()) state.SkipWithError("not text");
        benchmark::DoNotOptimize(session.report().type);
    }
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                            static_cast<int64_t>(text.size()));
}

void triage_quiet(benchmark::State& state) {
    read_log(state, quiet_log());
}
void triage_busy(benchmark::State& state) {
    read_log(state, busy_log());
}

void grep_quiet(benchmark::State& state) {
    const auto dir = std::filesystem::temp_directory_path() / "oomlab_bench_triage";
    std::filesystem::create_directories(dir);
    const std::string text = quiet_log();
    std::ofstream(dir / "quiet.log", std::ios::binary) << text;
    std::set<std::string> words;
    for (const auto& row : oomlab::triage::signal_rows()) words.emplace(row.literal);
    std::string pattern;
    for (const auto& word : words) {
        if (!pattern.empty()) pattern += '|';
        for (const char c : word) {
            if (std::string("\\.[]()*+?{}|^$").find(c) != std::string::npos) pattern += '\\';
            pattern += c;
        }
    }
    std::ofstream(dir / "words") << pattern << '\n';
    const std::string command = "LC_ALL=C grep -c -i -E -f " + (dir / "words").string() + " " +
                                (dir / "quiet.log").string() + " > /dev/null";
    for (auto _ : state) benchmark::DoNotOptimize(std::system(command.c_str()));
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                            static_cast<int64_t>(text.size()));
    std::filesystem::remove_all(dir);
}

BENCHMARK(triage_quiet)->Unit(benchmark::kMillisecond);
BENCHMARK(triage_busy)->Unit(benchmark::kMillisecond);
BENCHMARK(grep_quiet)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
