// A small model that really computes on the host: the same tokens come out however the server cuts,
// packs, caches or recomputes the work.
#include <doctest/doctest.h>

#include <set>

#include "tests/server/run_server.hpp"

using namespace oomlab;
using oomlab::test::run_server;

namespace {

std::string scenario(const std::string& server, const std::string& workload = "") {
    return "[device]\nname = \"sim:l4\"\n[model]\nconfig = \"tiny\"\n[server]\nmax_model_len = 256\nmax_num_seqs = 8\n"
           "enforce_eager = true\n" + server +
           "[workload]\nseed = 11\n" + workload +
           "[[workload.request]]\nprompt_tokens = 90\noutput_tokens = 60\n"
           "[[workload.request]]\nprompt_tokens = 37\noutput_tokens = 70\n"
           "[[workload.request]]\nprompt_tokens = 61\noutput_tokens = 50\nat = \"2ms\"\n";
}

std::vector<std::vector<i32>> tokens(const std::string& text, u64* preemptions = nullptr) {
    auto run = run_server(text);
    REQUIRE_MESSAGE(run->error.empty(), run->error);
    REQUIRE_MESSAGE(run->exit_status == 0, (run->console.lines.empty() ? "" : run->console.lines.back()));
    if (preemptions != nullptr) *preemptions = run->engine->recorder().counters.preemptions;
    return run->engine->finished_tokens();
}

}  // namespace

TEST_CASE("compute: tokens do not depend on chunked prefill, block size, prefix caching or batching") {
    const auto reference = tokens(scenario("max_num_batched_tokens = 256\n"));
    REQUIRE(reference.size() == 3);
    CHECK(reference[0].size() == 90 + 60);
    CHECK(reference[1].size() == 37 + 70);
    // The model says something: not one token for ever.
    CHECK(std::set<i32>(reference[0].begin() + 90, reference[0].end()).size() > 3);
    for (const char* other : {"max_num_batched_tokens = 16\n", "max_num_batched_tokens = 64\nenable_chunked_prefill = false\n",
                              "block_size = 1\n", "block_size = 48\n", "enable_prefix_caching = false\n",
                              "max_num_batched_tokens = 8\nmax_num_seqs = 1\n"}) {
        CAPTURE(other);
        std::string text = scenario(other);
        if (std::string(other).find("max_num_seqs") != std::string::npos) {
            text.replace(text.find("max_num_seqs = 8\n"), 17, "");
        }
        CHECK(tokens(text) == reference);
    }
}

TEST_CASE("compute: preemption and recompute bring the same tokens back") {
    const auto reference = tokens(scenario("max_num_batched_tokens = 256\n"));
    u64 preemptions = 0;
    // 17 blocks of 16: one sequence of 256 fits, three of about 100 do not.
    const auto squeezed = tokens(scenario("max_num_batched_tokens = 64\nnum_gpu_blocks_override = 17\n"), &preemptions);
    CHECK(preemptions > 0);
    CHECK(squeezed == reference);
}

TEST_CASE("compute: samples of one request share the prompt and agree") {
    const auto list = tokens(
        "[device]\nname = \"sim:l4\"\n[model]\nconfig = \"tiny\"\n[server]\nmax_model_len = 256\nenforce_eager = true\n"
        "[[workload.request]]\nprompt_tokens = 50\noutput_tokens = 8\nn = 3\n");
    REQUIRE(list.size() == 1);
    CHECK(list[0].size() == 58);
}
