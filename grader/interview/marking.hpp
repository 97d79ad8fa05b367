// The seven questions: where their rubrics stand, and a mark as JSON or as text for a person.
#pragma once

#include <memory>
#include <string>

#include "grader/concepts/mark.hpp"
#include "grader/concepts/rubric.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::grader {

inline constexpr int kQuestions = 7;

// The rubric of question 1 to 7 under a content folder. On failure: usage (no such question) or parse.
Result<std::unique_ptr<Rubric>> load_question(const std::string& content_dir, int number);

// One object: score, pass, concepts[] {id, state, where, line}, dangerous[], misconceptions[], feedback[].
std::string mark_as_json(const Rubric& rubric, const Mark& mark);

// The same for a terminal, without control characters from the answer.
std::string mark_as_text(const Rubric& rubric, const Mark& mark);

// What this marking can and cannot judge; shown wherever a mark is.
std::string_view marking_limits();

}  // namespace oomlab::grader
