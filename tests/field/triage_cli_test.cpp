// The program itself: exit codes, JSON, several files, hostile input.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/base/prng.hpp"
#include "labs/field/triage/causes.hpp"
#include "labs/field/triage/triage.hpp"

namespace fs = std::filesystem;
using namespace oomlab;

namespace {

struct Run {
    int status = -1;
    std::string out;
};

Run run(const std::string& arguments) {
    const std::string command =
        std::string(OOMLAB_BIN_DIR) + "/oomlab triage " + arguments + " 2>&1";
    Run r;
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    char block[4096];
    for (std::size_t n = 0; (n = fread(block, 1, sizeof block, pipe)) > 0;) r.out.append(block, n);
    const int status = pclose(pipe);
    r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return r;
}

struct Scratch {
    fs::path dir;
    Scratch() {
        std::string pattern = (fs::temp_directory_path() / "oomlab_triage_XXXXXX").string();
        REQUIRE(mkdtemp(pattern.data()) != nullptr);
        dir = pattern;
    }
    ~Scratch() { fs::remove_all(dir); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(dir / name, std::ios::binary) << text;
        return (dir / name).string();
    }
};

constexpr const char* kServer =
    "INFO 05-02 10:00:00 [api_server.py:10] vLLM API server version 0.9.1\n"
    "INFO 05-02 10:01:00 [gpu_model_runner.py:1] Starting to load model /models/m...\n"
    "INFO 05-02 10:02:00 [gpu_model_runner.py:2] Model loading took 15.0 GiB and 30.0 seconds\n"
    "INFO:     Application startup complete.\n"
    "INFO 05-02 10:05:00 [loggers.py:1] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg "
    "generation throughput: 5.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: "
    "3.0%, Prefix cache hit rate: 0.0%\n";
constexpr const char* kDmesg =
    "[Sat May  2 10:05:01 2026] Memory cgroup out of memory: Killed process 4711 (VLLM::EngineCor) "
    "total-vm:91021944kB, anon-rss:30210332kB, file-rss:311104kB, shmem-rss:65536kB, UID:0 "
    "pgtables:31204kB oom_score_adj:984\n";

}  // namespace

TEST_CASE("cli: classified is 0, too little is 1, bad input is 2") {
    const Scratch s;
    CHECK(run(s.write("both.log", std::string(kServer) + kDmesg)).status == 0);
    CHECK(run(s.write("fine.log", kServer)).status == 1);
    CHECK(run(s.write("empty.log", "")).status == 1);
    CHECK(run((s.dir / "absent.log").string()).status == 2);
    CHECK(run(s.dir.string()).status == 2);
    CHECK(run("").status == 2);
    CHECK(run("--no-such-flag x").status == 2);
    const Run gz = run(s.write("log.gz", std::string("\x1f\x8b\x08\0\0\0\0\0", 8) + "xxxx"));
    CHECK(gz.status == 2);
    CHECK(gz.out.find("zcat") != std::string::npos);
    CHECK(run(s.write("zeros", std::string(100000, '\0'))).status == 2);
    CHECK(run("- < " + s.write("in.log", kDmesg)).status == 0);
}

TEST_CASE("cli: the JSON has its keys, types and values") {
    const Scratch s;
    const Run r =
        run("--json " + s.write("server.log", kServer) + " " + s.write("dmesg.txt", kDmesg));
    CHECK(r.status == 0);
    const auto j = nlohmann::json::parse(r.out);
    CHECK(j.at("type").is_number_integer());
    CHECK(j.at("type") == 5);
    CHECK(j.at("cause").is_string());
    CHECK(j.at("confidence").get<double>() > 0.5);
    CHECK(j.at("confidence").get<double>() <= 1.0);
    CHECK(j.at("confidence_word").is_string());
    REQUIRE(j.at("evidence").size() >= 1);
    bool dmesg = false;
    for (const auto& e : j.at("evidence")) {
        CHECK(e.at("line").is_number_unsigned());
        CHECK_FALSE(e.at("why").get<std::string>().empty());
        dmesg = dmesg || e.at("file").get<std::string>().find("dmesg.txt") != std::string::npos;
    }
    CHECK(dmesg);
    for (const char* key :
         {"ruled_out", "actions", "ask_for", "candidates", "figures", "contradicts"})
        CHECK(j.at(key).is_array());
    CHECK(j.at("actions").size() == 3);
    const auto none = nlohmann::json::parse(run("--json " + s.write("fine.log", kServer)).out);
    CHECK(none.at("type").is_null());
    CHECK(none.at("cause").is_null());
    CHECK(none.at("ask_for").size() >= 1);
}

TEST_CASE("cli: no escape of a log or of a file name reaches the terminal") {
    const Scratch s;
    const std::string evil =
        "\x1b]0;owned\a\x1b[2J\xC2\x9B"
        "31mMemory cgroup out of memory: Killed process 1 (a\x1b[5mb\x07) total-vm:1kB, "
        "anon-rss:30210332kB \xE2\x80\xAE\n";
    for (const char* flag : {"", "--json "}) {
        const Run r = run(flag + std::string("'") + s.write("e\x1b[31mvil\a.log", evil) + "'");
        CHECK(r.status == 0);
        for (const char c : r.out) {
            const auto b = static_cast<unsigned char>(c);
            CHECK((b >= 0x20 || b == '\n'));
            CHECK(b != 0x7F);
        }
        CHECK(r.out.find("\xC2\x9B") == std::string::npos);
        CHECK(r.out.find("\xE2\x80\xAE") == std::string::npos);
    }
}

TEST_CASE("triage: a needle in a million lines keeps its number and its verdict") {
    triage::Session session;
    session.begin_file("big");
    const std::string noise =
        "2026-05-01 10:00:00.123 INFO gateway handled request id=12345 route=/v2/things status=200 "
        "ms=12\n";
    std::string block;
    for (int i = 0; i < 1000; ++i) block += noise;
    for (int i = 0; i < 500; ++i) session.feed(block);
    session.feed(kDmesg);
    for (int i = 0; i < 500; ++i) session.feed(block);
    REQUIRE(session.end_file());
    const auto r = session.report();
    REQUIRE(r.type);
    CHECK(*r.type == 5);
    REQUIRE_FALSE(r.evidence.empty());
    CHECK(r.evidence.front().line == 500001);
    CHECK(r.lines == 1000001);
}

TEST_CASE("triage: broken and hostile text neither crashes nor convinces") {
    Prng rng(20260501);
    const std::string seed = std::string(kServer) + kDmesg;
    for (int round = 0; round < 400; ++round) {
        std::string text = seed;
        for (std::uint64_t k = 1 + rng.below(40); k > 0; --k) {
            const std::size_t at = rng.below(text.size());
            switch (rng.below(4)) {
                case 0:
                    text[at] = static_cast<char>(rng.below(256));
                    break;
                case 1:
                    text.erase(at, rng.below(30));
                    break;
                case 2:
                    text.insert(at, text.substr(rng.below(text.size()), rng.below(60)));
                    break;
                default:
                    text.insert(at, std::string(rng.below(5), '\x1b'));
                    break;
            }
            if (text.empty()) text = "x";
        }
        const auto r = triage::triage_text(text);
        CHECK(r.confidence >= 0);
        CHECK(r.confidence <= 1);
        (void)triage::to_json(r);
        (void)triage::to_text(r);
    }
    for (const std::string& text :
         {std::string("Tried to allocate out of memory. tried to allocate"),
          std::string("CUDA out of memory. Tried to allocate 99999999999999999999999 GiB. GPU 0 "
                      "has a total capacity of -1 GiB of which x is free"),
          std::string(1 << 20, '{'), std::string(1 << 20, '"'), std::string("{\"log\":\"\\u00"),
          std::string("Killed process ( (((((")}) {
        (void)triage::to_json(triage::triage_text(text));
    }
    // Words alone are not enough.
    for (const char* text : {"we ran out of memory, please help", "Killed", "exit code 137",
                             "the server crashed with an error", "CUDA error"}) {
        CAPTURE(text);
        CHECK_FALSE(triage::triage_text(text).type.has_value());
    }
}
