#include "labs/diagnosis/trend_parts.hpp"

#include <algorithm>
#include <cmath>

namespace oomlab::diagnosis::trend_parts {
namespace {

double quantile_in_place(std::vector<double>& v, double share) {
    if (v.empty()) return 0;
    const std::size_t k = static_cast<std::size_t>(share * static_cast<double>(v.size() - 1));
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(k), v.end());
    return v[k];
}

// Spread of the samples around their neighbours' median: what is not level.
double sample_noise(const std::vector<TrendSample>& s, std::size_t first, std::size_t last) {
    std::vector<double> away;
    for (std::size_t at = first; at < last; at += 15) {
        const std::size_t end = std::min(last, at + 15);
        std::vector<double> block;
        for (std::size_t i = at; i < end; ++i) block.push_back(s[i].value);
        const double m = median(block);
        for (std::size_t i = at; i < end; ++i) away.push_back(std::fabs(s[i].value - m));
    }
    return 1.4826 * median(away);
}

// Inverse of the normal distribution (Acklam's form of the rational approximation is avoided: a
// bisection on erfc is exact enough and short).
double normal_quantile(double p) {
    double low = -10, high = 10;
    for (int i = 0; i < 60; ++i) {
        const double x = (low + high) / 2;
        (0.5 * std::erfc(-x / std::sqrt(2.0)) < p ? low : high) = x;
    }
    return (low + high) / 2;
}

}  // namespace

double median(std::vector<double> v) {
    if (v.empty()) return 0;
    const std::size_t k = v.size() / 2;
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(k), v.end());
    if (v.size() % 2 == 1) return v[k];
    return (v[k] + *std::max_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(k))) / 2;
}

double student_quantile(double p, double df) {
    const double z = normal_quantile(p), z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df) + (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * df * df * df);
}

void tidy(std::vector<TrendSample>& samples) {
    samples.erase(std::remove_if(samples.begin(), samples.end(), [](const TrendSample& s) { return !std::isfinite(s.t_s) || !std::isfinite(s.value); }), samples.end());
    std::stable_sort(samples.begin(), samples.end(), [](const TrendSample& a, const TrendSample& b) { return a.t_s < b.t_s; });
    samples.erase(std::unique(samples.begin(), samples.end(), [](const TrendSample& a, const TrendSample& b) { return a.t_s == b.t_s; }), samples.end());
}

std::vector<Stretch> split_at_restarts(const std::vector<TrendSample>& s, const TrendOptions& options, std::vector<double>& restarts_s) {
    std::vector<std::size_t> cuts;
    for (double known : options.restarts_s) {
        const auto at = std::lower_bound(s.begin(), s.end(), known, [](const TrendSample& a, double t) { return a.t_s < t; });
        if (at != s.begin() && at != s.end()) cuts.push_back(static_cast<std::size_t>(at - s.begin()));
    }
    if (options.find_restarts) {
        // A dip: far below the usual level, as when the process is gone.
        std::vector<double> all;
        for (const TrendSample& x : s) all.push_back(x.value);
        const double usual = median(all);
        if (usual > 0) {
            bool down = false;
            for (std::size_t i = 0; i < s.size(); ++i) {
                const bool low = s[i].value < 0.25 * usual;
                if (low && !down && i > 0) cuts.push_back(i);
                down = low;
            }
        }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<Stretch> out;
    std::size_t first = 0;
    for (std::size_t cut : cuts) {
        if (cut > first) out.push_back({first, cut});
        first = cut;
        restarts_s.push_back(s[cut].t_s);
    }
    out.push_back({first, s.size()});
    return out;
}

void drop_warm_up(const std::vector<TrendSample>& s, std::vector<Stretch>& stretches, const TrendOptions& options) {
    std::vector<Stretch> kept;
    for (Stretch& x : stretches) {
        if (x.last - x.first < 12) continue;
        const double from = s[x.first].t_s, to = s[x.last - 1].t_s;
        const double start = from + std::max(options.warm_up_share * (to - from), std::min(600.0, 0.4 * (to - from)));
        while (x.first < x.last && s[x.first].t_s < start) ++x.first;
        if (x.last - x.first >= 8) kept.push_back(x);
    }
    stretches = std::move(kept);
}

std::vector<FloorPoint> floor_points(const std::vector<TrendSample>& s, const std::vector<Stretch>& stretches, int blocks, double& noise) {
    double seconds = 0;
    std::vector<double> spreads;
    for (const Stretch& x : stretches) {
        seconds += s[x.last - 1].t_s - s[x.first].t_s;
        spreads.push_back(sample_noise(s, x.first, x.last));
    }
    noise = median(spreads);
    std::vector<FloorPoint> out;
    if (seconds <= 0) return out;
    const double span = seconds / blocks;
    int stretch = 0;
    for (const Stretch& x : stretches) {
        const double from = s[x.first].t_s, length = s[x.last - 1].t_s - from;
        const int parts = std::max(1, static_cast<int>(length / span + 0.5));
        std::size_t i = x.first;
        for (int b = 0; b < parts; ++b) {
            const double end = b + 1 == parts ? from + length + 1 : from + length * (b + 1) / parts;
            std::vector<double> values, times;
            for (; i < x.last && s[i].t_s < end; ++i) values.push_back(s[i].value), times.push_back(s[i].t_s);
            if (values.size() < 3) continue;   // missing samples: no floor to speak of
            FloorPoint p;
            p.t_s = times[times.size() / 2];
            p.value = quantile_in_place(values, values.size() >= 30 ? 0.10 : 0.0);
            p.stretch = stretch;
            out.push_back(p);
        }
        ++stretch;
    }
    // A stretch with one or two points says nothing about a slope.
    std::vector<int> count(static_cast<std::size_t>(stretch) + 1, 0);
    for (const FloorPoint& p : out) ++count[static_cast<std::size_t>(p.stretch)];
    out.erase(std::remove_if(out.begin(), out.end(), [&](const FloorPoint& p) { return count[static_cast<std::size_t>(p.stretch)] < 4; }), out.end());
    return out;
}

double theil_sen(const std::vector<FloorPoint>& floor) {
    std::vector<double> slopes;
    for (std::size_t i = 0; i < floor.size(); ++i)
        for (std::size_t j = i + 1; j < floor.size(); ++j)
            if (floor[i].stretch == floor[j].stretch && floor[j].t_s > floor[i].t_s) slopes.push_back((floor[j].value - floor[i].value) / (floor[j].t_s - floor[i].t_s));
    return median(std::move(slopes));
}

Residuals residuals(const std::vector<FloorPoint>& floor, double slope) {
    Residuals r;
    std::vector<double> e(floor.size());
    double top = 0, bottom = 0;
    for (std::size_t from = 0; from < floor.size();) {
        std::size_t to = from;
        std::vector<double> level;
        double mean_t = 0;
        for (; to < floor.size() && floor[to].stretch == floor[from].stretch; ++to) level.push_back(floor[to].value - slope * floor[to].t_s), mean_t += floor[to].t_s;
        mean_t /= static_cast<double>(to - from);
        double mean = 0;
        for (double v : level) mean += v;
        mean /= static_cast<double>(level.size());
        for (std::size_t i = from; i < to; ++i) {
            e[i] = level[i - from] - mean;
            r.sum_squares += e[i] * e[i];
            r.time_squares += (floor[i].t_s - mean_t) * (floor[i].t_s - mean_t);
            bottom += e[i] * e[i];
            if (i > from) top += e[i] * e[i - 1];
        }
        from = to;
    }
    r.lag1 = bottom > 0 ? top / bottom : 0;
    return r;
}

double sample_correlation(const std::vector<TrendSample>& s, const std::vector<Stretch>& stretches, double slope) {
    double top = 0, bottom = 0, n = 0;
    for (const Stretch& x : stretches) {
        std::vector<double> level;
        for (std::size_t i = x.first; i < x.last; ++i) level.push_back(s[i].value - slope * s[i].t_s);
        double mean = 0;
        for (double v : level) mean += v / static_cast<double>(level.size());
        for (std::size_t i = 0; i < level.size(); ++i) {
            bottom += (level[i] - mean) * (level[i] - mean);
            if (i > 0) top += (level[i] - mean) * (level[i - 1] - mean);
        }
        n += static_cast<double>(level.size());
    }
    if (bottom <= 0 || n < 8) return 0;
    const double phi = top / bottom;
    return std::clamp(phi + (2 + 4 * phi) / n, 0.0, 1.0);
}

double samples_per_point(const std::vector<Stretch>& stretches, std::size_t points) {
    std::size_t n = 0;
    for (const Stretch& x : stretches) n += x.last - x.first;
    return points > 0 ? static_cast<double>(n) / static_cast<double>(points) : 1.0;
}

double middle_value(const std::vector<FloorPoint>& floor) {
    std::vector<double> v;
    for (const FloorPoint& p : floor) v.push_back(p.value);
    return median(std::move(v));
}

std::vector<double> split_at_level_changes(const std::vector<TrendSample>& s, std::vector<Stretch>& stretches) {
    constexpr std::size_t kSide = 8, kKeep = 12;
    constexpr std::size_t kMost = 3;
    constexpr double kShortestBetweenRestarts_s = 1800;
    std::vector<std::size_t> cuts;
    std::vector<double> when;
    for (const Stretch& x : stretches) {
        if (x.last - x.first < 4 * kSide) continue;
        // Median after minus median before, everywhere; its usual spread; outliers are jumps.
        std::vector<double> jump(x.last - x.first, 0.0), sizes;
        const auto side = [&](std::size_t from, std::size_t to) {
            std::vector<double> v;
            for (std::size_t i = from; i < to; ++i) v.push_back(s[i].value);
            return median(std::move(v));
        };
        for (std::size_t i = x.first + kSide; i + kSide <= x.last; ++i) {
            jump[i - x.first] = side(i, i + kSide) - side(i - kSide, i);
            sizes.push_back(jump[i - x.first]);
        }
        const double usual = median(sizes);
        for (double& v : sizes) v = std::fabs(v - usual);
        const double spread = std::max(1.4826 * median(sizes), 0.3 * sample_noise(s, x.first, x.last));
        if (spread <= 0) continue;
        std::size_t found = 0;
        double last_fall = 0;
        for (std::size_t i = x.first + kSide; i + kSide <= x.last;) {
            const auto size = [&](std::size_t k) { return std::fabs(jump[k - x.first] - usual); };
            if (size(i) < 5.0 * spread) {
                ++i;
                continue;
            }
            std::size_t best = i;
            for (; i + kSide <= x.last && size(i) >= 5.0 * spread; ++i)
                if (size(i) > size(best)) best = i;
            // It must stay: low points of a longer time on both sides differ by most of it.
            const std::size_t far = std::max(kKeep, (x.last - x.first) / 12);
            if (best < x.first + kKeep / 2 || best + kKeep / 2 > x.last) continue;
            std::vector<double> before, after;
            for (std::size_t k = best > x.first + far ? best - far : x.first; k < best; ++k) before.push_back(s[k].value);
            for (std::size_t k = best; k < std::min(x.last, best + far); ++k) after.push_back(s[k].value);
            const double stays = quantile_in_place(after, 0.15) - quantile_in_place(before, 0.15);
            if (stays / jump[best - x.first] < 0.6) continue;
            // A fall after a short rise is a cycle's; after a long one, a restart that nobody logged.
            const double side_s = std::min(s[best].t_s - s[x.first].t_s, s[x.last - 1].t_s - s[best].t_s);
            if (jump[best - x.first] < 0 && side_s < kShortestBetweenRestarts_s) return {};
            if (jump[best - x.first] < 0 && last_fall > 0 && s[best].t_s - last_fall < kShortestBetweenRestarts_s) return {};
            if (jump[best - x.first] < 0) last_fall = s[best].t_s;
            ++found;
            cuts.push_back(best);
        }
        if (found > kMost) return {};
    }
    if (cuts.empty() || cuts.size() > kMost) return {};
    std::vector<Stretch> out;
    for (const Stretch& x : stretches) {
        std::size_t first = x.first;
        for (std::size_t cut : cuts)
            if (cut > first && cut < x.last) out.push_back({first, cut}), first = cut, when.push_back(s[cut].t_s);
        out.push_back({first, x.last});
    }
    stretches = std::move(out);
    return when;
}

namespace {

// Least squares of v on k columns by the normal equations. Returns the squared residual; `weights`
// gets the solution. Infinite when the columns depend on each other.
double least_squares(const std::vector<std::vector<double>>& columns, const std::vector<double>& v, std::vector<double>& weights) {
    const std::size_t k = columns.size(), n = v.size();
    std::vector<std::vector<double>> m(k, std::vector<double>(k + 1, 0.0));
    for (std::size_t a = 0; a < k; ++a) {
        for (std::size_t b = 0; b < k; ++b)
            for (std::size_t i = 0; i < n; ++i) m[a][b] += columns[a][i] * columns[b][i];
        for (std::size_t i = 0; i < n; ++i) m[a][k] += columns[a][i] * v[i];
    }
    for (std::size_t a = 0; a < k; ++a) {
        std::size_t pivot = a;
        for (std::size_t r = a; r < k; ++r)
            if (std::fabs(m[r][a]) > std::fabs(m[pivot][a])) pivot = r;
        std::swap(m[a], m[pivot]);
        if (std::fabs(m[a][a]) < 1e-12) return INFINITY;
        for (std::size_t r = 0; r < k; ++r) {
            if (r == a) continue;
            const double f = m[r][a] / m[a][a];
            for (std::size_t c = a; c <= k; ++c) m[r][c] -= f * m[a][c];
        }
    }
    weights.assign(k, 0.0);
    for (std::size_t a = 0; a < k; ++a) weights[a] = m[a][k] / m[a][a];
    double rss = 0;
    for (std::size_t i = 0; i < n; ++i) {
        double e = v[i];
        for (std::size_t a = 0; a < k; ++a) e -= weights[a] * columns[a][i];
        rss += e * e;
    }
    return rss;
}

}  // namespace

double take_out_cycle(std::vector<TrendSample>& samples, const std::vector<Stretch>& stretches) {
    if (stretches.size() != 1) return 0;
    double noise = 0;
    const std::vector<FloorPoint> fine = floor_points(samples, stretches, 60, noise);
    if (fine.size() < 30) return 0;
    const double from = fine.front().t_s, span = fine.back().t_s - from;
    std::vector<double> v, one(fine.size(), 1.0), line;
    double mean = 0;
    for (const FloorPoint& p : fine) mean += p.value / static_cast<double>(fine.size());
    for (const FloorPoint& p : fine) v.push_back(p.value - mean), line.push_back((p.t_s - from) / span - 0.5);
    std::vector<double> weights, best_weights;
    const double without = least_squares({one, line}, v, weights);
    double best = without, best_cycles = 0;
    for (double cycles = 1.8; cycles <= 12; cycles *= 1.02) {
        std::vector<std::vector<double>> columns{one, line};
        for (int harmonic = 1; harmonic <= 2; ++harmonic) {
            std::vector<double> c, d;
            for (double x : line) c.push_back(std::cos(6.283185307 * harmonic * cycles * x)), d.push_back(std::sin(6.283185307 * harmonic * cycles * x));
            columns.push_back(std::move(c));
            columns.push_back(std::move(d));
        }
        const double rss = least_squares(columns, v, weights);
        if (rss < best) best = rss, best_cycles = cycles, best_weights = weights;
    }
    if (best_cycles == 0 || best > 0.12 * without) return 0;
    for (TrendSample& s : samples) {
        const double x = (s.t_s - from) / span - 0.5;
        for (int harmonic = 1; harmonic <= 2; ++harmonic) {
            const double angle = 6.283185307 * harmonic * best_cycles * x;
            s.value -= best_weights[static_cast<std::size_t>(2 * harmonic)] * std::cos(angle) + best_weights[static_cast<std::size_t>(2 * harmonic + 1)] * std::sin(angle);
        }
    }
    return span / best_cycles;
}

}  // namespace oomlab::diagnosis::trend_parts
