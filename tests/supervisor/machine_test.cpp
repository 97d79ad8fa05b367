#include <doctest/doctest.h>

#include <algorithm>

#include "labs/supervisor/machine.hpp"
#include "tests/supervisor/support.hpp"

using namespace oomlab::supervisor;
using oomlab::supervisor::test::contains;

TEST_CASE("machine: a usable card is named with its memory and driver") {
    const auto f = gpu_finding(
        R"({"usable":true,"index":0,"name":"NVIDIA L4","total_bytes":23676846080,"free_bytes":null,)"
        R"("compute_capability":"8.9","driver":"13.0","cublas":true})");
    CHECK(f.health == Health::good);
    CHECK(contains(f.what, "NVIDIA L4, 22.05 GiB (unknown free), compute capability 8.9"));
    CHECK(contains(f.why, "13.0"));
}

TEST_CASE("machine: without a driver it is simulated, with CUDA's reason") {
    const auto f = gpu_finding(R"({"usable":false,"error":35,"name":"cudaErrorInsufficientDriver","reason":"no driver"})");
    CHECK(f.health == Health::info);
    CHECK(contains(f.what, "simulated"));
    CHECK(f.why == "no driver (cudaErrorInsufficientDriver 35)");
}

TEST_CASE("machine: whatever a probe prints, the finding is one safe line") {
    for (const char* line : {"", "Segmentation fault", "[]", "{}", "{\"usable\":1}", "{\"usable\":true}",
                             "{\"usable\":true,\"name\":\"\\u001b[31m\",\"total_bytes\":-1}", "\xff\xfe"}) {
        const auto f = gpu_finding(line);
        CHECK_FALSE(contains(f.what, "\x1b"));
        CHECK_FALSE(f.what.empty());
    }
}

TEST_CASE("machine: a missing server stops the course, the rest of the topics are there once") {
    const auto findings = examine_machine({"/no/such/folder", false});
    const auto health = [&](const char* topic) {
        const auto it = std::find_if(findings.begin(), findings.end(),
                                     [&](const Finding& f) { return f.topic == topic; });
        REQUIRE(it != findings.end());
        return it->health;
    };
    CHECK(health("server") == Health::missing);
    CHECK(health("gpu") == Health::info);
    for (const char* topic : {"kernel log", "display", "terminal", "disk", "processor", "memory", "build"}) {
        CHECK(std::count_if(findings.begin(), findings.end(),
                            [&](const Finding& f) { return f.topic == topic; }) == 1);
    }
    for (const auto& f : findings) CHECK(f.what.find('\n') == std::string::npos);
}
