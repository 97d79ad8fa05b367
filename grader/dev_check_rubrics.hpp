// The part of `oomlab dev check` that proves the rubrics: they load, are complete, and every rule in
// them earns its place on the corpus.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"

namespace oomlab::grader {

struct RubricFinding {
    bool error = true;      // false: worth a look, not wrong
    std::string place;      // "content/interview/q3.toml" or "corpus b3-07"
    std::string text;
};

// Checks content/interview/q1..q7.toml, content/rubrics/runbook.toml, the incidents and the drill's
// language under `content_dir`; with a `corpus_dir` (answers_*.jsonl: question, kind, score, answer)
// also that no wrong, stuffed, negated or off-topic answer passes, no strong one fails, and each
// required concept is caught at least once. Empty result: all well.
// On failure (unknown keys, broken patterns): the first error with file:line:column and the nearest name.
Result<std::vector<RubricFinding>> dev_check_rubrics(const std::string& content_dir, const std::string& corpus_dir);

}  // namespace oomlab::grader
