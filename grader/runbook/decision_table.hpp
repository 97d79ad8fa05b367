// The decision table of a runbook: a fenced TOML block of rules, tried from the top; the first whose
// conditions all hold decides type and steps.
//
//   [[rule]]
//   if = { exit_code = 137, kernel_log_oom = true }     # values, lists of values, or "> 20000", ">= 0.95"
//   type = 5
//   steps = ["capture", "shed_load", "raise_host_limit"]
//
// A rule without `if` always holds. Learner input: unknown facts, values and steps are refused with
// line, column and the nearest known name; nothing is executed.
#pragma once

#include <string>
#include <vector>

#include "grader/runbook/facts.hpp"
#include "grader/runbook/markdown.hpp"

namespace oomlab::grader {

struct Condition {
    enum class Op : unsigned char { equal, less, less_equal, greater, greater_equal, differs } op = Op::equal;
    std::string fact;
    std::vector<FactValue> values;  // any of them, for equal
};

struct Rule {
    u32 line = 0;  // in the runbook
    int type = 0;
    std::vector<Condition> conditions;
    std::vector<std::string> steps;
};

struct DecisionTable {
    u32 line = 0;
    std::vector<Rule> rules;
};

// Finds the block in a runbook and reads it. On failure: usage when there is none or more than one,
// parse with file:line:column otherwise.
Result<DecisionTable> find_decision_table(const Markdown& runbook, const std::string& file, const DrillLanguage& language);

// The first rule that holds, or nullptr.
const Rule* decide(const DecisionTable& table, const Facts& facts);

}  // namespace oomlab::grader
