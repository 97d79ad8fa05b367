// Bytes and times against figures that servers printed.
#include <doctest/doctest.h>

#include "labs/catalog/model_config.hpp"
#include "labs/shapes/model_shape.hpp"

using namespace oomlab;

namespace {
ModelShape model(const char* name) {
    auto shape = load_model_shape(name);
    REQUIRE(shape);
    return *shape;
}
double gib(u64 bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kGiB);
}
}  // namespace

TEST_CASE("weights: what a rank holds") {
    const ModelShape llama = model("llama-3.1-8b");
    CHECK(gib(weights_bytes(llama, 1)) == doctest::Approx(14.99).epsilon(0.0005));
    CHECK(gib(weights_bytes(llama, 2)) == doctest::Approx(7.51).epsilon(0.001));
    CHECK(gib(weights_bytes(llama, 4)) == doctest::Approx(3.77).epsilon(0.001));
    CHECK(gib(weights_bytes(llama, 1, 2, 0)) == doctest::Approx(7.51).epsilon(0.001));
    CHECK(gib(weights_bytes(llama, 1, 4, 0)) == doctest::Approx(4.26).epsilon(0.001));
    CHECK(gib(weights_bytes(model("gpt-oss-20b"), 1)) == doctest::Approx(13.47).epsilon(0.004));
    ModelShape fp8 = llama;
    apply_quantization(fp8, Quantization::fp8, 8, 0);
    CHECK(gib(weights_bytes(fp8, 1)) == doctest::Approx(8.49).epsilon(0.005));
    const auto tensors = weight_tensors(llama, 1);
    CHECK(tensors.front().name == "model.embed_tokens.weight");
    CHECK(tensors.back().name == "rotary_emb.cos_sin_cache");
    CHECK(tensors.back().bytes == 32 * kMiB);
}

TEST_CASE("weights: stages of a pipeline hold everything once") {
    for (u64 layers : {7u, 32u, 61u})
        for (u64 stages : {1u, 2u, 3u, 4u, 8u}) {
            if (stages > layers) continue;
            u64 next = 0;
            for (u64 s = 0; s < stages; ++s) {
                const auto [first, last] = pipeline_layers(layers, stages, s);
                CHECK(first == next);
                CHECK(last > first);
                next = last;
            }
            CHECK(next == layers);
        }
}

TEST_CASE("kv: bytes per token") {
    CHECK(kv_bytes_per_token(model("llama-3.1-8b"), 1, 2) == 131072);
    CHECK(kv_bytes_per_token(model("llama-3.1-8b"), 16, 2) == 131072 / 8);
    CHECK(kv_bytes_per_token(model("qwen2.5-0.5b"), 1, 2) == 12288);
    CHECK(kv_bytes_per_token(model("deepseek-v2-lite"), 1, 2) == 27 * 576 * 2);
    CHECK(kv_bytes_per_token(model("deepseek-v2-lite"), 8, 1) == 27 * 576);
    CHECK(kv_bytes_per_token(model("mistral-7b"), 1, 2) == 131072);
}

TEST_CASE("kv: mixed layers share a pool in groups") {
    const KvLayout gemma = kv_layout(model("gemma-3-27b"), 1, 2, 16, 8192, 8192);
    CHECK(gemma.group_size == 10);
    CHECK(gemma.groups == 7);
    CHECK(gemma.padding_layers == 8);
    CHECK(static_cast<u64>(19.53 * static_cast<double>(kGiB)) / gemma.block_bytes / gemma.groups *
              16 ==
          doctest::Approx(36560).epsilon(0.001));
    const KvLayout llama = kv_layout(model("llama-3.1-8b"), 1, 2, 16, 16384, 8192);
    CHECK(llama.groups == 1);
    CHECK(llama.blocks_per_request == 1024);
}

TEST_CASE("activations: the two moments, and the version that changed one of them") {
    const ModelShape llama = model("llama-3.1-8b");
    const auto now = activation_peak(llama, 8192, 1024, 1, parse_engine_version("0.19.0"));
    CHECK(now.sampler_moment);
    CHECK(gib(now.peak_bytes) == doctest::Approx(1.89).epsilon(0.02));
    CHECK(gib(activation_peak(llama, 8192, 1024, 1, parse_engine_version("0.11.0")).peak_bytes) ==
          doctest::Approx(4.76).epsilon(0.01));
    const auto ten = activation_peak(llama, 2048, 1, 1, parse_engine_version("0.7.3"));
    CHECK(!ten.sampler_moment);
    CHECK(gib(ten.peak_bytes) == doctest::Approx(0.22).epsilon(0.06));
    CHECK(gib(activation_peak(model("qwen2.5-7b"), 32768, 256, 1, parse_engine_version("0.8.5"))
                  .peak_bytes) == doctest::Approx(4.35).epsilon(0.01));
    CHECK(gib(activation_peak(model("qwen3-30b-a3b"), 8192, 1024, 1, parse_engine_version("0.19.0"))
                  .peak_bytes) == doctest::Approx(2.68).epsilon(0.03));
    CHECK(gib(activation_peak(model("gpt-oss-20b"), 8192, 1024, 1, parse_engine_version("0.11.0"))
                  .peak_bytes) == doctest::Approx(7.38).epsilon(0.03));
}

TEST_CASE("engine versions compare") {
    CHECK(parse_engine_version("0.6.4.post1").minor == 6);
    CHECK(parse_engine_version("0.6.4.post1").patch == 4);
    CHECK(parse_engine_version("v0.17.0rc1").at_least(0, 17));
    CHECK(!parse_engine_version("~0.11").at_least(0, 17));
    CHECK(parse_engine_version("nightly").at_least(99, 0));
    CHECK(parse_engine_version("1.0.0").at_least(0, 21));
}

TEST_CASE("step cost: a decode reads the weights, a prefill computes") {
    const ModelShape llama = model("llama-3.1-8b");
    const StepCost decode = step_cost(llama, 1, 1, 1024, 1024, 1, 2);
    CHECK(decode.bytes ==
          doctest::Approx(16.06e9 - 128256.0 * 4096 * 2 + 131072.0 * 1025).epsilon(0.01));
    CHECK(decode.flops ==
          doctest::Approx(2.0 * (8.03e9 - 0.525e9) + 4.0 * 32 * 128 * 32 * 1024).epsilon(0.01));
    const StepCost prefill = step_cost(llama, 2048, 1, 2048 * 2049 / 2, 0, 1, 2);
    CHECK(prefill.flops > 2047 * 0.9 * (decode.flops - 2.0 * 128256 * 4096));
    CHECK(step_cost(llama, 1, 1, 1024, 1024, 2, 2).bytes < 0.55 * decode.bytes);
    const ModelShape moe = model("mixtral-8x7b");
    CHECK(step_cost(moe, 1, 1, 1, 1, 1, 2).flops == doctest::Approx(2.0 * 12.75e9).epsilon(0.02));
    CHECK(step_cost(moe, 1, 1, 1, 1, 1, 2).bytes <
          0.35 * step_cost(moe, 64, 64, 64, 64, 1, 2).bytes);
}
