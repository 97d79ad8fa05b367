#include "labs/diagnosis/floors.hpp"

#include <algorithm>
#include <cmath>

namespace oomlab::diagnosis {

void FloorSeries::add(u64 completed, i64 time_us, u64 value) {
    if (!any_) {
        any_ = true;
        origin_ = completed;
    }
    if (!bins_.empty()) completed = std::max(completed, bins_.back().completed);   // it only grows
    const u64 index = (completed - std::min(completed, origin_)) / per_bin_;
    if (!bins_.empty() && index == index_) {
        Bin& b = bins_.back();
        b.completed = completed;
        b.time_us = time_us;
        b.low = std::min(b.low, value);
        return;
    }
    bins_.push_back({completed, time_us, value});
    index_ = index;
    if (bins_.size() <= kBins) return;
    // Bins of twice the width: each old one goes where its first request now belongs.
    std::vector<Bin> merged;
    u64 last = UINT64_MAX;
    per_bin_ *= 2;
    for (const Bin& b : bins_) {
        const u64 at = (b.completed - origin_) / per_bin_;
        if (at == last) {
            Bin& into = merged.back();
            into.low = std::min(into.low, b.low);
            into.completed = b.completed;
            into.time_us = b.time_us;
        } else {
            merged.push_back(b);
            last = at;
        }
    }
    bins_ = std::move(merged);
    index_ = last;
}

namespace {

double median(std::vector<double> v) {
    if (v.empty()) return 0;
    const auto mid = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
    std::nth_element(v.begin(), mid, v.end());
    return *mid;
}

using Bins = std::vector<FloorSeries::Bin>;

// Theil-Sen over bins [begin, end), bytes per completed request.
double slope(const Bins& bins, std::size_t begin, std::size_t end) {
    std::vector<double> slopes;
    for (std::size_t i = begin; i < end; ++i) {
        for (std::size_t k = i + 1; k < end; ++k) {
            const double dx = static_cast<double>(bins[k].completed) - static_cast<double>(bins[i].completed);
            const double dy = static_cast<double>(bins[k].low) - static_cast<double>(bins[i].low);
            if (dx > 0) slopes.push_back(dy / dx);
        }
    }
    return median(std::move(slopes));
}

double median_low(const Bins& bins, std::size_t begin, std::size_t end) {
    std::vector<double> v;
    for (std::size_t i = begin; i < end; ++i) v.push_back(static_cast<double>(bins[i].low));
    return median(std::move(v));
}

// Squared error of one line through the bins against that of the best single step.
bool one_step_fits_better(const Bins& bins, std::size_t begin, double line_slope) {
    const std::size_t n = bins.size() - begin;
    if (n < 6) return false;
    double mean_x = 0, mean_y = 0;
    for (std::size_t i = begin; i < bins.size(); ++i) {
        mean_x += static_cast<double>(bins[i].completed);
        mean_y += static_cast<double>(bins[i].low);
    }
    mean_x /= static_cast<double>(n);
    mean_y /= static_cast<double>(n);
    double line = 0, sum = 0, squares = 0;
    std::vector<double> y(n);
    for (std::size_t i = 0; i < n; ++i) {
        const auto& b = bins[begin + i];
        y[i] = static_cast<double>(b.low) - mean_y;
        const double r = y[i] - line_slope * (static_cast<double>(b.completed) - mean_x);
        line += r * r;
        sum += y[i];
        squares += y[i] * y[i];
    }
    double best = squares, left = 0;
    for (std::size_t split = 1; split < n; ++split) {
        left += y[split - 1];
        const double right = sum - left;
        const double l = static_cast<double>(split), r = static_cast<double>(n - split);
        best = std::min(best, squares - left * left / l - right * right / r);
    }
    return best < 0.9 * line;
}

}  // namespace

Rise rise_of(const FloorSeries& series, u64 quantum_bytes) {
    Rise rise;
    const Bins& bins = series.bins();
    if (bins.empty()) return rise;
    const std::size_t begin = bins.size() >= 8 ? bins.size() / 4 : std::min<std::size_t>(1, bins.size() - 1);
    const std::size_t n = bins.size() - begin;
    const std::size_t quarter = std::max<std::size_t>(1, n / 4);
    // What is said are two floors and what lies between them, so that a reader can check it; what
    // decides are medians of quarters, so that one odd bin cannot.
    rise.from_bytes = bins[begin].low;
    rise.to_bytes = bins.back().low;
    rise.completed = bins.back().completed - bins[begin].completed;
    rise.seconds = static_cast<double>(bins.back().time_us - bins[begin].time_us) * 1e-6;
    if (n < 4 || rise.completed == 0) return rise;
    const double grown = static_cast<double>(rise.grown_bytes());
    rise.bytes_per_request = grown / static_cast<double>(rise.completed);
    if (rise.seconds > 0) rise.bytes_per_hour = grown / rise.seconds * 3600.0;
    const double low = median_low(bins, begin, begin + quarter);
    const double high = median_low(bins, bins.size() - quarter, bins.size());
    const double all = slope(bins, begin, bins.size());
    if (high - low <= static_cast<double>(quantum_bytes)) return rise;
    if (one_step_fits_better(bins, begin, all)) {
        rise.level_change = true;
        return rise;
    }
    const std::size_t middle = begin + n / 2;
    const double first = slope(bins, begin, middle + 1), second = slope(bins, middle, bins.size());
    rise.risen = all > 0 && first >= 0.3 * all && second >= 0.3 * all;
    return rise;
}

}  // namespace oomlab::diagnosis
