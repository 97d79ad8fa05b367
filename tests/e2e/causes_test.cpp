// Whole runs for causes beyond the six showpieces: a small change of one server, and the cause that
// the trace must prove. The expected cause is written down here, not read from the fault.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "labs/diagnosis/six_types.hpp"
#include "labs/trace/reader.hpp"
#include "tests/e2e/program.hpp"
#include "tests/support/temp_dir.hpp"

using namespace oomlab;
using namespace oomlab::testing;
using oomlab::test::TempDir;

namespace {

struct Change {
    std::string device, server = "enforce_eager = true", tables, workload;
    const char* duration = "60s";
    double rate = 1.0;
    unsigned max_model_len = 8192;
};

std::string text_of(const Change& c) {
    return fmt::format(R"(
[device]
name = "sim:l4"
{}
[model]
config = "llama-3.1-8b"
[server]
max_model_len = {}
max_num_seqs = 64
max_num_batched_tokens = 2048
{}
{}
[workload]
seed = 1
duration = "{}"
arrival_rate = {}
prompt_tokens = {{ dist = "lognormal", mean = 500, cv = 0.8, max = 2000 }}
output_tokens = {{ dist = "lognormal", mean = 100, cv = 0.6, max = 400 }}
{}
)",
                       c.device, c.max_model_len, c.server, c.tables, c.duration, c.rate, c.workload);
}

Ran run_change(const Change& c) {
    const TempDir dir;
    write_text(dir.path().string() + "/s.toml", text_of(c));
    return shell({"run", dir.path().string() + "/s.toml", "--json", "--trace", dir.path().string() + "/t.omtrace"});
}

void proves(const Change& c, const char* outcome, int type, const char* cause) {
    const Ran ran = run_change(c);
    if (ran.exit_status == 3) {
        MESSAGE("skipped: this machine cannot limit host memory: ", ran.err);
        return;
    }
    const auto j = ran.json();
    CAPTURE(ran.out);
    CAPTURE(ran.err);
    REQUIRE(j.is_object());
    CHECK(j["outcome"] == outcome);
    CHECK(j["oom_type"] == type);
    CHECK(j["cause"] == cause);
}

std::string fault(const std::string& lines) { return "\n[[fault]]\n" + lines + "\n"; }

Change hour(const std::string& fault_lines, const std::string& workload = "") {
    Change c;
    c.duration = "1h";
    c.rate = 2.0;
    c.workload = workload + fault(fault_lines);
    return c;
}

}  // namespace

TEST_SUITE("causes end to end") {

TEST_CASE("type 1: another process, a share too large, no room for KV, one request too large") {
    Change c;
    c.device = "[[device.tenant]]\nname = \"x\"\nbytes = \"6GiB\"";
    proves(c, "refused", 1, "other_memory_on_device");
    c = {};
    c.server = "enforce_eager = true\ngpu_memory_utilization = 0.99";
    proves(c, "refused", 1, "memory_fraction_above_free");
    c.server = "enforce_eager = true\ngpu_memory_utilization = 0.70";
    proves(c, "refused", 1, "weights_leave_no_kv");
    c = {};
    c.max_model_len = 131072;
    proves(c, "refused", 1, "kv_pool_smaller_than_max_model_len");
}

TEST_CASE("type 1: graphs, the profiling batch, a cap, a pool set by hand") {
    Change c;
    c.server = "gpu_memory_utilization = 0.975";
    proves(c, "gpu_oom", 1, "cuda_graphs_unbudgeted");
    c.server = "enforce_eager = true\nprofile = \"max_model_len\"";
    c.max_model_len = 65536;
    proves(c, "gpu_oom", 1, "profile_batch_too_large");
    c = {};
    c.tables = "[allocator]\nper_process_memory_fraction = 0.5";
    proves(c, "gpu_oom", 1, "self_imposed_cap");
    c = {};
    c.server = "enforce_eager = true\nnum_gpu_blocks_override = 8000";
    proves(c, "gpu_oom", 1, "engine_limits_too_large");
}

TEST_CASE("type 3: preemption off, and blocks that the accounting loses") {
    Change c;
    c.server = "enforce_eager = true\npreemption = \"off\"";
    c.rate = 6.0;
    c.duration = "300s";
    proves(c, "refused", 3, "kv_exhausted_no_preemption");
    c = {};
    c.rate = 2.0;
    c.duration = "300s";
    c.workload = fault("kind = \"kv_accounting\"\nblocks_per_request = 20");
    proves(c, "refused", 3, "kv_exhausted_no_preemption");
}

TEST_CASE("type 4: a cache without eviction") {
    proves(hour("kind = \"cache_without_eviction\"\nbytes = \"384KiB\""), "gpu_oom", 4, "cache_without_eviction");
}

TEST_CASE("type 4: clean-up skipped when the client goes away") {
    const Change c = hour("kind = \"cleanup_skipped\"", "cancel_share = 0.1\ncancel_after = \"2s\"\n");
    const auto j = run_change(c).json();
    REQUIRE(j.is_object());
    CHECK(j["cause"] == "leak_retained_requests");
    CHECK(j["evidence"].dump().find("cancelled requests only") != std::string::npos);
}

TEST_CASE("type 4: a graph for every tenth request") {
    const auto j = run_change(hour("kind = \"graph_per_request\"\nbytes = \"4MiB\"\nshare = 0.09")).json();
    REQUIRE(j.is_object());
    CHECK(j["oom_type"] == 4);
    CHECK(j["evidence"].dump().find("the owner that grew is graphs") != std::string::npos);
}

TEST_CASE("type 4: sizes that fragment") {
    proves(hour("kind = \"fragmenting_sizes\"\nbytes = \"1200MiB\""), "gpu_oom", 4, "fragmentation_growth");
}

TEST_CASE("type 4: growth outside the allocator") {
    proves(hour("kind = \"outside_growth\"\nbytes_per_hour = \"2448MiB\""), "gpu_oom", 4, "growth_outside_allocator");
}

TEST_CASE("type 5: host memory that grows, a long prompt on the host, a pinned pool") {
    Change c;
    c.duration = "10m";
    c.tables = "[host]\nmemory_limit = \"128MiB\"";
    c.workload = fault("kind = \"host_growth\"\nbytes_per_request = \"1MiB\"");
    proves(c, "host_oom", 5, "host_memory_growth");
    c = {};
    c.tables = "[host]\nmemory_limit = \"96MiB\"\ntokenizer_bytes_per_token = \"16KiB\"";
    c.workload = "[[workload.request]]\nat = \"30s\"\nprompt_tokens = 8000\noutput_tokens = 100";
    proves(c, "host_oom", 5, "host_data_of_the_job");
    c = {};
    c.tables = "[host]\nmemory_limit = \"96MiB\"\npinned_pool_limit = \"256MiB\"";
    proves(c, "host_oom", 5, "pinned_pool_too_large");
}

TEST_CASE("type 6: assert, launch, a library at start and later") {
    Change c;
    c.workload = fault("kind = \"device_assert\"\nfrom = \"30s\"");
    proves(c, "cuda_error", 6, "illegal_access");
    c.workload = fault("kind = \"bad_launch\"\nfrom = \"30s\"");
    proves(c, "cuda_error", 6, "invalid_launch");
    c.workload = fault("kind = \"library_alloc_failed\"\nlibrary = \"cublas\"");
    proves(c, "gpu_oom", 6, "fault_reported_as_memory");
}

TEST_CASE("healthy look-alikes: an unchunked hour, clean file cache under a host limit") {
    Change c;
    c.server = "enforce_eager = true\nenable_chunked_prefill = false";
    c.duration = "1h";
    c.max_model_len = 24576;
    Ran ran = run_change(c);
    CHECK(ran.exit_status == 0);
    CHECK(ran.json()["evidence"].dump().find("rose by") == std::string::npos);
    c = {};
    c.tables = "[host]\nmemory_limit = \"96MiB\"\ncheckpoint_bytes = \"256MiB\"\nload = \"mmap\"";
    ran = run_change(c);
    CHECK((ran.exit_status == 0 || ran.exit_status == 3));
}

TEST_CASE("the verdict is the same without what the trace says about the scenario") {
    const TempDir dir;
    for (const char* name : {"type1-l4-fails", "type2-l4-fails", "type3-l4-fails", "type6-l4-wrapped-fails"}) {
        const std::string trace = dir.path().string() + "/" + name + ".omtrace";
        shell({"run", scenario(name), "--json", "--trace", trace});
        const auto verdict = [&](bool stripped) {
            auto reader = trace::Reader::open(trace);
            REQUIRE(reader.has_value());
            diagnosis::RunFacts facts;
            (*reader)->poll([&](const trace::RecordView& r) {
                const bool tells = r.type == trace::RecordType::run_info || r.type == trace::RecordType::action ||
                                   r.type == trace::RecordType::log;
                if (!stripped || !tells) facts.fold(r);
            });
            return diagnosis::diagnose(facts);
        };
        const diagnosis::Diagnosis whole = verdict(false), stripped = verdict(true);
        CHECK(whole.type == stripped.type);
        CHECK(whole.cause == stripped.cause);
        CHECK(whole.evidence == stripped.evidence);
    }
}

TEST_CASE("a drawn fault is named neither in the json, nor on screen, nor in the trace") {
    const TempDir dir;
    const std::string path = dir.path().string() + "/s.toml", trace = dir.path().string() + "/t.omtrace";
    write_text(path, text_of(hour("kind = \"drawn\"\nseed = 5")));
    const Ran ran = shell({"run", path, "--json", "--trace", trace});
    CHECK(ran.json()["cause"].is_null());
    const std::string all = ran.out + ran.err + read_text(trace);
    for (const char* kind : {"request_retained", "cache_without_eviction", "cleanup_skipped", "graph_per_request",
                             "inference_mode_missing", "fragmenting_sizes", "outside_growth", "fragmentation_growth",
                             "leak_retained", "growth_outside"}) {
        CHECK_MESSAGE(all.find(kind) == std::string::npos, kind);
    }
}

}  // TEST_SUITE
