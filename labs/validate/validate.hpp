// Published measurements, reproduced: each case runs our server (or its arithmetic) on the published
// workload and compares. Numbers and tolerances are data in content/validation; nothing is fitted.
//
// The time constants of a card (0.90 of the bandwidth, 0.65 of the operations, 1 ms a step) stand in
// its profile and are the same for every card.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"

namespace oomlab::validate {

struct Row {
    std::string what, unit;
    double published = 0, simulated = 0;
    double tolerance = 0;            // in units of `kind`
    enum class Kind { percent, points, absolute, at_most, at_least } kind = Kind::percent;

    double difference() const;       // percent, or published - simulated in units
    bool holds() const;
};

struct Report {
    std::string name, title, skipped;   // skipped: the reason, empty when it ran
    std::vector<Row> rows;
    std::vector<std::string> notes;
    double wall_s = 0, simulated_s = 0;
    bool holds() const;
};

struct Options {
    std::string serving;             // folder or .json of a measured run; empty: the default place
    std::vector<std::string> names;  // empty: all
};

// In order of name. On failure: Error (content missing or broken).
Result<std::vector<Report>> run_all(const Options& options);
std::vector<std::string> case_names();

}  // namespace oomlab::validate
