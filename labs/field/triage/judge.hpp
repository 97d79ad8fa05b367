// The decision: from facts to a report. No input or output, no patterns.
#pragma once

#include "labs/field/triage/causes.hpp"
#include "labs/field/triage/facts.hpp"
#include "labs/field/triage/triage.hpp"

namespace oomlab::triage {

struct Proof {
    Place place;
    std::string text;
    std::string why;
};

// A cause that something speaks for. `strength` is 0 … 100: 90 the engine's own words for exactly
// this, 70 figures and place agree, 50 the usual cause of such a line, below 40 not enough.
struct Claim {
    Cause cause;
    int type;
    double strength;
    std::vector<Proof> proofs;
    std::vector<std::string> against;
    bool host_kill =
        false;  // the host's own word that it killed for lack of memory stands behind it
};

class Case {
  public:
    explicit Case(const Facts& f) : facts(f) {}
    const Facts& facts;

    // Raises the claim to at least `strength`; adds evidence after it by `prove`.
    Claim& claim(Cause cause, double strength);
    Claim& claim(Cause cause, int type, double strength);
    static void prove(Claim& claim, const Fact* fact, std::string_view why = {});
    static void prove(Claim& claim, const TorchOom& oom, std::string_view why);
    void prove_series(Claim& claim, const Series& series, std::string_view why) const;
    // The first three lines of a signal and its last.
    void prove_all(Claim& claim, Signal signal) const;

    std::vector<Claim> claims;
    std::vector<std::string> figures;
    std::vector<RuledOut> ruled_out;
    void rule_out(Cause cause, std::string why, const Fact* fact = nullptr);

    // The first failure of device memory, and in which phase and under which frames it happened.
    struct DeviceFailure {
        const TorchOom* torch = nullptr;
        const Fact* fact = nullptr;  // when it is not PyTorch's sentence
        Place place;
        Phase phase = Phase::unknown;
        Frames frames;
        bool any() const { return torch != nullptr || fact != nullptr; }
    };
    DeviceFailure failure;
};

// One file each: they add claims.
void judge_planning(Case& c);       // type 1: the planner's own refusals and its sums
void judge_start_failure(Case& c);  // type 1: an allocation that failed during start-up
void judge_device(Case& c);         // types 1, 2 and the cap
void judge_pool(Case& c);           // type 3
void judge_growth(Case& c);         // type 4
void judge_host(Case& c);           // type 5
void judge_lookalike(Case& c);      // type 6

// The arithmetic of an out-of-memory message, in words.
std::vector<std::string> explain(const TorchOom& oom);

Report judge(const Facts& facts);

}  // namespace oomlab::triage
