// The budget's rules: every line recomputes from the others, changes really make it fit, engines
// differ as they do, and strangers' flags are refused with a remedy.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kernels/base/prng.hpp"
#include "labs/catalog/model_config.hpp"
#include "labs/field/budget/budget_report.hpp"
#include "labs/field/budget/gguf_mix.hpp"
#include "tests/support/temp_dir.hpp"

using namespace oomlab;
using namespace oomlab::field;

namespace {

ServerFlags flags_of(std::vector<std::string> tokens, Engine engine = Engine::vllm) {
    auto flags = parse_server_flags(engine, tokens, true);
    REQUIRE_MESSAGE(flags, (flags ? "" : flags.error().message));
    return *flags;
}
Budget budget_of(const char* model, const char* gpu, std::vector<std::string> tokens,
                 Engine engine = Engine::vllm) {
    auto shape = load_model_shape(model);
    auto card = load_gpu_or_size(gpu);
    REQUIRE(shape);
    REQUIRE(card);
    auto budget = compute_budget(*shape, *card, flags_of(std::move(tokens), engine));
    REQUIRE_MESSAGE(budget, (budget ? "" : budget.error().message));
    return *budget;
}
double gib(i64 bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kGiB);
}
i64 sum_of(const Budget& b) {
    i64 sum = 0;
    for (const BudgetLine& line : b.lines)
        sum += line.id == "kv" ? std::max<i64>(0, line.bytes) : line.bytes;
    return sum;
}
bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("budget: vLLM's own arithmetic on an H100") {
    const Budget b =
        budget_of("llama-3.1-8b", "h100-80gb",
                  {"--gpu-memory-utilization", "0.95", "--max-model-len", "16384", "--max-num-seqs",
                   "1024", "--max-num-batched-tokens=8192", "--engine-version", "0.19.0"});
    CHECK(gib(b.kv_pool_bytes) == doctest::Approx(58.11).epsilon(0.0005));
    CHECK(std::abs(static_cast<double>(b.kv_tokens) - 476016) < 200);
    CHECK(b.max_concurrency == doctest::Approx(29.05).epsilon(0.001));
    CHECK(b.fits);
    CHECK(sum_of(b) == static_cast<i64>(b.total_bytes));
}

TEST_CASE("budget: the planner's stale constants are a negative test") {
    // Activation 4.8 and 5.6 GiB were right before 0.17 and are 3 GiB too much after.
    const Budget old = budget_of("llama-3.1-8b", "h100-80gb",
                                 {"--max-model-len", "16000", "--engine-version", "0.11.0"});
    const Budget now = budget_of("llama-3.1-8b", "h100-80gb",
                                 {"--max-model-len", "16000", "--engine-version", "0.19.0"});
    CHECK(gib(static_cast<i64>(old.activation_peak_bytes)) == doctest::Approx(4.76).epsilon(0.01));
    CHECK(gib(static_cast<i64>(now.activation_peak_bytes)) == doctest::Approx(1.89).epsilon(0.01));
    CHECK(gib(old.kv_pool_bytes) == doctest::Approx(51.38).epsilon(0.002));
}

TEST_CASE("budget: from 0.21 on graphs come out of the pool") {
    const Budget b20 = budget_of("llama-3.1-8b", "h100-80gb",
                                 {"--gpu-memory-utilization", "0.9", "--engine-version", "0.20.0"});
    const Budget b21 = budget_of("llama-3.1-8b", "h100-80gb",
                                 {"--gpu-memory-utilization", "0.9", "--engine-version", "0.21.0"});
    CHECK(b20.kv_pool_bytes - b21.kv_pool_bytes == static_cast<i64>(b21.cuda_graph_bytes));
    CHECK(b21.headroom_bytes - b20.headroom_bytes == static_cast<i64>(b21.cuda_graph_bytes));
    CHECK(
        budget_of("llama-3.1-8b", "h100-80gb", {"--engine-version", "0.21.0"}).resolved.fraction ==
        doctest::Approx(0.92));
    const Budget eager = budget_of("llama-3.1-8b", "h100-80gb", {"--enforce-eager"});
    CHECK(eager.cuda_graph_bytes == 0);
}

TEST_CASE("budget: defaults by card and version") {
    CHECK(budget_of("llama-3.1-8b", "h100-80gb", {}).resolved.max_num_batched_tokens == 8192);
    CHECK(budget_of("llama-3.1-8b", "h100-80gb", {}).resolved.max_num_seqs == 1024);
    CHECK(budget_of("llama-3.1-8b", "a100-80gb", {}).resolved.max_num_batched_tokens == 2048);
    CHECK(budget_of("llama-3.1-8b", "rtx4090", {}).resolved.max_num_seqs == 256);
    CHECK(budget_of("qwen2.5-7b", "rtx4090", {"--engine-version", "0.6.6"})
              .resolved.max_num_batched_tokens == 32768);
    CHECK(budget_of("llama-3.1-8b", "rtx4090", {"--engine-version", "0.7.3"})
              .resolved.max_num_batched_tokens == 2048);
}

TEST_CASE("budget: each change alone makes it fit") {
    for (const auto& [model, gpu] : {std::pair{"llama-3.1-8b", "rtx4090"},
                                     {"llama-3.1-70b", "h100-80gb"},
                                     {"qwen2.5-14b", "l4"},
                                     {"mixtral-8x7b", "a100-80gb"},
                                     {"qwen2.5-32b", "a10g"}}) {
        Budget b = budget_of(model, gpu, {});
        std::vector<GpuProfile> cards;
        for (const std::string& name : gpu_profile_names())
            cards.push_back(*load_gpu_profile(name));
        find_changes(b, cards);
        CHECK_MESSAGE(!b.fits, model);
        CHECK_MESSAGE(!b.reasons.empty(), model);
        REQUIRE_MESSAGE(!b.changes.empty(), model);
        for (const BudgetChange& change : b.changes) {
            CHECK(!change.cost.empty());
            if (change.flag.rfind("--gpu ", 0) == 0) {
                CHECK_MESSAGE(budget_of(model, change.flag.substr(6).c_str(), {}).fits,
                              model << " " << change.flag);
                continue;
            }
            std::vector<std::string> tokens;
            std::string word;
            for (char c : change.flag + " ") {
                if (c != ' ')
                    word += c;
                else if (!word.empty())
                    tokens.push_back(word), word.clear();
            }
            CHECK_MESSAGE(budget_of(model, gpu, tokens).fits, model << " " << change.flag);
        }
    }
}

TEST_CASE("budget: lines add up to the card for every model, card and engine") {
    Prng prng(11);
    for (const std::string& model : model_names())
        for (const std::string& gpu : gpu_profile_names())
            for (Engine engine : {Engine::vllm, Engine::sglang, Engine::llama_cpp}) {
                std::vector<std::string> tokens;
                if (engine == Engine::vllm)
                    tokens = {"--max-num-seqs", std::to_string(prng.between(1, 2048)),
                              "--gpu-memory-utilization",
                              std::to_string(0.3 + 0.69 * prng.uniform())};
                const Budget b = budget_of(model.c_str(), gpu.c_str(), tokens, engine);
                CHECK_MESSAGE(std::llabs(sum_of(b) - static_cast<i64>(b.total_bytes)) <= 1,
                              model << " " << gpu << " " << engine_name(engine));
                if (b.fits && engine != Engine::llama_cpp) {
                    CHECK(b.longest_request >=
                          std::min(b.resolved.max_model_len, b.shape.max_position_embeddings));
                    CHECK(b.kv_tokens <=
                          static_cast<u64>(b.kv_pool_bytes) / b.kv_bytes_per_token + 1);
                }
            }
}

TEST_CASE("budget: SGLang's fraction counts from what was free before loading") {
    const Budget b =
        budget_of("llama-3.1-8b", "h100-80gb", {"--mem-fraction-static", "0.88"}, Engine::sglang);
    CHECK(gib(b.kv_pool_bytes) == doctest::Approx(54.15).epsilon(0.003));
    CHECK(budget_of("llama-3.1-8b", "h100-80gb", {}, Engine::sglang).resolved.fraction ==
          doctest::Approx(0.834).epsilon(0.005));
    CHECK(budget_of("llama-3.1-8b", "t4", {"--context-length", "4096"}, Engine::sglang)
              .resolved.fraction == doctest::Approx(0.75).epsilon(0.02));
}

TEST_CASE("budget: llama.cpp's buffers to the MiB") {
    const Budget b = budget_of("llama-3.1-8b", "rtx3060-12gb",
                               {"-c", "8192", "--flash-attn", "off", "--quantization", "Q4_K_M"},
                               Engine::llama_cpp);
    CHECK(static_cast<double>(b.weights_bytes) / kMiB == doctest::Approx(4403.49).epsilon(0.00001));
    CHECK(static_cast<double>(b.host_weights_bytes) / kMiB ==
          doctest::Approx(281.81).epsilon(0.00005));
    CHECK(b.kv_pool_bytes == 1024 * static_cast<i64>(kMiB));
    CHECK(b.activation_peak_bytes == 560 * kMiB);
    CHECK(b.fits);
    const Budget half =
        budget_of("llama-3.1-8b", "rtx3060-12gb",
                  {"-c", "8192", "-ngl", "16", "--quantization", "F16"}, Engine::llama_cpp);
    CHECK(half.kv_pool_bytes == 512 * static_cast<i64>(kMiB));
    CHECK(half.host_weights_bytes > half.weights_bytes);
    const Budget windows = budget_of(
        "gpt-oss-20b", "h100-80gb", {"-c", "131072", "--quantization", "MXFP4"}, Engine::llama_cpp);
    CHECK(windows.kv_pool_bytes == static_cast<i64>(12 * 131072 + 12 * 768) * 2 * 8 * 64 * 2);
}

TEST_CASE("budget: what cannot be worked out is named") {
    const Budget gemma = budget_of("gemma-3-27b", "h100-80gb", {"--max-model-len", "8192"});
    bool vision = false;
    for (const std::string& text : gemma.unknown) vision |= has(text, "vision tower");
    CHECK(vision);
    const Budget lora = budget_of("llama-3.1-8b", "h100-80gb", {"--enable-lora"});
    REQUIRE(!lora.unknown.empty());
    CHECK(has(lora.unknown.back(), "LoRA"));
    CHECK(has(budget_of("llama-3.1-8b", "t4", {}).unknown.back(), "bfloat16"));
}

TEST_CASE("budget: flags are refused with place and remedy") {
    const auto refused = [](std::vector<std::string> tokens) {
        auto flags = parse_server_flags(Engine::vllm, tokens, true);
        return flags ? std::string() : flags.error().message;
    };
    CHECK(has(refused({"--max-model-length", "5"}), "did you mean --max-model-len?"));
    CHECK(has(refused({"--gpu-memory-utilization", "1.2"}), "above 0 and up to 1"));
    CHECK(has(refused({"--max-num-seqs", "many"}), "takes a number"));
    CHECK(has(refused({"--max-num-seqs"}), "needs a value"));
    CHECK(has(refused({"--max-num-seqs", "0"}), "from 1"));
    CHECK(has(refused({"--block-size", "0"}), "block size"));
    CHECK(has(refused({"llama"}), "is not a flag"));
    CHECK(flags_of({"--max-model-len", "32k"}).max_model_len == 32000u);
    CHECK(flags_of({"--max_model_len=32K"}).max_model_len == 32768u);
    CHECK(flags_of({"--no-enable-chunked-prefill"}).enable_chunked_prefill == false);
    CHECK(flags_of({"--max-model-len", "auto"}).max_model_len_auto);
    auto card = load_gpu_profile("h100-80gb");
    auto odd = compute_budget(*load_model_shape("qwen2.5-0.5b"), *card, flags_of({"-tp", "8"}));
    REQUIRE(!odd);
    CHECK(has(odd.error().message, "does not divide"));
}

TEST_CASE("budget: JSON has the promised keys and recomputes") {
    const auto j = nlohmann::json::parse(
        budget_json(budget_of("llama-3.1-8b", "rtx4090", {"--max-model-len", "8192"})));
    for (const char* key :
         {"weights_bytes", "kv_bytes_per_token", "activation_peak_bytes", "cuda_graph_bytes",
          "non_torch_bytes", "context_bytes", "communication_bytes", "kv_pool_bytes", "kv_tokens",
          "max_concurrency", "headroom_bytes", "fits", "changes", "unknown"})
        CHECK_MESSAGE(j.contains(key), key);
    CHECK(j["kv_tokens"].get<u64>() ==
          j["kv_pool_bytes"].get<u64>() / j["kv_bytes_per_token"].get<u64>() / 16 * 16);
}

TEST_CASE("budget: the picture is a PNG") {
    test::TempDir dir;
    const Budget a = budget_of("llama-3.1-8b", "rtx4090", {}),
                 b = budget_of("llama-3.1-8b", "h200", {});
    const std::string path = dir.file("stack.png");
    REQUIRE(budget_plot({&a, &b}, {"rtx4090", "h200"}, path));
    CHECK(std::filesystem::file_size(path) > 2000);
    CHECK(!budget_plot({&a}, {"x"}, dir.file("missing/stack.png")));
}

TEST_CASE("budget: explain names formula, numbers and error of every consumer") {
    const std::string text = budget_text(budget_of("llama-3.1-8b", "rtx4090", {}), true);
    CHECK(has(text, "formula total x utilization - weights - activations - non_torch"));
    CHECK(has(text, "numbers 23.52 GiB x 0.9 - 14.99 GiB"));
    CHECK(has(text, "8,030,261,248 parameters x 16 bit / tp 1"));
    CHECK(!has(text, "\x1b"));
}
