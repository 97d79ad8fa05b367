// A runbook's mark: content by concept rubric, structure, commands that exist, nothing dangerous.
//
// Headings may be named as the writer likes. What cannot be judged here: whether the numbers are right
// for the writer's own service (lab E compares them) and whether a colleague could follow it (the drill).
#pragma once

#include <memory>
#include <string>

#include "grader/concepts/mark.hpp"
#include "grader/runbook/commands.hpp"
#include "grader/runbook/markdown.hpp"

namespace oomlab::grader {

struct RunbookRules {
    std::unique_ptr<Rubric> rubric;
    CommandBook commands;
};
Result<RunbookRules> load_runbook_rules(const std::string& content_dir);

struct RunbookMark {
    Mark mark;
    CommandReport commands;
    u32 placeholders = 0;  // TBD, TODO, <fill in>
};

// On failure: usage (too large) or parse.
Result<RunbookMark> mark_runbook(const RunbookRules& rules, std::string_view source);

std::string runbook_as_json(const RunbookRules& rules, const RunbookMark& mark);
std::string runbook_as_text(const RunbookRules& rules, const RunbookMark& mark);

}  // namespace oomlab::grader
