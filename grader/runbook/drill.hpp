// The drill: incidents are played through a runbook's own decision table. Does it lead to the right
// type and to a safe step, and never to a dangerous one?
//
// Incidents are cards in content/runbook/incidents/; their figures are drawn by seed, so the same seed
// plays the same drill on every machine. All six types come up, look-alikes too: a table with one type
// for everything cannot pass.
#pragma once

#include <string>
#include <vector>

#include "grader/runbook/decision_table.hpp"

namespace oomlab::grader {

struct Incident {
    std::string id;
    std::string story;
    std::string because;             // why it is this type, told after the drill
    std::string basis;               // "simulator" or "field"
    std::vector<int> types;          // any of these is right, the first is best
    std::vector<std::string> cures;  // at least one of them must be among the steps
    Facts facts;
    std::map<std::string, std::pair<double, double>> ranges;  // numbers drawn at play
    bool look_alike = false;
};

// All cards. On failure: parse with file:line:column.
Result<std::vector<Incident>> load_incidents(const std::string& content_dir, const DrillLanguage& language);

inline constexpr u32 kDrillDefault = 30;
inline constexpr u32 kDrillLeast = 24;

struct Played {
    std::string id;
    std::string story;
    std::string because;
    Facts facts;
    u32 rule_line = 0;  // 0: no rule held
    int given = 0;
    std::vector<int> wanted;
    std::vector<std::string> steps;
    std::vector<std::string> cures;
    bool right_type = false;
    bool safe_step = false;
    std::vector<std::string> dangers;
};

struct DrillResult {
    u64 seed = 0;
    std::vector<Played> played;
    u32 right_types = 0;
    u32 safe_steps = 0;
    u32 dangers = 0;
    double score = 0;  // 0 to 100
    bool pass = false;
};

// REQUIRES: count >= kDrillLeast; at least one card of each type.
DrillResult play_drill(const DecisionTable& table, const std::vector<Incident>& cards, const DrillLanguage& language, u64 seed, u32 count = kDrillDefault);

std::string drill_as_json(const DrillResult& result);
std::string drill_as_text(const DrillResult& result);

}  // namespace oomlab::grader
