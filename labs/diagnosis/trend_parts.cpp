#include "labs/diagnosis/trend_parts.hpp"

#include <algorithm>
#include <cmath>

namespace oomlab::diagnosis::trend_parts {
namespace {

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

double median(std::vector<double> v) {
    if (v.empty()) return 0;
    const std::size_t k = v.size() / 2;
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(k), v.end());
    if (v.size() % 2 == 1) return v[k];
    return (v[k] + *std::max_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(k))) / 2;
}

double student_quantile(double p, double df) {
    const double z = normal_quantile(p), z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * df * df * df);
}

void tidy(std::vector<TrendSample>& samples) {
    samples.erase(std::remove_if(samples.begin(), samples.end(),
                                 [](const TrendSample& s) {
                                     return !std::isfinite(s.t_s) || !std::isfinite(s.value);
                                 }),
                  samples.end());
    std::stable_sort(samples.begin(), samples.end(),
                     [](const TrendSample& a, const TrendSample& b) { return a.t_s < b.t_s; });
    samples.erase(
        std::unique(samples.begin(), samples.end(),
                    [](const TrendSample& a, const TrendSample& b) { return a.t_s == b.t_s; }),
        samples.end());
}

std::vector<Stretch> split_at_restarts(const std::vector<TrendSample>& s,
                                       const TrendOptions& options,
                                       std::vector<double>& restarts_s) {
    std::vector<std::size_t> cuts;
    for (double known : options.restarts_s) {
        const auto at = std::lower_bound(s.begin(), s.end(), known,
                                         [](const TrendSample& a, double t) { return a.t_s < t; });
        if (at != s.begin() && at != s.end())
            cuts.push_back(static_cast<std::size_t>(at - s.begin()));
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

void drop_warm_up(const std::vector<TrendSample>& s, std::vector<Stretch>& stretches,
                  const TrendOptions& options) {
    std::vector<Stretch> kept;
    for (Stretch& x : stretches) {
        if (x.last - x.first < 12) continue;
        const double from = s[x.first].t_s, to = s[x.last - 1].t_s;
        const double start = from + std::max(options.warm_up_share * (to - from),
                                             std::min(600.0, 0.4 * (to - from)));
        while (x.first < x.last && s[x.first].t_s < start) ++x.first;
        if (x.last - x.first >= 8) kept.push_back(x);
    }
    stretches = std::move(kept);
}

std::vector<FloorPoint> floor_points(const std::vector<TrendSample>& s,
                                     const std::vector<Stretch>& stretches, int blocks,
                                     double& noise) {
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
            for (; i < x.last && s[i].t_s < end; ++i)
                values.push_back(s[i].value), times.push_back(s[i].t_s);
            if (values.size() < 3) continue;  // missing samples: no floor to speak of
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
    out.erase(std::remove_if(out.begin(), out.end(),
                             [&](const FloorPoint& p) {
                                 return count[static_cast<std::size_t>(p.stretch)] < 4;
                             }),
              out.end());
    return out;
}

double theil_sen(const std::vector<FloorPoint>& floor) {
    std::vector<double> slopes;
    for (std::size_t i = 0; i < floor.size(); ++i)
        for (std::size_t j = i + 1; j < floor.size(); ++j)
            if (floor[i].stretch == floor[j].stretch && floor[j].t_s > floor[i].t_s)
                slopes.push_back((floor[j].value - floor[i].value) / (floor[j].t_s - floor[i].t_s));
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
        for (; to < floor.size() && floor[to].stretch == floor[from].stretch; ++to)
            level.push_back(floor[to].value - slope * floor[to].t_s), mean_t += floor[to].t_s;
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

double sample_correlation(const std::vector<TrendSample>& s, const std::vector<Stretch>& stretches,
                          double slope) {
    double top = 0, bottom = 0, n = 0;
    for (const Stretch& x : stretches) {
        std::vector<double> level;
        for (std::size_t i = x.first; i < x.last; ++i)
            level.push_back(s[i].value - slope * s[i].t_s);
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

}  // namespace oomlab::diagnosis::trend_parts
