// What is missing or wrong in a runbook, line by line, and the skeleton that a new one starts from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grader/runbook/drill.hpp"
#include "grader/runbook/marking.hpp"

namespace oomlab::grader {

struct Finding {
    enum class Weight : unsigned char { error, warning, note } weight = Weight::warning;
    u32 line = 0;  // 0: the file as a whole
    std::string text;
};

// Errors make `lint` say no: no usable decision table, a dangerous advice or step, a command that does
// not exist. Warnings are gaps.
Result<std::vector<Finding>> lint_runbook(const RunbookRules& rules, const DrillLanguage& language, std::string_view source, const std::string& file);

std::string findings_as_text(const std::vector<Finding>& findings, const std::string& file);
std::string findings_as_json(const std::vector<Finding>& findings);

// The skeleton with every fact and step explained in its table. It fails mark, lint and drill as it stands.
Result<std::string> runbook_skeleton(const std::string& content_dir, const DrillLanguage& language);

}  // namespace oomlab::grader
