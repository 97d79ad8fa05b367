// Calibration on a simulated chip must find the constants that the chip was made of; the profile it
// writes loads again as the same chip.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kernels/cuda/calibrate.hpp"
#include "kernels/sim/sim_device.hpp"
#include "labs/catalog/gpu_profile.hpp"
#include "tests/cuda/scenario.hpp"

using namespace oomlab;
using namespace oomlab::test;

namespace {

SimProfile some_chip() {
    SimProfile p = plain_sim_profile(24 * kGiB);
    p.props.name = "Some \"Chip\"";
    p.props.sm_major = 8;
    p.props.sm_minor = 9;
    p.props.peak_flops_16 = 121e12;
    p.props.peak_ops_8 = 242e12;
    p.props.peak_bytes_per_s = 300e9;
    p.props.flops_share = 0.7;
    p.props.bandwidth_share = 0.85;
    p.props.step_overhead_s = 0.4e-3;
    p.context_bytes = 402 * kMiB;
    p.first_graph_bytes = 150 * kMiB;
    p.further_graph_bytes = 6 * kMiB;
    return p;
}

}  // namespace

TEST_CASE("calibrate: a simulated chip gives back what it was made of") {
    auto device = open_sim_device(some_chip());
    const auto profile = calibrate(*device);
    REQUIRE(profile.has_value());
    CHECK(profile->simulated);
    CHECK(profile->total_bytes == 24 * kGiB);
    CHECK(profile->context_bytes == 402 * kMiB);
    CHECK(profile->graph_first_bytes == 150 * kMiB);
    CHECK(profile->graph_each_bytes == 6 * kMiB);
    CHECK(profile->flops_share == doctest::Approx(0.7).epsilon(0.001));
    CHECK(profile->bandwidth_share == doctest::Approx(0.85).epsilon(0.001));
    CHECK(profile->step_overhead_s == doctest::Approx(0.4e-3).epsilon(0.001));
    CHECK(device->memory().mem_info()->free_bytes == 24 * kGiB - 402 * kMiB);   // all given back

    const auto path = std::filesystem::temp_directory_path() /
                      ("oomlab_calibrated_" + std::to_string(getpid()) + ".toml");
    std::ofstream(path) << profile_toml(*profile, "13.0");
    const auto loaded = load_gpu_profile(path.string());
    std::filesystem::remove(path);
    REQUIRE_MESSAGE(loaded.has_value(), loaded.error().message);
    CHECK(loaded->name == "Some Chip");
    CHECK(loaded->total_bytes == 24 * kGiB);
    CHECK(loaded->context_bytes == 402 * kMiB);
    CHECK(loaded->graph_first_bytes == 150 * kMiB);
    CHECK(loaded->graph_each_bytes == 6 * kMiB);
    CHECK(loaded->sm_minor == 9);
    CHECK(loaded->peak_flops_16 == doctest::Approx(121e12));
    CHECK(loaded->flops_share == doctest::Approx(0.7));
    CHECK(loaded->bandwidth_share == doctest::Approx(0.85));
    CHECK(loaded->step_overhead_s == doctest::Approx(0.4e-3));
}

TEST_CASE("calibrate: on the host code of the real chip it measures and gives everything back") {
    FakeCuda fake;
    fake.runs_kernels = false;
    {
        auto device = open_fake(fake);
        const auto profile = calibrate(*device);
        REQUIRE(profile.has_value());
        CHECK_FALSE(profile->simulated);
        CHECK(profile->context_bytes == 340 * kMiB);
        CHECK(profile->graph_first_bytes == 10 * kMiB);
        CHECK(profile->graph_each_bytes == 10 * kMiB);
    }
    CHECK(fake.live() == 0);
}

TEST_CASE("calibrate: any call that fails ends it with the error and nothing is left") {
    for (u64 nth = 1; nth < 600; nth += 7) {
        FakeCuda fake;
        fake.runs_kernels = false;
        {
            auto device = open_fake(fake);
            fake.plan({.nth = nth, .for_ever = true});
            const auto profile = calibrate(*device);
            if (fake.failures() != 0 && profile.has_value()) CHECK(fake.failed_name() == "free");
        }
        CHECK(fake.live() == 0);
    }
}
