// Generated memory series: the shapes that fool trend tests, with and without a leak.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/diagnosis/trend.hpp"

namespace oomlab::test {

inline constexpr double kMB = 1e6;

struct SeriesSpec {
    std::string shape = "white";
    double hours = 6, every_s = 10, base = 18000 * kMB, noise = 30 * kMB;
    double leak_per_hour = 0;
};

inline const std::vector<std::string>& all_shapes() {
    static const std::vector<std::string> shapes = {
        "white",     "ar 0.8",    "ar 0.9",    "ar 0.97", "sawtooth",  "warm-up",
        "load step", "two steps", "quantised", "bursts",  "staircase", "seasonal",
        "restarts",  "missing",   "load walk", "constant"};
    return shapes;
}

inline std::vector<diagnosis::TrendSample> make_series(const SeriesSpec& spec, Prng& prng) {
    std::vector<diagnosis::TrendSample> out;
    const double seconds = spec.hours * 3600;
    const int n = static_cast<int>(seconds / spec.every_s);
    double phi = 0;
    if (spec.shape == "ar 0.8") phi = 0.8;
    if (spec.shape == "ar 0.9" || spec.shape == "quantised") phi = 0.9;
    if (spec.shape == "ar 0.97") phi = 0.97;
    double ar = prng.normal();
    const double period = 60 * (4 + 16 * prng.uniform()), start = period * prng.uniform();
    const double amplitude = spec.noise * (5 + 15 * prng.uniform());
    const double step_at = seconds * (0.3 + 0.6 * prng.uniform()),
                 step2_at = seconds * (0.3 + 0.6 * prng.uniform());
    const double step = spec.noise * (4 + 12 * prng.uniform()) * (prng.chance(0.5) ? 1 : 1),
                 step2 = spec.noise * (4 + 12 * prng.uniform());
    const double tau = seconds * (0.03 + 0.05 * prng.uniform());
    const double season = seconds / (2.3 + 3 * prng.uniform());  // seen more than twice
    const double season_phase = 6.2831853 * prng.uniform();
    double burst_left = 0, walk = 0;
    double restart_t = 0;
    const double restart_every = seconds / (prng.chance(0.5) ? 2.0 : 3.0);
    for (int i = 0; i < n; ++i) {
        const double t = i * spec.every_s;
        ar = phi * ar + std::sqrt(1 - phi * phi) * prng.normal();
        double v = spec.base + spec.noise * ar;
        double leak_t = t;
        if (spec.shape == "constant") v = spec.base;
        if (spec.shape == "sawtooth") v += amplitude * std::fmod(t + start, period) / period;
        if (spec.shape == "warm-up") v += 10 * spec.noise * (1 - std::exp(-t / tau));
        if (spec.shape == "load step" && t > step_at) v += step;
        if (spec.shape == "two steps") v += (t > step_at ? step : 0) + (t > step2_at ? step2 : 0);
        if (spec.shape == "quantised") v = std::floor(v / (20 * 1048576.0)) * 20 * 1048576.0;
        if (spec.shape == "bursts") {
            if (burst_left <= 0 && prng.chance(0.01)) burst_left = 30 + 300 * prng.uniform();
            if (burst_left > 0) v += amplitude, burst_left -= spec.every_s;
        }
        if (spec.shape == "staircase")
            v += 3 * spec.noise * std::min(6.0, std::floor(t / (seconds * 0.035)));
        if (spec.shape == "seasonal")
            v += amplitude * 0.7 * (1 + std::sin(6.2831853 * t / season + season_phase));
        if (spec.shape == "load walk") {
            walk = std::min(1.0, std::max(0.0, walk + 0.15 * prng.normal()));
            v += amplitude * walk;
        }
        if (spec.shape == "restarts") {
            if (t - restart_t >= restart_every) restart_t = t;
            leak_t = t - restart_t;
            if (restart_t > 0 && leak_t < 60)
                v = spec.base * 0.02;
            else if (restart_t > 0)
                v -= 4 * spec.noise * std::exp(-leak_t / 300);
        }
        v += spec.leak_per_hour * leak_t / 3600;
        if (spec.shape == "missing" &&
            (prng.chance(0.3) || std::fmod(t, seconds / 3) < seconds / 40))
            continue;
        out.push_back({t, v});
    }
    return out;
}

}  // namespace oomlab::test
