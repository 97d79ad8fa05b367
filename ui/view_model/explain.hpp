// Why it failed: the figures of a failure put in the order in which a person asks for them, and the
// chart of the six types with the way that the diagnosis took. Pure functions; the type, its evidence
// and what would have made it fit are the diagnosis's own (labs/diagnosis/six_types.hpp).
#pragma once

#include <string>
#include <vector>

#include "labs/diagnosis/six_types.hpp"
#include "ui/view_model/model.hpp"

namespace oomlab::view {

struct WhyLine {
    std::string label;
    u64 bytes;
    std::string note;   // what the figure means here; may be empty
};

struct Explanation {
    std::string headline;  // one sentence
    u64 asked_bytes = 0;   // what the driver was asked for
    u64 short_by_bytes = 0;
    std::vector<WhyLine> lines;
};
Explanation explain(const trace::FailureRecord& failure);

// The chapter's chart: six questions in the contract's order, answered as far as it goes.
struct ChartNode {
    const char* question;
    const char* yes;          // the type it leads to
    int type;                 // its number
    enum class Answer { not_asked, no, yes } answer = Answer::not_asked;
    std::string because;      // the figure behind the answer
};
struct Chart {
    std::vector<ChartNode> nodes;
    int type = 0;             // 0: nothing failed
    const char* otherwise;    // where the chart ends when every answer is no
};
// Lit up to the diagnosis's type; what was ruled out before it is said at its question.
Chart chart_of(const diagnosis::Diagnosis& diagnosis);

}  // namespace oomlab::view
