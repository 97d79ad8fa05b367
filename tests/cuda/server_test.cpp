// The server on the real chip's host code over the fake runtime: the same story as on the simulated
// chip, and every CUDA call of a small life failing in turn, each time with a right report, a whole
// trace, and nothing left alive.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>

#include "labs/trace/reader.hpp"
#include "labs/trace/writer.hpp"
#include "tests/cuda/scenario.hpp"
#include "tests/server/run_server.hpp"

using namespace oomlab;
using namespace oomlab::test;

namespace {

std::string scenario(const std::string& server, const std::string& allocator = "") {
    return "[device]\nname = \"sim:l4\"\n[model]\nconfig = \"tiny\"\n[server]\nmax_model_len = 64\n"
           "max_num_seqs = 4\nnum_gpu_blocks_override = 16\n" + server + allocator +
           "[host]\ncheckpoint_bytes = \"1MiB\"\n[workload]\nseed = 11\n"
           "[[workload.request]]\nprompt_tokens = 20\noutput_tokens = 4\n"
           "[[workload.request]]\nprompt_tokens = 9\noutput_tokens = 3\n";
}

struct FakeRun {
    int exit_status = -1;
    std::optional<server::Failure> failure;
    std::vector<std::vector<i32>> tokens;
    trace::FinishRecord finish{};
    u64 calls = 0;
};

FakeRun run_on(FakeCuda& fake, const std::string& text, trace::Writer* writer = nullptr,
               const FakeCuda::Plan& plan = {}) {
    auto parsed = parse_scenario(text, "test.toml");
    REQUIRE_MESSAGE(parsed.has_value(), parsed.error().message);
    auto shape = load_model_shape(parsed->model.config);
    REQUIRE(shape.has_value());
    auto device = open_fake(fake);
    auto config = server::resolve_config(*parsed, *shape, device->props());
    REQUIRE_MESSAGE(config.has_value(), config.error().message);
    QuietConsole console;
    server::Engine engine(std::move(*config), *device, writer, console);
    fake.plan(plan);
    const u64 before = fake.calls();
    FakeRun run;
    run.exit_status = engine.run();
    run.calls = fake.calls() - before;
    run.failure = engine.failure();
    run.tokens = engine.finished_tokens();
    run.finish = engine.finish_record();
    return run;
}

// The trace of a run, in a file of its own that goes with it.
class TraceFile {
  public:
    TraceFile() {
        REQUIRE(trace::create_trace_file(path_, {.virtual_log_bytes = 512 * kKiB, .wall_log_bytes = 64 * kKiB})
                    .has_value());
        auto opened = trace::Writer::open(path_);
        REQUIRE(opened.has_value());
        writer_ = std::move(*opened);
    }
    ~TraceFile() { std::filesystem::remove(path_); }
    trace::Writer* writer() { return writer_.get(); }
    // One finish record, whole, with this status.
    void check_whole(int exit_status) {
        writer_.reset();
        auto reader = trace::Reader::open(path_);
        REQUIRE(reader.has_value());
        int finishes = 0, status = -1;
        (*reader)->poll([&](const trace::RecordView& record) {
            if (record.type != trace::RecordType::finish) return;
            ++finishes;
            std::memcpy(&status, record.payload.data(), sizeof status);
        });
        CHECK((*reader)->damage() == "");
        CHECK(finishes == 1);
        CHECK(status == exit_status);
    }

  private:
    const std::string path_ = (std::filesystem::temp_directory_path() /
                               ("oomlab_fake_cuda_" + std::to_string(getpid()) + ".trace")).string();
    std::unique_ptr<trace::Writer> writer_;
};

// Fails each call of a life in turn (a seeded sample of 200 when there are more than 2,000).
void sweep(const std::string& text, int error, bool for_ever) {
    u64 calls = 0;
    {
        FakeCuda fake;
        fake.runs_kernels = false;
        const FakeRun run = run_on(fake, text);
        REQUIRE(run.exit_status == 0);
        calls = run.calls;
    }
    MESSAGE("device calls of a life: ", calls);
    Prng prng(51);
    const bool all = calls <= 2000;
    for (u64 i = 1; i <= (all ? calls : 200); ++i) {
        const u64 nth = all ? i : prng.between(1, calls);
        FakeCuda fake;
        fake.runs_kernels = false;
        TraceFile file;
        const FakeRun run = run_on(fake, text, file.writer(),
                                   {.nth = nth, .for_ever = for_ever, .error = error, .only = {}});
        CAPTURE(nth);
        CAPTURE(fake.failed_name());
        CHECK(fake.failures() > 0);
        file.check_whole(run.exit_status);
        if (run.exit_status != 0) {
            CHECK(run.exit_status == 1);
            REQUIRE(run.failure.has_value());
            const DeviceError& e = run.failure->device;
            const bool blas = e.detail == "CUBLAS_STATUS_ALLOC_FAILED";
            CHECK(static_cast<int>(e.code) == (blas ? 2 : error));
            CHECK(run.finish.exit_status == 1);
        } else {
            // Only a figure was lost, or the fault came when all was served and given back.
            CHECK(run.finish.completed == 2);
        }
        CHECK(fake.live() == 0);
        CHECK(fake.used_bytes() == 0);
    }
}

constexpr const char* kEager = "enforce_eager = true\nmax_num_batched_tokens = 16\n";
constexpr const char* kGraphs = "cudagraph_capture_sizes = [1, 2]\nmax_num_batched_tokens = 64\n";

}  // namespace

TEST_CASE("server: host code of the real chip brings the tokens and requests of the simulated one") {
    for (const char* server : {kEager, kGraphs}) {
        CAPTURE(server);
        auto simulated = run_server(scenario(server));
        REQUIRE_MESSAGE(simulated->error.empty(), simulated->error);
        REQUIRE(simulated->exit_status == 0);
        FakeCuda fake(24 * kGiB);
        const FakeRun run = run_on(fake, scenario(server));
        REQUIRE(run.exit_status == 0);
        CHECK(run.tokens == simulated->engine->finished_tokens());
        CHECK(run.finish.completed == 2);
        CHECK(run.finish.peak_allocated_bytes ==
              simulated->engine->finish_record().peak_allocated_bytes);
        CHECK(run.finish.peak_reserved_bytes ==
              simulated->engine->finish_record().peak_reserved_bytes);
        CHECK(fake.live() == 0);
    }
}

TEST_CASE("server: out of memory at every device call in turn") {
    sweep(scenario(kEager), 2, false);
    sweep(scenario(kGraphs), 2, true);
    sweep(scenario(kEager, "[allocator]\nconf = \"expandable_segments:True\"\n"), 2, false);
}

TEST_CASE("server: an illegal access at every device call in turn") {
    sweep(scenario(kEager), 700, false);
}
