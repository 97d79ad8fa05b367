#include "grader/interview/fsrs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace oomlab::grader {
namespace {

// Default weights of FSRS-6.
constexpr std::array<double, 21> kW = {0.212,  1.2931, 2.3065, 8.2956, 6.4133, 0.8334, 3.0194, 0.001,  1.8722, 0.1666, 0.796,
                                       1.4835, 0.0614, 0.2629, 1.6483, 0.6014, 1.8729, 0.5425, 0.0912, 0.0658, 0.1542};
constexpr double kStabilityMin = 0.001;
constexpr i64 kIntervalMax = 60;   // without a date
constexpr i64 kLastDays = 7;       // before the interview
constexpr i64 kLastInterval = 3;   // so that a card comes twice in them

double factor() { return std::pow(0.9, -1 / kW[20]) - 1; }

double first_difficulty(int grade) { return kW[4] - std::exp(kW[5] * (grade - 1)) + 1; }

double next_difficulty(double difficulty, int grade) {
    const double damped = difficulty - kW[6] * (grade - 3) * (10 - difficulty) / 9;
    return std::clamp(kW[7] * first_difficulty(4) + (1 - kW[7]) * damped, 1.0, 10.0);
}

double same_day(double stability, int grade) {
    double gain = std::exp(kW[17] * (grade - 3 + kW[18])) * std::pow(stability, -kW[19]);
    if (grade >= 3) gain = std::max(gain, 1.0);
    return stability * gain;
}

double after_recall(const Memory& m, double r, int grade) {
    const double hard = grade == 2 ? kW[15] : 1;
    const double easy = grade == 4 ? kW[16] : 1;
    return m.stability * (1 + std::exp(kW[8]) * (11 - m.difficulty) * std::pow(m.stability, -kW[9]) * (std::exp((1 - r) * kW[10]) - 1) * hard * easy);
}

double after_lapse(const Memory& m, double r) {
    const double forgotten = kW[11] * std::pow(m.difficulty, -kW[12]) * (std::pow(m.stability + 1, kW[13]) - 1) * std::exp((1 - r) * kW[14]);
    return std::min(forgotten, m.stability / std::exp(kW[17] * kW[18]));
}

}  // namespace

double recall(const Memory& memory, i64 days) {
    if (memory.stability <= 0) return 0;
    return std::pow(1 + factor() * static_cast<double>(std::max<i64>(days, 0)) / memory.stability, -kW[20]);
}

Memory review(const Memory& memory, Grade grade, i64 day) {
    const int g = static_cast<int>(grade);
    Memory next;
    next.last_day = day;
    if (memory.stability <= 0) {
        next.stability = kW[static_cast<std::size_t>(g - 1)];
        next.difficulty = std::clamp(first_difficulty(g), 1.0, 10.0);
        return next;
    }
    const i64 passed = day - memory.last_day;
    if (passed < 1)
        next.stability = same_day(memory.stability, g);
    else if (grade == Grade::again)
        next.stability = after_lapse(memory, recall(memory, passed));
    else
        next.stability = after_recall(memory, recall(memory, passed), g);
    next.stability = std::max(next.stability, kStabilityMin);
    next.difficulty = next_difficulty(memory.difficulty, g);
    return next;
}

i64 interval_days(double stability, double target) {
    const double days = stability / factor() * (std::pow(target, -1 / kW[20]) - 1);
    return std::max<i64>(1, static_cast<i64>(std::llround(std::min(days, 36500.0))));
}

i64 next_day(const Memory& memory, i64 today, i64 interview_day) {
    if (memory.stability <= 0) return today;
    i64 days = interval_days(memory.stability);
    if (interview_day < today) return today + std::min(days, kIntervalMax);
    const i64 left = interview_day - today;
    days = left > kLastDays ? std::min(days, left - kLastDays) : std::min(days, kLastInterval);
    return std::min(today + days, std::max(interview_day - 1, today + 1));
}

}  // namespace oomlab::grader
