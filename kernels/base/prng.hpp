// The only source of randomness: SplitMix64-seeded xoshiro256**, with our own distributions, since
// the standard ones differ between libraries. Same seed, same numbers, on every machine.
//
// `fork("arrivals")` gives a child stream that depends on the parent's seed and the name alone, so
// that one more draw in one place never shifts another. Not thread safe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace oomlab {

class Prng {
  public:
    explicit Prng(std::uint64_t seed);

    // A child that does not depend on how often this one was drawn from.
    Prng fork(std::string_view name) const;

    std::uint64_t next();
    // Uniform in [0, 1), 53 bits.
    double uniform();
    // Uniform in [0, n). REQUIRES: n > 0. No modulo bias.
    std::uint64_t below(std::uint64_t n);
    // Uniform in [lo, hi], both included.
    std::uint64_t between(std::uint64_t lo, std::uint64_t hi);
    bool chance(double p) { return uniform() < p; }
    // Mean 1/rate. REQUIRES: rate > 0.
    double exponential(double rate);
    double normal();
    // Log-normal by its own mean and coefficient of variation (not those of the logarithm).
    double lognormal(double mean, double cv);

    std::uint64_t seed() const { return seed_; }

  private:
    std::uint64_t seed_;
    std::array<std::uint64_t, 4> state_;
};

// FNV-1a, the one hash of ours that may reach a file.
std::uint64_t stable_hash(std::string_view text, std::uint64_t basis = 0xcbf29ce484222325ULL);

}  // namespace oomlab
