// One run as the checks believe it: what the trace says, kept by the hash of scenario, seed and
// version, so that an unchanged file is not run again in practice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grader/checks/check.hpp"
#include "labs/runner/run_scenario.hpp"

namespace oomlab::course {

struct Served {
    u64 arrivals = 0, within_limits = 0, completed_within = 0, rejected_within = 0, failed_within = 0;
};

struct RunEvidence {
    std::string outcome, phase, message, cause, summary;
    int type = 0, exit_status = 0;
    bool simulated = true;
    u64 short_by_bytes = 0, peak_allocated = 0, device_total = 0;
    u64 activation_peak = 0, weights = 0, kv_pool = 0, context = 0, graphs = 0, communication = 0, workspace = 0;
    u64 failed_at_us = 0;
    Served served;
    std::vector<std::string> evidence;
    struct Sample {
        double at_s;
        u64 allocated, reserved, device_used;
    };
    std::vector<Sample> series;     // every sample_every
};

// Opens a learner's file: a regular file below the folder, at most 4 MiB, no symbolic link out.
Result<std::string> learner_text(const Folder& folder, const Exercise& e, const std::string& file);
// Runs a scenario file of the learner's, or takes what is remembered. `limits`: what the task promises
// to serve. On failure: file, or machine.
Result<RunEvidence> evidence_of(const Folder& folder, const Exercise& e, const std::string& file, const CheckOptions& options);

}  // namespace oomlab::course
