// The steps of the trend test. Private to trend.cpp, apart for the sake of their size.
#pragma once

#include <cstddef>
#include <vector>

#include "labs/diagnosis/trend.hpp"

namespace oomlab::diagnosis::trend_parts {

struct Stretch {
    std::size_t first = 0, last = 0;  // samples [first, last)
};

// Sorts by time, drops what is not finite and repeated times.
void tidy(std::vector<TrendSample>& samples);

// A restart: the level falls far below the floor of what came before, or falls back and stays.
std::vector<Stretch> split_at_restarts(const std::vector<TrendSample>& samples,
                                       const TrendOptions& options,
                                       std::vector<double>& restarts_s);
void drop_warm_up(const std::vector<TrendSample>& samples, std::vector<Stretch>& stretches,
                  const TrendOptions& options);

// Low points of about `blocks` equal spans of time; `noise` gets the spread inside blocks.
std::vector<FloorPoint> floor_points(const std::vector<TrendSample>& samples,
                                     const std::vector<Stretch>& stretches, int blocks,
                                     double& noise);

// Splits stretches where the level jumps between neighbours and stays (at most three times in all:
// more is a way of moving, not a change). Returns when.
std::vector<double> split_at_level_changes(const std::vector<TrendSample>& samples,
                                           std::vector<Stretch>& stretches);
// Subtracts a sine and its double frequency when they explain most of what a line leaves (at least
// 1.8 periods are seen). Returns the period, or 0.
double take_out_cycle(std::vector<TrendSample>& samples, const std::vector<Stretch>& stretches);

// Median of the slopes of all pairs within a stretch, per second.
double theil_sen(const std::vector<FloorPoint>& floor);

struct Residuals {
    double sum_squares = 0, time_squares = 0, lag1 = 0;
};
Residuals residuals(const std::vector<FloorPoint>& floor, double slope_per_s);

// Lag-1 correlation of the samples around the slope, corrected for what a fit hides; 0 to 1.
double sample_correlation(const std::vector<TrendSample>& samples,
                          const std::vector<Stretch>& stretches, double slope_per_s);
double samples_per_point(const std::vector<Stretch>& stretches, std::size_t points);

double middle_value(const std::vector<FloorPoint>& floor);
double student_quantile(double p, double df);
double median(std::vector<double> values);
double quantile_in_place(std::vector<double>& values, double share);
// Spread of samples [first, last) around their neighbours' median.
double sample_noise(const std::vector<TrendSample>& samples, std::size_t first, std::size_t last);

}  // namespace oomlab::diagnosis::trend_parts
