// Spaced repetition: FSRS-6 with its published default weights, no fitting (a learner of seven cards
// never has the thousand reviews that fitting wants). Days are whole numbers; the clock is the caller's.
// Formulas and weights: the scheduler of py-fsrs.
#pragma once

#include "kernels/base/bytes.hpp"

namespace oomlab::grader {

enum class Grade : int { again = 1, hard = 2, good = 3, easy = 4 };

struct Memory {
    double stability = 0;   // days until recall falls to 90%; 0: never reviewed
    double difficulty = 0;  // 1 to 10
    i64 last_day = 0;
};

// Probability of recall `days` after the last review, 0 to 1.
double recall(const Memory& memory, i64 days);
// The memory after a review on `day`.
Memory review(const Memory& memory, Grade grade, i64 day);
// Days until recall falls to `target`; at least 1.
i64 interval_days(double stability, double target = 0.90);

// The next day to review. With a date every card comes at least twice in the last seven days before
// it; without one (interview_day < 0) no interval is longer than 60 days.
i64 next_day(const Memory& memory, i64 today, i64 interview_day);

}  // namespace oomlab::grader
