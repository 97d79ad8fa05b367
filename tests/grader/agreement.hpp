// Agreement of machine marks with people's marks, as the tests and the notes report it.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace oomlab::grader::test {

struct Agreement {
    std::vector<double> got;
    std::vector<double> want;

    void add(double machine, double person) {
        got.push_back(machine);
        want.push_back(person);
    }
    double mean_error() const {
        double sum = 0;
        for (std::size_t i = 0; i < got.size(); ++i) sum += std::abs(got[i] - want[i]);
        return sum / static_cast<double>(got.size());
    }
    double pass_agreement(double pass = 60) const {
        std::size_t same = 0;
        for (std::size_t i = 0; i < got.size(); ++i) same += (got[i] >= pass) == (want[i] >= pass);
        return static_cast<double>(same) / static_cast<double>(got.size());
    }
    double correlation() const { return correlate(got, want); }
    double rank_correlation() const { return correlate(ranks(got), ranks(want)); }

  private:
    static double correlate(const std::vector<double>& a, const std::vector<double>& b) {
        const auto n = static_cast<double>(a.size());
        const double ma = std::accumulate(a.begin(), a.end(), 0.0) / n, mb = std::accumulate(b.begin(), b.end(), 0.0) / n;
        double saa = 0, sbb = 0, sab = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            saa += (a[i] - ma) * (a[i] - ma);
            sbb += (b[i] - mb) * (b[i] - mb);
            sab += (a[i] - ma) * (b[i] - mb);
        }
        return saa * sbb == 0 ? 0 : sab / std::sqrt(saa * sbb);
    }
    static std::vector<double> ranks(const std::vector<double>& v) {
        std::vector<std::size_t> order(v.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return v[a] < v[b]; });
        std::vector<double> out(v.size());
        for (std::size_t i = 0; i < order.size();) {
            std::size_t j = i;
            while (j < order.size() && v[order[j]] == v[order[i]]) ++j;
            for (std::size_t k = i; k < j; ++k) out[order[k]] = static_cast<double>(i + j - 1) / 2;
            i = j;
        }
        return out;
    }
};

}  // namespace oomlab::grader::test
