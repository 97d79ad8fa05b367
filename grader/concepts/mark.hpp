// Marks a text by a rubric: which ideas it states, which it only names, which it denies.
//
// It judges the presence and the stance of ideas; it does not understand. Pure and quick (a few
// milliseconds); the same text and rubric give the same mark on every machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grader/concepts/rubric.hpp"

namespace oomlab::grader {

enum class State : unsigned char { absent, mentioned, claimed, explained, contradicted, both };
std::string_view name_of(State state);

struct ConceptMark {
    std::string id;
    State state = State::absent;
    std::string where;  // the learner's own sentence, empty when absent
    std::string rule;   // the pattern that decided
    u32 line = 0;
    u32 token = 0;
    double share = 0;
};

struct Caught {
    std::string id;
    std::string where;
    std::string reply;
    std::string rule;
    u32 line = 0;
    u32 token = 0;
    bool dangerous = false;
};

struct Mark {
    double score = 0;  // 0 to 100
    bool pass = false;
    std::vector<ConceptMark> concepts;  // in the rubric's order
    std::vector<Caught> misconceptions;
    std::vector<std::string> notes;     // about the text as a whole: list, order, copied, too long
    u32 words = 0;
};

Mark mark_text(const Rubric& rubric, const Text& prepared);
Mark mark_answer(const Rubric& rubric, std::string_view answer);

// What to tell the learner: one thing done well, up to three gaps as questions, corrections, notes.
std::vector<std::string> feedback(const Rubric& rubric, const Mark& mark);

}  // namespace oomlab::grader
