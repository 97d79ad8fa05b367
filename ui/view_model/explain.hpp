// Why it failed: the figures of a failure put in the order in which a person asks for them, and what
// would have made the request fit, largest first. Pure functions of the record.
#pragma once

#include <string>
#include <vector>

#include "ui/view_model/model.hpp"

namespace oomlab::view {

struct WhyLine {
    std::string label;
    u64 bytes;
    std::string note;   // what the figure means here; may be empty
};

struct Remedy {
    std::string what;      // "bound the prefill to what was profiled (enable_chunked_prefill)"
    u64 frees_bytes;
    bool enough;           // alone it would have made this request fit
};

struct Explanation {
    std::string headline;  // one sentence
    u64 asked_bytes = 0;   // what the driver was asked for
    u64 short_by_bytes = 0;
    std::vector<WhyLine> lines;
    std::vector<Remedy> remedies;   // by bytes, largest first
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
// What the figures of this window say. `grown`: a floor of allocated, of the gap, or of what is
// outside was seen to rise while requests completed; `grown_because` names it.
Chart decide(const trace::FailureRecord* failure, bool host_killed, bool grown,
             const std::string& grown_because);

}  // namespace oomlab::view
