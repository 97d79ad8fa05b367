// What a check says: for each point what was asked, what was seen, and one next step. "Not graded"
// is a state of its own and never a zero.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "grader/course/folder.hpp"

namespace oomlab::course {

enum class CheckState { pass, fail, blocked, not_run, error };
const char* check_state_name(CheckState s);

struct CheckPoint {
    std::string id, title;         // "happened", "It fails as type 1"
    CheckState state = CheckState::not_run;
    double score = 0, max = 0;
    std::string saw, asked, next;  // sentences; next: empty when passed
};

struct CheckResult {
    std::string exercise, title;
    std::vector<CheckPoint> points;
    double score() const;
    double max() const;            // of the points that were graded
    double max_all() const;
    bool passed() const;           // all points passed
    bool graded() const;           // something was judged
};

struct CheckOptions {
    bool fresh = false;            // run again whatever is remembered (a grade)
    std::function<void(const std::string&)> say;   // progress, one line each
};

// Checks one exercise in the learner's folder. On failure: a file that cannot be read, or a machine
// that cannot run; a wrong answer is a result, not a failure.
Result<CheckResult> check_exercise(const Exercise& e, Folder& folder, const CheckOptions& options);

}  // namespace oomlab::course
