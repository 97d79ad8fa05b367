// Latencies as the field measures them: TTFT from arrival to first token, TPOT over a request's
// further tokens, ITL between neighbouring tokens, E2E to the last one. Means are exact; ITL
// percentiles come from a histogram of 0.1 ms, the others from every request.
#pragma once

#include <vector>

#include "labs/trace/records.hpp"

namespace oomlab::server {

class Latency {
  public:
    void gap(double seconds);
    void request(double ttft_s, double tpot_s, double e2e_s, bool has_tpot);
    void fill(trace::FinishRecord& record) const;

  private:
    std::vector<double> ttft_, tpot_, e2e_;
    std::vector<unsigned> gaps_;   // histogram, 0.1 ms a bin, the last one open
    unsigned long long gap_count_ = 0;
};

// The p-th percentile (0..100) by linear interpolation, as numpy does; -1 for no values.
double percentile(std::vector<double> values, double p);

}  // namespace oomlab::server
