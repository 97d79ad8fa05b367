// The learner's probes, remembered: how many are left, what lies between, what is ruled out already.
// One book a learner's folder (.oomlab/probes.json), one page a configuration and batch size; a
// changed configuration is another page. Written in one move after every probe.
#pragma once

#include <string>
#include <vector>

#include "labs/lab_b_cliff/cliff.hpp"

namespace oomlab::lab_b {

struct ProbePage {
    std::string configuration;     // hash of what a probe depends on
    u64 batch = 1;
    Range range;
    struct Entry {
        u64 prompt_tokens = 0;
        bool fits = false;
        u64 peak_activation_bytes = 0;
    };
    std::vector<Entry> entries;

    u64 allowance() const { return probe_allowance(range); }
    u64 left() const { return allowance() - std::min<u64>(allowance(), entries.size()); }
    // The longest that fits and the shortest that fails, so far.
    u64 low() const;
    u64 high() const;
    bool any_failed() const;
    bool narrow() const { return any_failed() && high() - low() <= range.step; }
    // What earlier probes say about this length already; empty: nothing.
    std::string ruled_out(u64 prompt_tokens) const;
};

class ProbeBook {
  public:
    // A missing book is an empty one. On failure: Error::parse for a file that is no book of ours.
    static Result<ProbeBook> open(const std::string& path);
    // The page, made on first use with this range.
    ProbePage& page(const std::string& configuration, u64 batch, const Range& range);
    Result<void> save() const;

  private:
    explicit ProbeBook(std::string path) : path_(std::move(path)) {}
    std::string path_;
    std::vector<ProbePage> pages_;
};

// Names a configuration: the scenario without its traffic, and the device.
Result<std::string> configuration_hash(const CliffSetup& setup);

}  // namespace oomlab::lab_b
