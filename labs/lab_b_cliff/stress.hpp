// The test that is routinely skipped: the longest accepted prompt at the largest batch, and the
// longest output. Works out those extremes from the gateway's caps and the server's own limits.
#pragma once

#include <string>
#include <vector>

#include "labs/lab_b_cliff/cliff.hpp"

namespace oomlab::lab_b {

struct StressPlan {
    u64 longest_prompt = 0, batch = 0, n = 1, longest_output = 0, long_outputs = 0;
    std::string scenario_text;          // ready to run
    std::vector<std::string> lines;     // what is sent, and which limit says so
};
// On failure: as limits_of(); usage when the gateway accepts nothing at all.
Result<StressPlan> plan_stress(const CliffSetup& setup, const Limits& limits);

}  // namespace oomlab::lab_b
