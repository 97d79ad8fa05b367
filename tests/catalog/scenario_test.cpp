// Scenario files: the contract's names, its defaults, and errors that a learner can act on.
#include <doctest/doctest.h>

#include "labs/catalog/scenario.hpp"
#include "labs/catalog/text_file.hpp"

using namespace oomlab;

namespace {
std::string error_of(std::string_view text) {
    auto r = parse_scenario(text, "s.toml");
    return r ? "" : r.error().message;
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("scenario: an empty file is the default server") {
    const auto s = parse_scenario("", "s.toml");
    REQUIRE(s.has_value());
    CHECK(s->server.gpu_memory_utilization == 0.90);
    CHECK(s->server.enable_chunked_prefill);
    CHECK(s->server.block_size == 16);
    CHECK(s->server.engine_version == "0.19.0");
    CHECK(s->host.load == "shard_stream");
    CHECK(s->run.sample_every_s == 10);
}

TEST_CASE("scenario: sizes, times, rates and distributions are read as the contract writes them") {
    const auto s = parse_scenario(R"(
[device]
name = "sim:l4"
memory_limit = "12GiB"
[[device.tenant]]
name = "notebook"
bytes = "512MiB"
from = "10m"
grows_per_hour = "1GiB"
[workload]
duration = "1h"
arrival_rate = [["0h", 1.0], ["9h", 5.0]]
repeat = "24h"
prompt_tokens = {mix = [{share = 3, tokens = {dist = "lognormal", mean = 700, cv = 0.8, max = 2000}}, {share = 1, tokens = 18000}]}
output_tokens = {dist = "uniform", min = 10, max = 20}
[[workload.request]]
at = "90s"
prompt_tokens = 23000
output_tokens = 4
[[action]]
at = 5
set = {"gateway.max_input_tokens" = 8000}
[[fault]]
kind = "request_retained"
bytes = "384KiB"
[fix]
apply = ["bound_the_cache"]
)", "s.toml");
    REQUIRE_MESSAGE(s.has_value(), s.error().message);
    CHECK(s->device.memory_limit == 12 * kGiB);
    REQUIRE(s->device.tenants.size() == 1);
    CHECK(s->device.tenants[0].from_s == 600);
    REQUIRE(s->workload.arrival_rate.size() == 2);
    CHECK(s->workload.arrival_rate[1].at_s == 9 * 3600);
    REQUIRE(s->workload.prompt_tokens.parts.size() == 2);
    CHECK(s->workload.prompt_tokens.parts[0].tokens.mean == 700);
    CHECK(s->workload.prompt_tokens.parts[1].tokens.value == 18000);
    REQUIRE(s->workload.requests.size() == 1);
    CHECK(s->workload.requests[0].at_s == 90);
    CHECK(s->actions.at(0).settings.at(0).number == 8000);
    CHECK(s->faults.at(0).bytes == 384 * kKiB);
}

TEST_CASE("scenario: an unknown key names place and nearest key") {
    const std::string e = error_of("[server]\ngpu_memory_utilisation = 0.9\n");
    CHECK(contains(e, "s.toml:2:1"));
    CHECK(contains(e, "gpu_memory_utilization"));
    CHECK(contains(error_of("[servr]\n"), "server"));
    CHECK(contains(error_of("[[fault]]\nkind = \"request_retaind\"\n"), "request_retained"));
    CHECK(contains(error_of("[fix]\napply = [\"bound_cache\"]\n"), "bound_the_cache"));
}

TEST_CASE("scenario: impossible values are refused with what is possible") {
    CHECK(contains(error_of("[server]\nblock_size = 0\n"), "from 1 to"));
    CHECK(contains(error_of("[server]\ngpu_memory_utilization = 1.2\n"), "from 0 to 1"));
    CHECK(contains(error_of("[server]\ngpu_memory_utilization = 0\n"), "above 0"));
    CHECK(contains(error_of("[host]\nload = \"full_copy\"\ncheckpoint_bytes = \"2GiB\"\n"), "1GiB"));
    CHECK(contains(error_of("[host]\nmemory_limit = \"64MiB\"\ncheckpoint_bytes = \"300MiB\"\n"), "4 times"));
    CHECK(contains(error_of("[gateway]\ndeny = [\"prompt > 3\"]\n"), "prompt_tokens"));
    CHECK(contains(error_of("[workload]\nprompt_tokens = {dist = \"uniform\", min = 9, max = 3}\n"), "min is above max"));
    CHECK(contains(error_of("[fix]\napply = [\"inference_mode\", \"one_page_size\", \"bound_the_cache\"]\n"), "at most two"));
    CHECK(contains(error_of("x = ["), "s.toml:1:"));
}

TEST_CASE("text file: missing, folder and oversize are told apart") {
    CHECK(contains(read_text_file("/nonexistent/x.toml").error().message, "No such file"));
    CHECK(contains(read_text_file("/tmp").error().message, "folder"));
    CHECK(contains(read_text_file("/proc/self/exe", 10).error().message, "larger"));
}

TEST_CASE("scenario: a gateway rule is field, comparison, number") {
    CHECK(parse_gateway_rule("prompt_tokens > 28000")->value == 28000);
    CHECK(parse_gateway_rule("n>=2")->op == ">=");
    for (const char* bad : {"", "prompt_tokens", "prompt_tokens >", "tokens > 3", "prompt_tokens > 3 x", "n ! 3"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_gateway_rule(bad).has_value());
    }
}
