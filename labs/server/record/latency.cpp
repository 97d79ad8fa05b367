#include "labs/server/record/latency.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace oomlab::server {

namespace {
constexpr double kBin = 1e-4;
constexpr std::size_t kBins = 600000;   // one minute

double mean(const std::vector<double>& v) {
    return v.empty() ? -1 : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
}  // namespace

double percentile(std::vector<double> v, double p) {
    if (v.empty()) return -1;
    std::sort(v.begin(), v.end());
    const double at = p / 100 * static_cast<double>(v.size() - 1);
    const std::size_t low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, v.size() - 1);
    return v[low] + (at - static_cast<double>(low)) * (v[high] - v[low]);
}

void Latency::gap(double seconds) {
    std::size_t bin = static_cast<std::size_t>(std::max(0.0, seconds) / kBin);
    bin = std::min(bin, kBins - 1);
    if (gaps_.size() <= bin) gaps_.resize(bin + 1, 0);
    ++gaps_[bin];
    ++gap_count_;
}

void Latency::request(double ttft_s, double tpot_s, double e2e_s, bool has_tpot) {
    ttft_.push_back(ttft_s);
    if (has_tpot) tpot_.push_back(tpot_s);
    e2e_.push_back(e2e_s);
}

void Latency::fill(trace::FinishRecord& r) const {
    const auto gap_percentile = [&](double p) {
        if (gap_count_ == 0) return -1.0;
        const double rank = p / 100 * static_cast<double>(gap_count_ - 1);
        double seen = 0;
        for (std::size_t i = 0; i < gaps_.size(); ++i) {
            seen += gaps_[i];
            if (seen > rank) return (static_cast<double>(i) + 0.5) * kBin;
        }
        return static_cast<double>(gaps_.size()) * kBin;
    };
    r.ttft_mean_s = mean(ttft_);
    r.ttft_p50_s = percentile(ttft_, 50);
    r.ttft_p99_s = percentile(ttft_, 99);
    r.tpot_mean_s = mean(tpot_);
    r.tpot_p50_s = percentile(tpot_, 50);
    r.tpot_p99_s = percentile(tpot_, 99);
    r.itl_p50_s = gap_percentile(50);
    r.itl_p99_s = gap_percentile(99);
    r.e2e_mean_s = mean(e2e_);
    r.e2e_p99_s = percentile(e2e_, 99);
}

}  // namespace oomlab::server
