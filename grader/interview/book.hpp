// The learner's interview book: what was answered when, how well, how surely, and what is due.
//
// Plain JSON in <folder>/.oomlab/interview.json, written to a temporary neighbour and renamed, so that
// a kill at any moment leaves the old or the new book. A book that cannot be read is refused, never
// overwritten. Days are counted from 1970-01-01; nothing here reads a clock.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "grader/interview/fsrs.hpp"
#include "grader/interview/marking.hpp"

namespace oomlab::grader {

struct Attempt {
    i64 day = 0;
    int question = 0;
    double score = 0;
    int confidence = 0;  // 1 to 3, 0: not asked
    int seconds = 0;
    int self_agreed = -1;  // percent of the ideas where self-mark and machine agree, -1: no self-mark
    bool mock = false;
};

struct InterviewBook {
    i64 interview_day = -1;  // -1: no date
    std::array<Memory, kQuestions> memory{};
    std::vector<Attempt> attempts;  // at most kMaxAttempts, the newest
};

inline constexpr std::size_t kMaxAttempts = 2000;

Result<InterviewBook> load_book(const std::string& folder);
Result<void> save_book(const std::string& folder, const InterviewBook& book);

// "2026-12-01" to days and back. On failure: usage.
Result<i64> parse_day(std::string_view text);
std::string format_day(i64 day);

// The grade is derived, not asked: below the pass mark or a denied idea again; below 80 hard; easy from
// 95 on, within the time and surely; else good.
Grade grade_of(const Mark& mark, double pass, int confidence, int seconds);

void record(InterviewBook& book, const Attempt& attempt, Grade grade);

// Questions due today, the confidently wrong first, then by how much recall has fallen. Questions that
// were never asked come last, in their order.
std::vector<int> due_questions(const InterviewBook& book, i64 today);

// Points of certainty: right earns the confidence, wrong costs 0, 2 or 6.
int certainty_points(int confidence, bool right);

// A screen of figures: due, scores, calibration by confidence.
std::string stats_text(const InterviewBook& book, i64 today);

// Tab-separated cards with Anki's header lines: the questions, then one card an idea.
Result<std::string> anki_cards(const std::string& content_dir);

}  // namespace oomlab::grader
