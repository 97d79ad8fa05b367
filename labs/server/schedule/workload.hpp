// Who arrives when, and with what: planned requests, a Poisson or even stream with a rate that may
// follow the day, or a closed loop. A function of the seed alone; lengths, times and cancellations
// come from separate streams, so that changing one does not shift another. Not thread safe.
#pragma once

#include <optional>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/server/schedule/sequence.hpp"

namespace oomlab::server {

class Workload {
  public:
    explicit Workload(const Scenario::Workload& spec);

    // When the next request arrives; 1e300 when none will (closed loop: none is due now).
    double next_at() const { return next_ ? next_->at_s : 1e300; }
    Arrival pop();
    // Closed loop: a request has ended at `now_s`, its client sends the next one.
    void finished(double now_s);
    void set_rate(double per_second, double now_s);
    u64 tokens_max() const;    // the longest prompt that may come, for reports

  private:
    void advance();
    double rate_at(double t) const;
    std::optional<double> next_stream_time();
    u64 draw(const TokenDist& dist, Prng& prng) const;

    Scenario::Workload spec_;
    Prng times_, prompts_, outputs_, cancels_;
    std::vector<PlannedRequest> planned_;   // expanded, by time
    std::size_t planned_at_ = 0;
    double stream_clock_ = 0;
    std::optional<double> stream_next_;
    u64 loop_started_ = 0;
    std::vector<double> loop_due_;          // closed loop: times at which clients send, in order
    std::size_t loop_at_ = 0;
    double rate_max_ = 0;
    std::optional<Arrival> next_;
};

}  // namespace oomlab::server
