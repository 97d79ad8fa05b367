// The engine on real shapes and cards: budgets, cliffs, repetition without redoing, determinism.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <cmath>

#include "tests/server/run_server.hpp"

using namespace oomlab;
using namespace oomlab::server;
using oomlab::test::run_server;
using oomlab::test::RunOptions;

namespace {

// scenarios.md section 3: L4, Llama-3.1-8B, utilization 0.90, S = 16, eager, 2,048 batched tokens.
std::string cliff(u64 prompt, u64 batch = 1, const char* more = "enable_chunked_prefill = false\n") {
    return fmt::format(
        "[device]\nname = \"sim:l4\"\n[model]\nconfig = \"llama-3.1-8b\"\n[server]\nmax_model_len = 24576\n"
        "max_num_seqs = 16\nmax_num_batched_tokens = 2048\nenforce_eager = true\n{}"
        "[[workload.request]]\nprompt_tokens = {}\noutput_tokens = 2\ncount = {}\n",
        more, prompt, batch);
}

bool fits(u64 prompt, u64 batch = 1) { return run_server(cliff(prompt, batch))->exit_status == 0; }

u64 bisect(u64 batch) {
    u64 low = 256 / batch, high = 24000 / batch;
    while (high - low > 8) {
        const u64 middle = (low + high) / 2;
        (fits(middle, batch) ? low : high) = middle;
    }
    return low;
}

}  // namespace

TEST_CASE("engine: the budget of an 8B model on an L4 is the engines' arithmetic") {
    auto run = run_server(cliff(100, 1, ""));
    REQUIRE_MESSAGE(run->error.empty(), run->error);
    REQUIRE(run->exit_status == 0);
    const trace::BudgetRecord& b = run->engine->budget();
    // 14.99 GiB of weights (memory_formulas.md 1), the MLP moment of 2,048 tokens: 0.227 GiB by law.
    CHECK(std::abs(static_cast<double>(b.weights_bytes) / kGiB - 14.99) < 0.02);
    const double law = 2048.0 * (6 * 14336 + 8 * 4096);
    CHECK(std::abs(static_cast<double>(b.activation_peak_bytes) - law) < 0.05 * law + 10e6);
    CHECK(b.available_kv_bytes == static_cast<i64>(b.requested_bytes) - static_cast<i64>(b.weights_bytes) -
                                      static_cast<i64>(b.activation_peak_bytes) - static_cast<i64>(b.non_torch_bytes));
    CHECK(b.kv_block_bytes == 16 * 131072);
    CHECK(b.num_gpu_blocks == static_cast<u64>(b.available_kv_bytes) / b.kv_block_bytes);
}

TEST_CASE("engine: the activation cliff stands where the law puts it, whatever the batch") {
    // T* = room / b, b = 6 I + 8 h = 118,784 bytes a token; room is what weights, libraries and the pool
    // leave. The pool is one tensor a layer, each in a segment of whole 2 MiB.
    auto healthy = run_server(cliff(2000));
    REQUIRE(healthy->exit_status == 0);
    const trace::BudgetRecord& b = healthy->engine->budget();
    const u64 pool = 32 * round_up(div_ceil(b.num_gpu_blocks * b.kv_block_bytes, 32), 2 * kMiB);
    const double room = static_cast<double>(b.free_at_start_bytes) - static_cast<double>(b.weights_bytes) -
                        static_cast<double>(b.non_torch_bytes) - static_cast<double>(pool);
    const double law = room / 118784.0;
    const u64 one = bisect(1);
    CHECK(std::abs(static_cast<double>(one) - law) < 0.02 * law);
    const u64 four = bisect(4);
    CHECK(std::abs(static_cast<double>(4 * four) - law) < 0.02 * law);
}

TEST_CASE("engine: chunked prefill makes the cliff vanish up to max_model_len") {
    for (const u64 prompt : {19000u, 24000u, 24574u}) {
        CAPTURE(prompt);
        auto died = run_server(cliff(prompt));
        CHECK(died->exit_status == 1);
        CHECK(died->engine->failed_step().longest_prompt == prompt);
        CHECK(died->engine->failed_step().prefill_tokens == prompt);
        CHECK(died->engine->failed_step().requests == 1);
        auto chunked = run_server(cliff(prompt, 1, ""));
        CHECK(chunked->exit_status == 0);
        CHECK(chunked->engine->finish_record().completed == 1);
    }
}

TEST_CASE("engine: repeated layers are counted instead of redone, and nothing else changes") {
    for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:64"}) {
        CAPTURE(conf);
        const std::string text = fmt::format(
            "[device]\nname = \"sim:l4\"\n[model]\nconfig = \"llama-3.1-8b\"\n[server]\nmax_model_len = 8192\n"
            "max_num_seqs = 32\n[allocator]\nconf = \"{}\"\n[workload]\narrival_rate = 4\nduration = \"20s\"\n"
            "prompt_tokens = {{dist = \"lognormal\", mean = 600, cv = 1, max = 4000}}\noutput_tokens = 60\n", conf);
        RunOptions full;
        full.replay = false;
        auto redone = run_server(text, full);
        auto counted = run_server(text);
        REQUIRE(redone->exit_status == 0);
        REQUIRE(counted->exit_status == 0);
        CHECK(redone->engine->layers_replayed() == 0);
        CHECK(counted->engine->layers_replayed() > 1000);
        const trace::FinishRecord &a = redone->engine->finish_record(), &b = counted->engine->finish_record();
        CHECK(std::memcmp(&a, &b, sizeof a) == 0);
    }
}

TEST_CASE("engine: a step allocates what the op table says, and each row counts in the peak") {
    auto scenario = parse_scenario(cliff(100, 1, ""), "t");
    auto shape = load_model_shape("llama-3.1-8b");
    auto device = open_chip(*scenario, "", *shape);
    auto config = resolve_config(*scenario, *shape, (*device)->props());
    REQUIRE(config.has_value());
    const OpTable table = make_op_table(*config);
    Recorder recorder(**device, nullptr);
    AllocConf conf;
    Ledger ledger(**device, conf, recorder);
    Weights weights(*config, **device, ledger);
    const auto peak_without = [&](int row) {
        Forward forward(*config, **device, ledger, weights);
        forward.replay = false;
        if (row >= 0) forward.table().layer[static_cast<std::size_t>(row)].bytes_per_item_tenths = 0;
        REQUIRE(forward.profile(64, 4).has_value());   // the first pass takes the cuBLAS workspace
        const i64 before = ledger.allocator().stats().allocation[kStatAll].allocated;
        ledger.allocator().reset_peak_stats();
        REQUIRE(forward.profile(2048, 4).has_value());
        const i64 made = ledger.allocator().stats().allocation[kStatAll].allocated - before;
        if (row < 0) CHECK(made == static_cast<i64>(table.allocations(32)));
        return ledger.allocator().stats().allocated_bytes[kStatAll].peak;
    };
    const i64 peak = peak_without(-1);
    for (std::size_t i = 0; i < table.layer.size(); ++i) {
        const Op op = table.layer[i].op;
        const bool live_at_peak = op == Op::o_proj || op == Op::gate_up || op == Op::act || op == Op::down;
        if (!live_at_peak) continue;
        CAPTURE(op_name(op));
        CHECK(peak_without(static_cast<int>(i)) < peak);
    }
}

TEST_CASE("engine: all returned memory is returned, and the same seed gives the same figures") {
    const std::string text =
        "[device]\nname = \"sim:h100-80gb\"\n[model]\nconfig = \"llama-3.1-8b\"\n[workload]\nseed = 5\narrival_rate = 20\n"
        "duration = \"10s\"\nprompt_tokens = 800\noutput_tokens = 100\ncancel_share = 0.2\ncancel_after = \"500ms\"\n";
    auto a = run_server(text), b = run_server(text);
    REQUIRE(a->exit_status == 0);
    CHECK(std::memcmp(&a->engine->finish_record(), &b->engine->finish_record(), sizeof(trace::FinishRecord)) == 0);
    CHECK(a->engine->recorder().counters.cancelled > 10);
    const auto info = a->device->memory().mem_info();
    CHECK(info->total_bytes - info->free_bytes ==
          a->device->context_bytes() + a->device->outside_bytes() + a->device->graph_bytes());
}

// SQLite's sweep: the n-th allocation fails, for every n, once and for ever; each run ends with a
// named failure or is served, and gives everything back.
TEST_CASE("engine: every failing device call ends in a report with all memory returned") {
    const std::string base =
        "[device]\nname = \"sim:l4\"\n[model]\nconfig = \"smollm2-135m\"\n[server]\nmax_model_len = 512\nmax_num_seqs = 4\n"
        "cudagraph_capture_sizes = [1, 2]\nnum_gpu_blocks_override = 200\n[workload]\n"
        "[[workload.request]]\nprompt_tokens = 100\noutput_tokens = 5\ncount = 3\n";
    for (const char* call : {"cudaMalloc", "cudaGraphInstantiate", "cudaMemGetInfo"}) {
        u64 failures = 0;
        for (u64 n = 1; n < 400; ++n) {
            for (const u64 times : {u64{1}, u64{1} << 30}) {
                auto run = run_server(base + fmt::format("[[fault]]\nkind = \"device_call\"\ncall = \"{}\"\nnth = {}\ntimes = {}\n", call, n, times));
                REQUIRE_MESSAGE(run->error.empty(), run->error);
                CAPTURE(call);
                CAPTURE(n);
                if (run->exit_status == 1) {
                    REQUIRE(run->engine->failure().has_value());
                    ++failures;
                    CHECK(run->console.lines.size() > 1);
                }
            }
            if (failures < n) break;   // beyond the last call of its kind
        }
        CHECK(failures > 0);
    }
}
