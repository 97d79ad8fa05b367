// An interview, one question or all seven: ask, sure how much, self-mark, mark, two follow-ups chosen
// from what is missing, the model answer, the next review.
//
// Talks through a Dialogue, so that a terminal, a pipe and a test are the same to it; the clock is the
// Dialogue's too. Works to the end when the input stops early.
#pragma once

#include <string>
#include <vector>

#include "grader/interview/book.hpp"

namespace oomlab::grader {

class Dialogue {
  public:
    virtual ~Dialogue() = default;
    virtual void say(std::string_view text) = 0;
    // One line without its end. False: no more input.
    virtual bool line(std::string_view prompt, std::string& out) = 0;
    // Lines up to a line with a single dot, or the end of input. False: nothing came.
    virtual bool answer(std::string_view prompt, std::string& out) = 0;
    virtual i64 now_seconds() = 0;
};

struct AskOptions {
    std::string content_dir;
    int question = 0;
    bool follow_up = true;
};

// Asks one question and records the attempt in the book (the caller saves it).
// Returns the mark of the first answer; follow-ups teach, they do not raise it.
Result<Mark> ask_question(const AskOptions& options, InterviewBook& book, Dialogue& dialogue);

inline constexpr int kMockSeconds = 7 * 180;

// All seven in an order drawn by `seed`, against the clock, marks only at the end.
Result<double> mock_interview(const std::string& content_dir, u64 seed, InterviewBook& book, Dialogue& dialogue);

// At most two concepts worth asking about: denied or both first, then missing by weight, then named only.
std::vector<std::size_t> choose_follow_ups(const Rubric& rubric, const Mark& mark);

}  // namespace oomlab::grader
