// The window's speed, drawn in software into an off-screen buffer, as a person would use it.
//
//   bench_window            makes its traces in a temporary folder, prints one line a figure
//
// Budgets: an hour with a million events opens in 2 s; 60 frames/s at 1440x900 while panning and
// zooming (half of the frames under 16.7 ms, 99 of 100 under 25); 100,000 blocks at 30 frames/s; memory
// bounded.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tests/support/synthetic_trace.hpp"
#include "tests/support/temp_dir.hpp"
#include "ui/window/platform/offscreen.hpp"

using namespace oomlab;
using namespace oomlab::window;

namespace {

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double cpu_ms() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}
long peak_mib() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss / 1024;
}

// CPU stands beside the wall's time: on a machine that does other things it is what can be compared.
void report(const char* what, std::vector<double> ms, std::vector<double> cpu) {
    std::sort(ms.begin(), ms.end());
    std::sort(cpu.begin(), cpu.end());
    const auto at = [](const std::vector<double>& v, double share) {
        return v[std::min(v.size() - 1, static_cast<std::size_t>(share * static_cast<double>(v.size())))];
    };
    std::printf("%-36s p50 %6.2f ms (%5.1f/s)   p99 %6.2f ms   CPU p50 %6.2f ms\n", what, at(ms, 0.5), 1000 / at(ms, 0.5),
                at(ms, 0.99), at(cpu, 0.5));
}

std::unique_ptr<view::LiveTrace> open_timed(const std::string& path) {
    const double begin = now_ms(), cpu = cpu_ms();
    auto live = view::LiveTrace::open(path);
    if (!live) {
        std::fprintf(stderr, "%s\n", live.error().message.c_str());
        std::exit(1);
    }
    const view::Model& m = (*live)->model();
    std::printf("open: %zu events, %llu samples, %.0f s of run: %.0f ms (%.0f ms of CPU), model %zu MiB\n", m.events().size(),
                static_cast<unsigned long long>(m.tiers().samples()), static_cast<double>(m.last_us()) / 1e6, now_ms() - begin,
                cpu_ms() - cpu, m.bytes_held() / kMiB);
    return std::move(*live);
}

}  // namespace

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    test::TempDir dir;
    testing::SyntheticRun hour;
    hour.seconds = 3600;
    hour.requests = 260'000;
    hour.virtual_log_bytes = 256 * kMiB;
    testing::write_synthetic_trace(dir.file("hour.omtrace"), hour);
    testing::SyntheticRun blocks;
    blocks.map_blocks = 100'000;
    blocks.virtual_log_bytes = 256 * kMiB;
    testing::write_synthetic_trace(dir.file("blocks.omtrace"), blocks);

    auto screen = Offscreen::create(1440, 900);
    if (!screen) {
        std::fprintf(stderr, "%s\n", screen.error().message.c_str());
        return 1;
    }
    std::printf("renderer: %s, 1440x900\n", (*screen)->renderer());
    App app((*screen)->textures(), Settings());
    app.open(open_timed(dir.file("hour.omtrace")));
    for (int i = 0; i < 10; ++i) (*screen)->frame(app);

    const auto timed = [&](const char* what, int frames, const auto& act) {
        std::vector<double> wall, cpu;
        for (int i = 0; i < frames; ++i) {
            act(i);
            const double begin = now_ms(), used = cpu_ms();
            (*screen)->frame(app);
            wall.push_back(now_ms() - begin);
            cpu.push_back(cpu_ms() - used);
        }
        report(what, wall, cpu);
    };
    timed("the hour, nothing changes", 300, [](int) {});
    timed("the hour, panning", 400, [&](int i) { app.state().pan(i % 200 < 100 ? 0.004 : -0.004); });
    timed("the hour, zooming", 400, [&](int i) { app.state().zoom(i % 160 < 80 ? 0.94 : 1 / 0.94, 0.37); });
    timed("the hour, stepping through events", 300, [&](int) { app.state().step_event(app.model(), -1, false); });
    app.key({'/', false, false, false}, false);
    timed("the hour, filtering a million", 60, [&](int i) { app.state().filter.set_text(i % 2 == 0 ? "preempt" : "req:17"); });

    app.open(open_timed(dir.file("blocks.omtrace")));
    for (int i = 0; i < 10; ++i) (*screen)->frame(app);
    timed("100,000 blocks, another map a frame", 300, [&](int i) { app.state().step_map(app.model(), i % 40 < 20 ? -1 : 1); });
    timed("100,000 blocks, zooming the map", 300, [&](int i) { app.state().map_zoom = 1 + i * 0.1; });
    std::printf("largest resident size: %ld MiB (the traces are mapped: %s)\n", peak_mib(), "their pages count as well");
    return 0;
}
