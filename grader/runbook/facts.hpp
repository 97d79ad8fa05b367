// The observable facts of an incident, which a runbook's decision table asks about, and their values.
//
// Known facts (name, kind, meaning) stand in content/runbook/facts.toml, so that the skeleton, the
// loader of incidents and the drill agree. A fact that nobody observed is absent: no condition on it
// holds.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::grader {

using FactValue = std::variant<bool, double, std::string>;

struct FactKind {
    enum class Kind : unsigned char { flag, number, word } kind = Kind::word;
    std::string meaning;
    std::vector<std::string> words;  // allowed values of a word
};

struct Step {
    std::string meaning;
    bool captures = false;   // saves evidence
    bool restarts = false;   // destroys evidence that was not saved
    std::string dangerous;   // why nobody should ever do it; empty: not dangerous
};

struct DrillLanguage {
    std::map<std::string, FactKind> facts;
    std::map<std::string, Step> steps;
};
Result<DrillLanguage> load_drill_language(const std::string& content_dir);

using Facts = std::map<std::string, FactValue>;

std::string show(const FactValue& value);

}  // namespace oomlab::grader
