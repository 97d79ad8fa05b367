// The scenarios of content/scenarios from end to end: each fails as its name says, and the healthy
// one beside it serves everything.
#include <doctest/doctest.h>

#include "tests/e2e/program.hpp"
#include "tests/support/temp_dir.hpp"

using namespace oomlab;
using namespace oomlab::testing;
using oomlab::test::TempDir;

namespace {

struct Expected {
    const char* name;
    int exit_status;
    const char* outcome;
    int type;
    const char* cause;
    const char* phase;
};

void runs_as(const Expected& e) {
    const TempDir dir;
    const Ran ran = shell({"run", scenario(e.name), "--json", "--trace", dir.path().string() + "/t.omtrace"});
    if (ran.exit_status == 3 && std::string(e.name).rfind("type5", 0) == 0) {
        MESSAGE("skipped: this machine cannot limit host memory: ", ran.err);
        return;
    }
    CAPTURE(e.name);
    CAPTURE(ran.err);
    CHECK(ran.exit_status == e.exit_status);
    const auto j = ran.json();
    REQUIRE(j.is_object());
    CHECK(j["outcome"] == e.outcome);
    CHECK(j["exit_status"] == e.exit_status);
    CHECK(j["simulated"] == true);
    CHECK(j["phase"] == e.phase);
    if (e.type == 0) {
        CHECK(j["oom_type"].is_null());
        CHECK(j["cause"].is_null());
        CHECK(j["requests"]["completed"] == j["requests"]["received"]);
        CHECK(j["requests"]["failed"] == 0);
    } else {
        CHECK(j["oom_type"] == e.type);
        CHECK(j["cause"] == e.cause);
        CHECK(j["evidence"].size() >= 2);
    }
}

void serves(const char* name) { runs_as({name, 0, "served", 0, "", "serving"}); }

}  // namespace

TEST_SUITE("six types end to end") {

TEST_CASE("type 1: 16-bit weights instead of 4-bit ones, L4 and H100") {
    for (const char* card : {"l4", "h100"}) {
        runs_as({(std::string("type1-") + card + "-fails").c_str(), 1, "gpu_oom", 1, "weights_exceed_memory", "weights"});
        serves((std::string("type1-") + card).c_str());
    }
}

TEST_CASE("type 2: one long prompt processed whole, L4 and H100") {
    for (const char* card : {"l4", "h100"}) {
        runs_as({(std::string("type2-") + card + "-fails").c_str(), 1, "gpu_oom", 2, "prefill_activation_spike", "serving"});
        serves((std::string("type2-") + card).c_str());
    }
}

TEST_CASE("type 3: KV on demand without preemption, and its cure, L4 and H100") {
    for (const char* card : {"l4", "h100"}) {
        runs_as({(std::string("type3-") + card + "-fails").c_str(), 1, "gpu_oom", 3, "kv_exhausted_no_preemption", "serving"});
        serves((std::string("type3-") + card).c_str());
        serves((std::string("type3-") + card + "-cured").c_str());
    }
}

TEST_CASE("type 4: finished requests kept, an hour on an L4") {
    runs_as({"type4-l4-fails", 1, "gpu_oom", 4, "leak_retained_requests", "serving"});
    serves("type4-l4");
}

TEST_CASE("type 4: finished requests kept, on an H100") {
    runs_as({"type4-h100-fails", 1, "gpu_oom", 4, "leak_retained_requests", "serving"});
}

TEST_CASE("type 5: a whole checkpoint in too little host memory, 137") {
    runs_as({"type5-fails", 137, "host_oom", 5, "host_checkpoint_copies", "host_load"});
    serves("type5");
}

TEST_CASE("type 6: an illegal access, and a wrapper that says out of memory, L4 and H100") {
    for (const char* card : {"l4", "h100"}) {
        runs_as({(std::string("type6-") + card + "-fails").c_str(), 1, "cuda_error", 6, "illegal_access", "serving"});
        runs_as({(std::string("type6-") + card + "-wrapped-fails").c_str(), 1, "cuda_error", 6, "fault_reported_as_memory", "serving"});
        serves((std::string("type6-") + card).c_str());
    }
}

}  // TEST_SUITE
