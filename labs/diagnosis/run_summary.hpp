// A run in one object (the contract's keys) and in one screen of words. Made from facts alone.
#pragma once

#include <string>

#include "labs/diagnosis/six_types.hpp"

namespace oomlab::diagnosis {

struct SummaryOptions {
    std::string trace_path;
    // A drawn fault is for the learner to find: type and figures are said, cause and growth are not.
    bool withhold_cause = false;
    std::string next_command;   // the last line of the words; empty: none
};

// "served", "gpu_oom", ...: the supervisor's word; without one, what the trace alone proves.
std::string outcome_of(const RunFacts& facts);
int exit_status_of(const RunFacts& facts);

// One line of JSON, no newline at its end. Text from the server is made valid UTF-8.
std::string summary_json(const RunFacts& facts, const Diagnosis& diagnosis, const SummaryOptions& options);

// For a person; ends with a newline. Control characters of the server's text are replaced.
std::string summary_text(const RunFacts& facts, const Diagnosis& diagnosis, const SummaryOptions& options);

// Makes text from a file safe for a terminal: control characters become '?', newlines and tabs stay.
std::string printable(std::string_view text);

}  // namespace oomlab::diagnosis
