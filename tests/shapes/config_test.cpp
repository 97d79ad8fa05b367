// Strangers' config.json files: what is refused, and with which words.
#include <doctest/doctest.h>

#include <string>

#include "kernels/base/prng.hpp"
#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/gpu_profile.hpp"
#include "labs/catalog/model_config.hpp"
#include "labs/catalog/text_file.hpp"
#include "labs/shapes/model_shape.hpp"

using namespace oomlab;

namespace {

std::string message_of(const std::string& json) {
    auto shape = parse_config_json(json, "config.json");
    return shape ? "" : shape.error().message;
}
bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

std::string with(const std::string& change) {
    return R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"torch_dtype":"bfloat16","hidden_size":4096,"intermediate_size":14336,
"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":131072)" +
           change + "}";
}

}  // namespace

TEST_CASE("config: bad files are refused with place and remedy") {
    CHECK(has(message_of(""), "not valid JSON"));
    CHECK(has(message_of("{\n  \"hidden_size\": 12,,\n}"), "line 2, column 21"));
    CHECK(has(message_of("[]"), "one JSON object"));
    CHECK(has(message_of("{}"), "hidden_size is missing"));
    CHECK(has(message_of(with(R"(,"num_hidden_layers":0)")), "num_hidden_layers is 0"));
    CHECK(has(message_of(with(R"(,"hidden_size":-4)")), "hidden_size = -4 makes no sense"));
    CHECK(has(message_of(with(R"(,"hidden_size":4096.5)")), "makes no sense"));
    CHECK(has(message_of(with(R"(,"vocab_size":"many")")), "vocab_size = \"many\""));
    CHECK(has(message_of(with(R"(,"num_key_value_heads":64)")), "more than num_attention_heads"));
    CHECK(has(message_of(with(
                  R"(,"num_hidden_layers":2048,"hidden_size":131072,"intermediate_size":1048576)")),
              "wrong digit count"));
    CHECK(has(message_of(std::string(100, '[')), "nested more than 64 deep"));
    CHECK(has(message_of(std::string(9u << 20, ' ')), "too large"));
    CHECK(!has(message_of(with(",\"vocab_size\":\"\\u001b[31m\"")), "\x1b"));
}

TEST_CASE("config: python's Infinity is read, strings that hold it are not touched") {
    auto shape = parse_config_json(
        with(
            R"(,"time_step_limit":[0.0, Infinity],"x":-Infinity,"y":NaN,"_name_or_path":"a/Infinity")"),
        "c");
    REQUIRE(shape);
    CHECK(shape->name == "a/Infinity");
}

TEST_CASE("config: an unknown architecture is counted and named, never silently") {
    auto shape = parse_config_json(
        with(R"(,"model_type":"brandnew","architectures":["BrandNewForCausalLM"])"), "c");
    REQUIRE(shape);
    REQUIRE(!shape->unknown.empty());
    CHECK(has(shape->unknown.front(), "BrandNewForCausalLM"));
}

TEST_CASE("config: quantization dialects") {
    const auto quantized = [](const std::string& config) {
        auto shape = parse_config_json(with(",\"quantization_config\":" + config), "c");
        REQUIRE(shape);
        return *shape;
    };
    CHECK(quantized(R"({"quant_method":"awq","bits":4,"group_size":128})").quant_bits ==
          doctest::Approx(4.15625));
    CHECK(quantized(R"({"quant_method":"gptq","bits":4,"group_size":32})").quant_bits ==
          doctest::Approx(4.625));
    CHECK(quantized(R"({"quant_method":"fp8","weight_block_size":[128,128]})").quant_bits ==
          doctest::Approx(8.00195));
    CHECK(
        quantized(
            R"({"load_in_4bit":true,"quant_method":"bitsandbytes","bnb_4bit_use_double_quant":true})")
            .quant_bits == doctest::Approx(4.127));
    auto w8a8 = quantized(
        R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"int"},"input_activations":{"num_bits":8}}},"ignore":["lm_head"]})");
    CHECK(w8a8.quantization == Quantization::w8a8_int8);
    CHECK(w8a8.traits.quantize_attention);
    auto odd = quantized(R"({"quant_method":"sixbit"})");
    CHECK(odd.quantization == Quantization::none);
    CHECK(has(odd.unknown.front(), "sixbit"));
    auto left_out = quantized(
        R"({"quant_method":"fp8","modules_to_not_convert":["model.layers.*.self_attn"]})");
    CHECK(!left_out.traits.quantize_attention);
}

TEST_CASE("config: ten thousand mutations of real files neither crash nor hang") {
    Prng prng(7);
    for (const std::string& name : model_names()) {
        auto path = find_model_config(name);
        REQUIRE(path);
        auto text = read_text_file(*path);
        REQUIRE(text);
        for (int i = 0; i < 500; ++i) {
            std::string mutant = *text;
            const auto edits = prng.between(1, 4);
            for (u64 e = 0; e < edits && !mutant.empty(); ++e) {
                const std::size_t at = prng.below(mutant.size());
                switch (prng.below(4)) {
                    case 0:
                        mutant[at] = static_cast<char>(prng.below(256));
                        break;
                    case 1:
                        mutant.erase(at, prng.between(1, 20));
                        break;
                    case 2:
                        mutant.insert(at, std::to_string(prng.next() >> prng.below(64)));
                        break;
                    default:
                        mutant.resize(at);
                        break;
                }
            }
            auto shape = parse_config_json(mutant, name);
            if (!shape) continue;
            CHECK(weights_bytes(*shape, 1) > 0);
            (void)kv_layout(*shape, 2, 2.0, 16, 4096, 2048);
            (void)activation_peak(*shape, 8192, 1024, 1, {});
        }
    }
}

TEST_CASE("catalog: the eleven cards load, with the driver's totals") {
    const auto names = gpu_profile_names();
    CHECK(names.size() >= 11);
    for (const std::string& name : names) {
        auto gpu = load_gpu_profile(name);
        REQUIRE_MESSAGE(gpu, name);
        CHECK(gpu->sources.size() >= 3);
        CHECK(gpu->flops_share == doctest::Approx(0.65));
        CHECK(gpu->bandwidth_share == doctest::Approx(0.90));
        CHECK(gpu->peak_flops_16 > 1e13);
    }
    CHECK(load_gpu_profile("rtx4090")->total_bytes == 25250627584ULL);
    CHECK(!load_gpu_profile("t4")->has_bf16);
    CHECK(load_gpu_profile("b200")->sm_major == 10);
    CHECK(load_gpu_profile("l4")->sm_minor == 9);
    auto wrong = load_gpu_profile("h100-80g");
    REQUIRE(!wrong);
    CHECK(has(wrong.error().message, "did you mean h100-80gb?"));
    CHECK(!load_gpu_profile("../gpus/t4"));
    CHECK(load_gpu_or_size("24GiB")->total_bytes == 24 * kGiB);
    CHECK(!load_gpu_or_size("24KiB"));
    for (const auto& [said, id] : {std::pair{"NVIDIA-H100-80GB-HBM3", "h100-80gb"},
                                   {"H100-80GB SXM", "h100-80gb"},
                                   {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
                                   {"Tesla T4", "t4"},
                                   {"NVIDIA GeForce RTX 4090", "rtx4090"},
                                   {"NVIDIA L4", "l4"},
                                   {"L40S", "l40s"},
                                   {"H200", "h200"}})
        CHECK_MESSAGE(load_gpu_or_size(said)->id == id, said);
    for (const char* said : {"L40", "H20", "GB200", "RTX 4090 48GB", "RTX 3060 Ti", "H100 NVL"})
        CHECK_MESSAGE(!guess_gpu(said), said);
}
