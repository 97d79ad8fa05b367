// The exercises, as content/labs describes them: one folder an exercise, with lab.toml (what is asked),
// README.md (the task), the files a learner starts from, and solution/ (the same names).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "kernels/base/bytes.hpp"

namespace oomlab::course {

struct Variant {
    std::map<std::string, std::string> values;   // what @NAME@ in the files becomes
};

struct PredictLine {
    std::string key, ask;      // "phase", "In which phase will it fail?"
    std::string unit;          // "bytes", "tokens", "minutes", "" (a word)
};

struct Exercise {
    std::string id, title, kind;      // kind: induce | cliff | budget | leak | runbook | interview | incident
    std::string folder;               // content/labs/<id>
    int type = 0;                     // induce: the type asked for
    std::vector<std::string> files;   // that a learner gets and edits
    std::vector<std::string> hints;   // nudge, hint, fill-in, tell
    std::vector<PredictLine> predict;
    std::vector<Variant> variants;
    std::map<std::string, double> limits;                     // task limits and tolerances
    std::map<std::string, std::vector<std::string>> words;    // record: what an explanation mentions
    double points = 10;
    u64 version = 1;
};

// All of them in the course's order (content/course.toml). On failure: the file, place and remedy.
Result<std::vector<Exercise>> load_course();
Result<Exercise> load_exercise(const std::string& folder, const std::string& id);

}  // namespace oomlab::course
