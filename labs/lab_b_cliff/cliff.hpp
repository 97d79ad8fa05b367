// Lab B: the prompt length at which a configuration dies. One probe is one prefill of B prompts on a
// fresh server; a bisection is probes between a length that fits and one that does not. Used by the
// learner's `oomlab probe`, by `oomlab bisect`, and by the check, which bisects by itself.
//
// A probe keeps the configuration's model, server, allocator, host, device and faults. Its traffic,
// gateway and actions do not take part: the cliff is a property of the server.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "labs/runner/run_scenario.hpp"

namespace oomlab::lab_b {

struct CliffSetup {
    std::string scenario_path;
    std::string device;                 // empty: the scenario's own
    std::optional<u64> seed;
};

struct ProbeResult {
    u64 prompt_tokens = 0, batch = 1;
    bool fits = false;                  // every prompt was served
    std::string outcome;                // "served", "gpu_oom", "refused", ...
    int oom_type = 0;
    // What the step held: the peak when it fits, what it had reached when it did not.
    u64 peak_activation_bytes = 0, profiled_activation_bytes = 0;
    u64 kv_tokens = 0, max_model_len = 0;
    bool simulated = true;
    std::string chip_reason, message;   // message: the server's own; empty when it fits
};

// On failure: a scenario that cannot be read, or a machine that cannot run it. A server that dies in
// another way than by the prompt (at load) is a result with that outcome, too.
Result<ProbeResult> probe(const CliffSetup& setup, u64 prompt_tokens, u64 batch);

// Lengths in question: [low, high], found to within `step`.
struct Range {
    u64 low = 0, high = 0, step = 128;
};
// 0 to what one prompt of a batch may have: max_model_len less the token that it generates.
Range default_range(u64 max_model_len);
// ceil(log2(range / step)) + 2.
u64 probe_allowance(const Range& range);

struct Cliff {
    bool found = false;                 // false: the longest prompt of the range fits as well
    u64 fits_tokens = 0, fails_tokens = 0;
    std::vector<ProbeResult> probes;    // in the order in which they were made
};
// `each` is told of every probe as it ends. On failure: as probe(); usage when even the shortest
// prompt fails (then it is no cliff: `oomlab run` says what it is).
Result<Cliff> bisect(const CliffSetup& setup, u64 batch, const Range& range,
                     const std::function<void(const ProbeResult&)>& each = {});

// max_model_len and max_num_seqs as the server resolves them, from a run of one short request.
struct Limits {
    u64 max_model_len = 0, max_num_seqs = 0, kv_tokens = 0;
    runner::RunResult run;
};
Result<Limits> limits_of(const CliffSetup& setup);

}  // namespace oomlab::lab_b
