// Is this a text that somebody wrote, or words thrown together? Measures by sentence and for the
// whole: keyword lists, empty phrases, and words in an order that no sentence has.
#pragma once

#include <vector>

#include "grader/concepts/matcher.hpp"

namespace oomlab::grader {

struct Prose {
    std::vector<bool> list;   // the sentence is a row of terms without a statement
    std::vector<bool> empty;  // the sentence praises or announces, and states nothing
    std::vector<bool> hedged; // the sentence has it both ways
    u32 list_items = 0;
    double list_share = 0;    // of all tokens
    double empty_share = 0;   // of all sentences
    double hedged_share = 0;  // of all sentences
    double disorder = 0;      // share of function words that stand where none can stand, 0..1
    u32 order_evidence = 0;   // function words that the figure rests on
    u32 mixed = 0;            // sentences begun small among large beginnings inside sentences
    u32 sentences = 0;
    bool shuffled() const {
        // Measured on 184 answers: no written one has mixed above 1, hardly a shuffled one is below 2.
        const bool mixed_much = (mixed >= 2 && mixed * 4 >= sentences) || (mixed >= 3 && mixed * 8 >= sentences);
        return mixed_much || (order_evidence >= 15 && disorder > 0.19);
    }
};

// Uses the sets `fluff` and `hedge` when the vocabulary defines them.
Prose judge_prose(const Text& text, const Occurrences& found, const Vocabulary& vocabulary);

bool is_function_word(std::string_view word);

}  // namespace oomlab::grader
