// The contract of every chip, on the real chip's host code over the fake runtime.
#include <doctest/doctest.h>

#include "tests/cuda/scenario.hpp"
#include "tests/device/device_contract.hpp"

using namespace oomlab;
using namespace oomlab::test;

TEST_CASE("cuda: the host code keeps the contract of a device") {
    FakeCuda fake;
    contract::check_device({.open = [&] { return open_fake(fake); }});
    CHECK(fake.live() == 0);
}

TEST_CASE("cuda: the host code keeps the contract under a memory limit") {
    FakeCuda fake(80 * kGiB);
    contract::check_device({.open = [&] { return open_fake(fake, 2 * kGiB); }});
    CHECK(fake.live() == 0);
}
