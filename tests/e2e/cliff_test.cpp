// Lab B's commands: probes that are counted and remembered, the bisection, the stress run.
#include <doctest/doctest.h>

#include <filesystem>

#include "labs/lab_b_cliff/probe_book.hpp"
#include "tests/e2e/program.hpp"
#include "tests/support/temp_dir.hpp"

using namespace oomlab;
using namespace oomlab::testing;
using oomlab::test::TempDir;

namespace {

// Lab B's clean setting for the L4: by the law the cliff is near 14,000 tokens.
std::string cliff_scenario(bool chunked) {
    return std::string("[device]\nname = \"sim:l4\"\n[model]\nconfig = \"llama-3.1-8b\"\n[server]\ngpu_memory_utilization = 0.92\n"
                       "max_model_len = 24576\nmax_num_seqs = 16\nmax_num_batched_tokens = 2048\nenforce_eager = true\n"
                       "enable_chunked_prefill = ") +
           (chunked ? "true" : "false") + "\n";
}

}  // namespace

TEST_SUITE("cliff") {

TEST_CASE("probe: fits is 0, OOM is 1, and the activations are said") {
    const TempDir dir;
    write_text(dir.path().string() + "/scenario.toml", cliff_scenario(false));
    const Ran fits = shell({"probe", "--prompt-tokens", "4000"}, dir.path().string());
    CHECK(fits.exit_status == 0);
    CHECK(fits.out.find("fits  4000 prompt tokens") != std::string::npos);
    const Ran dies = shell({"probe", "--prompt-tokens", "20000"}, dir.path().string());
    CHECK(dies.exit_status == 1);
    CHECK(dies.out.find("OOM   20000 prompt tokens") != std::string::npos);
    CHECK(dies.out.find("GiB of activations") != std::string::npos);
    // The cliff is one of step tokens: four prompts of a quarter are as much.
    CHECK(shell({"probe", "--prompt-tokens", "5000", "--batch", "4"}, dir.path().string()).exit_status == 1);
    CHECK(shell({"probe", "--prompt-tokens", "3000", "--batch", "4"}, dir.path().string()).exit_status == 0);
}

TEST_CASE("probe: a learner's probes are counted, remembered, and ruled out") {
    const TempDir dir;
    std::filesystem::create_directories(dir.path().string() + "/.oomlab");
    write_text(dir.path().string() + "/scenario.toml", cliff_scenario(false));
    Ran ran = shell({"probe", "--prompt-tokens", "20000"}, dir.path().string());
    CHECK(ran.exit_status == 1);
    CHECK(ran.out.find("9 of 10 probes left") != std::string::npos);   // ceil(log2(24575/128)) + 2
    ran = shell({"probe", "--prompt-tokens", "22000"}, dir.path().string());
    CHECK(ran.exit_status == 1);
    CHECK(ran.err.find("already ruled out") != std::string::npos);
    ran = shell({"probe", "--prompt-tokens", "8000"}, dir.path().string());
    CHECK(ran.exit_status == 0);
    CHECK(ran.out.find("bracket: 8000 fits, 20000 fails; 8 of 10 probes left") != std::string::npos);
    // The bisection waits until the learner has found it.
    ran = shell({"bisect"}, dir.path().string());
    CHECK(ran.exit_status == 2);
    CHECK(ran.err.find("--show") != std::string::npos);
    // Another configuration is another page.
    write_text(dir.path().string() + "/scenario.toml", cliff_scenario(true));
    ran = shell({"probe", "--prompt-tokens", "20000"}, dir.path().string());
    CHECK(ran.exit_status == 0);
    CHECK(ran.out.find("9 of 10 probes left") != std::string::npos);
}

TEST_CASE("probe: a spent allowance and a damaged book are said in one line") {
    const TempDir dir;
    std::filesystem::create_directories(dir.path().string() + "/.oomlab");
    write_text(dir.path().string() + "/scenario.toml", cliff_scenario(false));
    auto book = lab_b::ProbeBook::open(dir.path().string() + "/.oomlab/probes.json");
    REQUIRE(book.has_value());
    const auto hash = lab_b::configuration_hash({dir.path().string() + "/scenario.toml", "", {}});
    REQUIRE(hash.has_value());
    lab_b::ProbePage& page = book->page(*hash, 1, lab_b::default_range(24576));
    for (u64 i = 0; i < page.allowance(); ++i) page.entries.push_back({1000, true, 1});
    REQUIRE(book->save().has_value());
    Ran ran = shell({"probe", "--prompt-tokens", "9000"}, dir.path().string());
    CHECK(ran.exit_status == 2);
    CHECK(ran.err.find("all 10 probes are spent") != std::string::npos);
    write_text(dir.path().string() + "/.oomlab/probes.json", "{\"pages\":[{\"batch\":-1}]}");
    ran = shell({"probe", "--prompt-tokens", "9000"}, dir.path().string());
    CHECK(ran.exit_status == 2);
    CHECK(ran.one_error_line());
}

TEST_CASE("bisect: the cliff is where the law says, and chunked prefill has none") {
    const TempDir dir;
    write_text(dir.path().string() + "/whole.toml", cliff_scenario(false));
    auto cliff = lab_b::bisect({dir.path().string() + "/whole.toml", "", {}}, 1, {0, 24575, 128});
    REQUIRE(cliff.has_value());
    CHECK(cliff->found);
    // room / (6 I + 8 h), which the driver's total and the context leave between 13,000 and 15,000.
    CHECK(cliff->fits_tokens > 13'000);
    CHECK(cliff->fails_tokens < 15'000);
    CHECK(cliff->fails_tokens - cliff->fits_tokens <= 128);
    CHECK(cliff->probes.size() <= lab_b::probe_allowance({0, 24575, 128}));
    write_text(dir.path().string() + "/chunked.toml", cliff_scenario(true));
    const Ran none = shell({"bisect", dir.path().string() + "/chunked.toml"});
    CHECK(none.exit_status == 0);
    CHECK(none.out.find("no cliff: 24575 prompt tokens fit") != std::string::npos);
}

TEST_CASE("stress: what passes with chunked prefill fails without, and a cap at the gateway helps") {
    const TempDir dir;
    write_text(dir.path().string() + "/whole.toml", cliff_scenario(false));
    write_text(dir.path().string() + "/chunked.toml", cliff_scenario(true));
    write_text(dir.path().string() + "/capped.toml", cliff_scenario(false) + "[gateway]\nmax_input_tokens = 600\nmax_output_tokens = 400\n");
    CHECK(shell({"stress", dir.path().string() + "/whole.toml", "--plain"}).exit_status == 1);
    CHECK(shell({"stress", dir.path().string() + "/chunked.toml", "--plain"}).exit_status == 0);
    const Ran capped = shell({"stress", dir.path().string() + "/capped.toml", "--plain"});
    CHECK(capped.exit_status == 0);
    CHECK(capped.err.find("16 prompts of 600 tokens at once (gateway.max_input_tokens = 600; max_num_seqs = 16)") != std::string::npos);
}

TEST_CASE("the allowance is ceil(log2(range / step)) + 2") {
    CHECK(lab_b::probe_allowance({0, 24575, 128}) == 10);   // 192 steps: 8 halvings
    CHECK(lab_b::probe_allowance({0, 128, 128}) == 2);
    CHECK(lab_b::probe_allowance({0, 129, 128}) == 3);
    CHECK(lab_b::probe_allowance({0, 1 << 20, 1}) == 22);
}

}  // TEST_SUITE
