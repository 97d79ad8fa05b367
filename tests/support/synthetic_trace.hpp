// A plausible run of an inference server, written through the real Writer: what the window's tests,
// pictures and benchmarks look at when no server is at hand. Same options, same bytes.
#pragma once

#include <string>

#include "kernels/base/bytes.hpp"

namespace oomlab::testing {

struct SyntheticRun {
    double seconds = 120;            // of serving
    double sample_every_s = 0.1;
    u64 requests = 240;              // four events each
    u64 seed = 7;
    bool ends_in_oom = true;         // a 30,000-token prefill that does not fit
    bool leaks = false;              // 40 MiB a minute of retained activations
    bool killed_by_host = false;     // evidence of the kernel's kill, no failure record
    bool recovers = false;           // the server is started again after the failure
    u32 map_blocks = 0;              // blocks of activations in each map; 0: a few hundred
    u64 virtual_log_bytes = 56 * kMiB;
};

// Makes the file. Aborts when it cannot: a test has no use for half a trace.
void write_synthetic_trace(const std::string& path, const SyntheticRun& run);

}  // namespace oomlab::testing
