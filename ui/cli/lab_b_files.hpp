// What probe, bisect and stress have in common: which scenario, where the book of probes lies, and
// how a probe is said in one line.
#pragma once

#include <string>

#include "labs/lab_b_cliff/cliff.hpp"

namespace oomlab::cli {

// The file given, else scenario.toml of the current folder. On failure: Error::usage.
Result<std::string> scenario_or_default(const std::string& given);
// .oomlab/probes.json of the learner's folder around the scenario; empty outside of one.
std::string probe_book_path(const std::string& scenario);
std::string probe_line(const lab_b::ProbeResult& result);

}  // namespace oomlab::cli
