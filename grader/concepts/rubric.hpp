// A rubric: what a good answer says, what it must not say, and what to tell the learner.
//
// Rubrics are data in content/; this is their form in memory. Loading refuses unknown keys and
// compiles the patterns. A loaded rubric does not change; several threads may mark by it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grader/concepts/matcher.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::grader {

struct Concept {
    enum class Role : unsigned char { required, bonus };
    std::string id;
    std::string name;  // what a good answer says, one sentence
    Role role = Role::required;
    double weight = 1;
    double mention_share = 0.2;
    double claim_share = 0.9;
    std::vector<Pattern> claim;
    std::vector<Pattern> explain;  // empty: a reason, a consequence or a figure near the claim
    std::vector<Pattern> mention;
    std::vector<Pattern> anti;     // says the opposite
    std::string missing;           // follow-up question when it is missing
    std::string deepen;            // follow-up when it was only named or claimed
    std::vector<std::string> hints;  // nudge, hint, fill-in, tell
    std::string evidence;          // the exercise that shows it
};

struct Misconception {
    std::string id;
    std::vector<Pattern> any;
    double penalty = 15;  // points of 100
    double cap = 100;     // the score can be no higher, unless nearly all else is right and this stands alone
    bool fatal = false;    // the cap holds whatever else is right
    bool dangerous = false;
    std::string reply;    // the correction
};

struct Rubric {
    std::string id;
    int number = 0;
    std::string title;
    std::string question;
    std::string model_answer;
    double pass = 60;
    double full = 0.9;     // share of the required weight that earns 100
    double exponent = 1;   // below 1 is kinder to the first concepts
    u32 words_min = 40;
    u32 words_max = 180;
    bool names_count = false;  // a plain list of names is an answer, if a thin one
    bool questions_count = false;  // a question may be a step of a decision, not a doubt
    std::vector<Concept> concepts;
    std::vector<Misconception> misconceptions;
    Vocabulary vocabulary;
    std::string file;
};

// Paths: the sets of synonyms, the wrong beliefs that several rubrics share (may be empty), the rubric.
struct RubricFiles {
    std::string lexicon;
    std::string shared;
    std::string rubric;
};

// On failure: a parse error names file:line:column and, for an unknown key or set, the nearest known one.
Result<std::unique_ptr<Rubric>> load_rubric(const RubricFiles& files);

}  // namespace oomlab::grader
