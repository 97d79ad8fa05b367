// Measures the constants of a card that its simulated twin needs: what the context and graphs take,
// which share of its peaks a product and a memory-bound op reach, and what a step costs besides.
//
// It goes through Device alone, so it also runs on the simulated chip, where it must find the very
// constants that the chip was made of (tests/cuda/calibrate_test.cpp).
#pragma once

#include <string>

#include "kernels/device/device.hpp"

namespace oomlab {

struct CardProfile {
    std::string name;
    u64 total_bytes = 0, context_bytes = 0;
    u64 graph_first_bytes = 0, graph_each_bytes = 0;
    int sm_major = 0, sm_minor = 0;
    bool has_bf16 = true;
    double peak_flops_16 = 0, peak_ops_8 = 0, peak_bytes_per_s = 0;
    double flops_share = 0, bandwidth_share = 0, step_overhead_s = 0;
    bool simulated = false;
};

// REQUIRES: a device without a context, and nobody else on the card. Takes about 5 seconds and up to
// 3 GiB or half of what is free. Everything taken is given back.
// On failure: the call that failed.
DeviceResult<CardProfile> calibrate(Device& device);

// As a profile that `sim:FILE` loads. `sources` says of every figure that it was measured, and how.
std::string profile_toml(const CardProfile& profile, const std::string& driver);

}  // namespace oomlab
