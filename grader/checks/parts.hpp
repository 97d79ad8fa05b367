// What the checks of the exercises share: a list of points under construction, and reading answers.
#pragma once

#include <map>
#include <string>

#include "grader/checks/evidence.hpp"

namespace oomlab::course {

struct Checklist {
    CheckResult result;

    CheckPoint& add(const std::string& id, const std::string& title, double max);
    static void decide(CheckPoint& p, bool good, std::string saw, std::string asked, std::string next, double partial = 0);
    static void block(CheckPoint& p, const std::string& after);
    static void broken(CheckPoint& p, const Error& error);
};

// A learner's answer file: flat tables of texts and numbers, "section.key" -> text. Unknown keys are
// fine, a wrong type is not. On failure: file, line and column.
Result<std::map<std::string, std::string>> read_answers(const Folder& folder, const Exercise& e, const std::string& file);
// Bytes, or nothing: "6.2 GiB", "123456".
std::optional<double> answer_bytes(const std::map<std::string, std::string>& answers, const std::string& key);
std::optional<double> answer_number(const std::map<std::string, std::string>& answers, const std::string& key);
// True when `text` mentions one word of the group "a|b|c" (case does not matter).
bool mentions(const std::string& text, const std::string& group);
// All groups; the ones that are missing are listed in `missing`.
bool mentions_all(const std::string& text, const std::vector<std::string>& groups, std::string& missing);
std::string lower_text(std::string text);

Result<CheckResult> check_induce(const Exercise& e, Folder& folder, const CheckOptions& options);
Result<CheckResult> check_cliff(const Exercise& e, Folder& folder, const CheckOptions& options);
Result<CheckResult> check_budget(const Exercise& e, Folder& folder, const CheckOptions& options);
Result<CheckResult> check_leak(const Exercise& e, Folder& folder, const CheckOptions& options);
Result<CheckResult> check_runbook(const Exercise& e, Folder& folder, const CheckOptions& options);
Result<CheckResult> check_interview(const Exercise& e, Folder& folder, const CheckOptions& options);
Result<CheckResult> check_incident(const Exercise& e, Folder& folder, const CheckOptions& options);

}  // namespace oomlab::course
