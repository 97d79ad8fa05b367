// An hour in a fixed amount of memory, with the smallest and largest value kept at every zoom.
//
// Tier 0 holds samples as they came; a bucket of tier k stands for 4^k samples in a row and keeps,
// for each channel, the last value, the smallest and the largest. Every tier is a ring of the same
// size, so the newest minutes are exact, and the whole run is always there, coarser. A spike of one
// sample never vanishes: it is somebody's `high` in every tier.
//
// Not thread safe. Memory: at most kTiers * kBuckets buckets (about 34 MiB), whatever the length.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "labs/trace/records.hpp"
#include "kernels/base/bytes.hpp"

namespace oomlab::view {

// The owners of memory come first, under their own numbers.
enum Channel : std::size_t {
    kAllocated = kOwners,
    kReserved,
    kDeviceUsed,
    kInactiveSplit,
    kKvUsed,      // blocks
    kRunning,     // sequences
    kWaiting,
    kPreempted,   // counter
    kChannels
};

struct Bucket {
    i64 begin_us = 0, end_us = 0;
    std::array<trace::Envelope, kChannels> value{};
};

class Tiers {
  public:
    static constexpr std::size_t kBuckets = 8192, kMerge = 4, kTiers = 9;

    // REQUIRES: samples come in order of time.
    void add(const Bucket& sample);

    struct Slice {
        std::vector<Bucket> buckets;   // in order of time, those that touch the range
        u64 samples_per_bucket = 1;
    };
    // The finest tier that reaches back to `from_us` with at most `most` buckets in the range.
    Slice slice(i64 from_us, i64 to_us, std::size_t most) const;

    // The newest bucket that begins at or before the moment, from the finest tier that has it.
    std::optional<Bucket> at(i64 time_us) const;

    u64 samples() const { return samples_; }
    i64 first_us() const { return first_us_; }
    i64 last_us() const { return last_us_; }
    std::size_t bytes_held() const;

  private:
    struct Tier {
        std::vector<Bucket> ring;   // grows to kBuckets, then the oldest is overwritten
        std::size_t oldest = 0;
        Bucket open;                // still being filled
        u64 open_samples = 0;

        std::size_t size() const { return ring.size() + (open_samples > 0 ? 1 : 0); }
        const Bucket& get(std::size_t i) const;
        std::size_t first_ending_at_or_after(i64 time_us) const;
    };
    std::array<Tier, kTiers> tiers_;
    u64 samples_ = 0;
    i64 first_us_ = 0, last_us_ = 0;
};

}  // namespace oomlab::view
