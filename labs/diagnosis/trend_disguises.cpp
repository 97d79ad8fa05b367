// What hides or fakes a trend: level changes and cycles.
#include <algorithm>
#include <cmath>

#include "labs/diagnosis/trend_parts.hpp"

namespace oomlab::diagnosis::trend_parts {

std::vector<double> split_at_level_changes(const std::vector<TrendSample>& s,
                                           std::vector<Stretch>& stretches) {
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
        const double spread =
            std::max(1.4826 * median(sizes), 0.3 * sample_noise(s, x.first, x.last));
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
            for (std::size_t k = best > x.first + far ? best - far : x.first; k < best; ++k)
                before.push_back(s[k].value);
            for (std::size_t k = best; k < std::min(x.last, best + far); ++k)
                after.push_back(s[k].value);
            const double stays = quantile_in_place(after, 0.15) - quantile_in_place(before, 0.15);
            if (stays / jump[best - x.first] < 0.6) continue;
            // A fall after a short rise is a cycle's; after a long one, a restart that nobody
            // logged.
            const double side_s =
                std::min(s[best].t_s - s[x.first].t_s, s[x.last - 1].t_s - s[best].t_s);
            if (jump[best - x.first] < 0 && side_s < kShortestBetweenRestarts_s) return {};
            if (jump[best - x.first] < 0 && last_fall > 0 &&
                s[best].t_s - last_fall < kShortestBetweenRestarts_s)
                return {};
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
            if (cut > first && cut < x.last)
                out.push_back({first, cut}), first = cut, when.push_back(s[cut].t_s);
        out.push_back({first, x.last});
    }
    stretches = std::move(out);
    return when;
}

namespace {

// Least squares of v on k columns by the normal equations. Returns the squared residual; `weights`
// gets the solution. Infinite when the columns depend on each other.
double least_squares(const std::vector<std::vector<double>>& columns, const std::vector<double>& v,
                     std::vector<double>& weights) {
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
    for (const FloorPoint& p : fine)
        v.push_back(p.value - mean), line.push_back((p.t_s - from) / span - 0.5);
    std::vector<double> weights, best_weights;
    const double without = least_squares({one, line}, v, weights);
    double best = without, best_cycles = 0;
    for (double cycles = 1.8; cycles <= 12; cycles *= 1.02) {
        std::vector<std::vector<double>> columns{one, line};
        for (int harmonic = 1; harmonic <= 2; ++harmonic) {
            std::vector<double> c, d;
            for (double x : line)
                c.push_back(std::cos(6.283185307 * harmonic * cycles * x)),
                    d.push_back(std::sin(6.283185307 * harmonic * cycles * x));
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
            s.value -= best_weights[static_cast<std::size_t>(2 * harmonic)] * std::cos(angle) +
                       best_weights[static_cast<std::size_t>(2 * harmonic + 1)] * std::sin(angle);
        }
    }
    return span / best_cycles;
}

}  // namespace oomlab::diagnosis::trend_parts
