// The grade: one record, and every form that other systems read. Each form is made from the same
// record and checked before it is written: names are unique, totals add up, nothing is dropped.
#pragma once

#include <string>
#include <vector>

#include "grader/checks/check.hpp"

namespace oomlab::course {

struct Grade {
    std::vector<CheckResult> results;
    std::string folder_name;
    double wall_s = 0;
    double score() const;
    double max() const;        // of what was graded
    double max_all() const;
    bool passed() const;
};

// text | json | gradescope | junit | classroom50 | autolab | csv. On failure: usage (unknown form) or
// internal (the record does not add up).
Result<std::string> export_grade(const Grade& grade, const std::string& format);
// One exercise for a terminal.
std::string check_text(const CheckResult& result);
std::string check_json(const std::vector<CheckResult>& results);

}  // namespace oomlab::course
