// `oomlab run` as a shell sees it: exit codes, the one JSON object, repeatability, bad input.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>

#include "kernels/base/prng.hpp"
#include "labs/trace/reader.hpp"
#include "tests/e2e/program.hpp"
#include "tests/support/temp_dir.hpp"

using namespace oomlab;
using namespace oomlab::testing;
using oomlab::test::TempDir;

namespace {

// Every record of the virtual part: type, time and bytes.
std::uint64_t virtual_part(const std::string& path) {
    auto reader = trace::Reader::open(path);
    REQUIRE(reader.has_value());
    std::uint64_t hash = 0;
    (*reader)->poll([&](const trace::RecordView& r) {
        const std::string head = std::to_string(static_cast<int>(r.type)) + "/" + std::to_string(r.time_us);
        hash = stable_hash({reinterpret_cast<const char*>(r.payload.data()), r.payload.size()}, stable_hash(head, hash));
    });
    return hash;
}

const char* const kSmall = R"(
[device]
name = "sim:l4"
[model]
config = "llama-3.2-1b"
[server]
max_model_len = 4096
max_num_seqs = 16
enforce_eager = true
[workload]
duration = "20s"
arrival_rate = 1.0
)";

// One bad scenario: exit 2 and one line that says where.
void refused(const std::string& text, const std::string& says) {
    const TempDir dir;
    const std::string path = dir.path().string() + "/bad.toml";
    write_text(path, text);
    const Ran ran = shell({"run", path, "--json"});
    CAPTURE(ran.err);
    CHECK(ran.exit_status == 2);
    CHECK(ran.one_error_line());
    CHECK(ran.out.empty());
    CHECK(ran.err.find(says) != std::string::npos);
}

}  // namespace

TEST_SUITE("run") {

TEST_CASE("json: the keys of the contract, and one object last on stdout") {
    const TempDir dir;
    const Ran ran = shell({"run", scenario("type2-l4"), "--json", "--trace", dir.path().string() + "/t.omtrace"});
    const auto j = ran.json();
    for (const char* key : {"outcome", "oom_type", "cause", "phase", "exit_status", "simulated", "message", "peak_allocated_bytes",
                            "peak_reserved_bytes", "device_used_bytes", "owners", "kv", "requests", "latency", "makespan_s",
                            "evidence", "restarts", "trace"}) {
        CHECK_MESSAGE(j.contains(key), key);
    }
    CHECK(j.size() == 18);
    for (const char* key : {"num_gpu_blocks", "block_size", "tokens", "usage_peak", "num_preemptions"}) CHECK(j["kv"].contains(key));
    CHECK(j["kv"]["tokens"] == j["kv"]["num_gpu_blocks"].get<int>() * j["kv"]["block_size"].get<int>());
    std::uint64_t owned = 0;
    for (const auto& [owner, bytes] : j["owners"]["end"].items()) owned += bytes.get<std::uint64_t>();
    CHECK(j["owners"]["end"].size() == 11);
    CHECK(owned <= 23'676'006'400);   // 22.05 GiB
    CHECK(j["latency"]["ttft_s"]["mean"].get<double>() > 0);
    CHECK(j["peak_allocated_bytes"].get<std::uint64_t>() <= j["peak_reserved_bytes"].get<std::uint64_t>());
    CHECK(j["peak_reserved_bytes"].get<std::uint64_t>() < j["device_used_bytes"].get<std::uint64_t>());
    CHECK(j["trace"] == dir.path().string() + "/t.omtrace");
}

TEST_CASE("the real message is on stderr, and everything says simulated") {
    const TempDir dir;
    const Ran ran = shell({"run", scenario("type2-l4-fails"), "--plain", "--trace", dir.path().string() + "/t.omtrace"});
    CHECK(ran.exit_status == 1);
    CHECK(ran.err.find("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate") != std::string::npos);
    CHECK(ran.err.find("simulated") != std::string::npos);
    CHECK(ran.out.find("simulated") != std::string::npos);
    CHECK(ran.out.find("\033") == std::string::npos);
    CHECK(ran.out.find("type 2") != std::string::npos);
    CHECK(ran.out.find(dir.path().string() + "/t.omtrace") != std::string::npos);
    CHECK(ran.out.find("next:") != std::string::npos);
}

TEST_CASE("the same scenario and seed twice: the same virtual part to the byte, another seed: not") {
    const TempDir dir;
    const auto run = [&](const char* file, const char* seed) {
        shell({"run", scenario("type3-l4-cured"), "--json", "--seed", seed, "--trace", dir.path().string() + file});
        return virtual_part(dir.path().string() + file);
    };
    const auto plain = [&](const char* file, const char* seed) {
        shell({"run", scenario("type2-l4"), "--json", "--seed", seed, "--trace", dir.path().string() + file});
        return virtual_part(dir.path().string() + file);
    };
    CHECK(run("/a.omtrace", "7") == run("/b.omtrace", "7"));
    CHECK(plain("/c.omtrace", "7") == plain("/d.omtrace", "7"));
    CHECK(plain("/e.omtrace", "8") != plain("/f.omtrace", "7"));
}

TEST_CASE("pacing changes no byte of the result") {
    const TempDir dir;
    const std::string s = dir.path().string() + "/s.toml";
    write_text(s, kSmall);
    shell({"run", s, "--json", "--trace", dir.path().string() + "/fast.omtrace"});
    shell({"run", s, "--json", "--time-scale", "60", "--trace", dir.path().string() + "/paced.omtrace"});
    CHECK(virtual_part(dir.path().string() + "/fast.omtrace") == virtual_part(dir.path().string() + "/paced.omtrace"));
}

TEST_CASE("timeout is 124, SIGKILL from outside 137 without a type, a crash 128 and its signal") {
    const TempDir dir;
    const std::string s = dir.path().string() + "/s.toml";
    write_text(s, kSmall);
    Ran ran = shell({"run", s, "--json", "--time-scale", "0.5", "--timeout", "1s", "--trace", dir.path().string() + "/a.omtrace"});
    CHECK(ran.exit_status == 124);
    CHECK(ran.json()["outcome"] == "timeout");
    ran = shell_with_signal({"run", s, "--plain", "--time-scale", "0.5", "--trace", dir.path().string() + "/b.omtrace"}, SIGKILL);
    CHECK(ran.exit_status == 137);
    CHECK(ran.out.find("killed, exit 137") != std::string::npos);
    CHECK(ran.out.find("type 5") == std::string::npos);
    ran = shell_with_signal({"run", s, "--plain", "--time-scale", "0.5", "--trace", dir.path().string() + "/c.omtrace"}, SIGSEGV);
    CHECK(ran.exit_status == 139);
    CHECK(ran.out.find("crashed, exit 139") != std::string::npos);
}

TEST_CASE("a server that is started again: every life is told, and no peak is above the card") {
    const TempDir dir;
    const std::string s = dir.path().string() + "/s.toml";
    std::string text = read_text(scenario("type2-l4-fails"));
    const std::string once = "prompt_tokens = 23000\noutput_tokens = 100\n";
    REQUIRE(text.find(once) != std::string::npos);
    text += "count = 3\nevery = \"100s\"\n[run]\nrestart = \"on_failure\"\nrestart_delay = \"20s\"\n";
    write_text(s, text);
    const Ran ran = shell({"run", s, "--json", "--trace", dir.path().string() + "/t.omtrace"});
    CHECK(ran.exit_status == 1);
    const auto j = ran.json();
    CHECK(j["oom_type"] == 2);
    CHECK(j["restarts"] == 3);
    CHECK(j["peak_reserved_bytes"].get<std::uint64_t>() < 23'676'006'400);   // 22.05 GiB
    CHECK(j["evidence"].dump().find("the types: 2, 2, 2") != std::string::npos);
    CHECK(j["requests"]["completed"].get<int>() > 0);
}

TEST_CASE("csv: allocated, reserved and device use, a row every sample_every") {
    const TempDir dir;
    const Ran ran = shell({"run", scenario("type2-l4"), "--json", "--csv", dir.path().string() + "/m.csv", "--trace", dir.path().string() + "/t.omtrace"});
    CHECK(ran.exit_status == 0);
    const std::string csv = read_text(dir.path().string() + "/m.csv");
    CHECK(csv.rfind("at_s,memory_allocated,memory_reserved,device_used\n", 0) == 0);
    const auto rows = std::count(csv.begin(), csv.end(), '\n') - 1;
    CHECK(rows >= 12);   // two minutes and a little, ten seconds apart
    CHECK(rows <= 14);
}

TEST_CASE("a learner's folder keeps its runs, numbered") {
    const TempDir dir;
    std::filesystem::create_directories(dir.path().string() + "/.oomlab");
    std::filesystem::create_directories(dir.path().string() + "/a");
    write_text(dir.path().string() + "/a/mine.toml", kSmall);
    shell({"run", dir.path().string() + "/a/mine.toml", "--json"});
    const Ran second = shell({"run", "a/mine.toml", "--json"}, dir.path().string());
    CHECK(std::filesystem::exists(dir.path().string() + "/.oomlab/runs/mine-1.omtrace"));
    CHECK(std::filesystem::exists(dir.path().string() + "/.oomlab/runs/mine-2.omtrace"));
    CHECK(second.json()["trace"].get<std::string>().find("mine-2.omtrace") != std::string::npos);
}

}  // TEST_SUITE

TEST_SUITE("bad input") {

TEST_CASE("toml that is none, impossible values, unknown keys and devices: one line, exit 2") {
    refused("[server\nmax_model_len = 1", "bad.toml:");
    refused("[server]\ngpu_memory_utilization = 1.2\n", "gpu_memory_utilization");
    refused("[server]\nblock_size = 0\n", "block_size");
    refused("[server]\nmax_modellen = 10\n", "max_model_len");
    refused("[device]\nname = \"sim:l44\"\n", "l4");
    refused("[device]\nname = \"quantum\"\n", "quantum");
    refused("[model]\nconfig = \"llama-9\"\n", "llama-9");
    refused("[allocator]\nconf = \"max_split_size_mb:1\"\n", "max_split_size_mb");
    refused(std::string("[server]\nx = \"\x1b[2J\"\n"), "bad.toml");
}

TEST_CASE("files: missing, a folder, huge, binary") {
    const TempDir dir;
    for (const std::string& path : {dir.path().string() + "/none.toml", dir.path().string(), std::string("/dev/zero")}) {
        const Ran ran = shell({"run", path});
        CAPTURE(ran.err);
        CHECK(ran.exit_status == 2);
        CHECK(ran.one_error_line());
    }
    write_text(dir.path().string() + "/huge.toml", "");
    std::filesystem::resize_file(dir.path().string() + "/huge.toml", std::uintmax_t{1} << 33);
    const Ran huge = shell({"run", dir.path().string() + "/huge.toml"});
    CHECK(huge.exit_status == 2);
    CHECK(huge.one_error_line());
    std::string binary(4096, '\0');
    for (std::size_t i = 0; i < binary.size(); ++i) binary[i] = static_cast<char>(i * 131 % 251);
    refused(binary, "bad.toml");
}

TEST_CASE("config.json with absurd fields") {
    const TempDir dir;
    const std::string config = dir.path().string() + "/config.json";
    for (const char* text : {"{}", "[1,2", R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":0,"num_attention_heads":32,"vocab_size":128})",
                             R"({"model_type":"llama","hidden_size":-1,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":8})",
                             R"({"model_type":"llama","hidden_size":1e300,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":8})"}) {
        write_text(config, text);
        refused("[device]\nname = \"sim:l4\"\n[model]\nconfig = \"" + config + "\"\n", "config.json");
    }
}

TEST_CASE("a file that is no trace is never overwritten by one") {
    const TempDir dir;
    const std::string mine = dir.path().string() + "/thesis.txt";
    write_text(mine, "years of work\n");
    const Ran ran = shell({"run", scenario("type2-l4"), "--trace", mine});
    CHECK(ran.exit_status == 2);
    CHECK(ran.one_error_line());
    CHECK(read_text(mine) == "years of work\n");
}

TEST_CASE("flags: unknown, missing, out of range") {
    for (const std::vector<std::string>& args : {std::vector<std::string>{"run"}, {"run", scenario("type2-l4"), "--nonsense"},
                                                 {"run", scenario("type2-l4"), "--time-scale", "0"},
                                                 {"run", scenario("type2-l4"), "--timeout", "soon"},
                                                 {"run", scenario("type2-l4"), "--seed", "x"}, {"probe"},
                                                 {"probe", "--prompt-tokens", "0"}}) {
        const Ran ran = shell(args);
        CAPTURE(ran.err);
        CHECK(ran.exit_status == 2);
        CHECK(ran.one_error_line());
    }
}

}  // TEST_SUITE
