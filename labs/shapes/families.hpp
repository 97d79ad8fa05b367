// Habits of model families that their config.json does not spell out. Private to this room.
#pragma once

#include "labs/shapes/model_shape.hpp"

namespace oomlab::config {

using QkNorm = WeightTraits::QkNorm;

// What a family's code does that its config does not say. `type` is model_type without - _ . signs.
struct Family {
    const char* type;
    bool tied, gated, qkv_bias, output_bias;
    QkNorm qk_norm;
    unsigned norms;
    bool norm_bias;
    double rotary;  // share of head_dim; 0: no rope table
};
inline constexpr QkNorm kNo = QkNorm::none, kHead = QkNorm::head, kFull = QkNorm::full;
inline constexpr Family kFamilies[] = {
    {"llama", false, true, false, false, kNo, 2, false, 1},
    {"mistral", false, true, false, false, kNo, 2, false, 1},
    {"mistral3", false, true, false, false, kNo, 2, false, 1},
    {"ministral", false, true, false, false, kNo, 2, false, 1},
    {"granite", true, true, false, false, kNo, 2, false, 1},
    {"granitemoe", true, true, false, false, kNo, 2, false, 1},
    {"granitemoehybrid", true, true, false, false, kNo, 2, false, 1},
    {"mixtral", false, true, false, false, kNo, 2, false, 1},
    {"yi", false, true, false, false, kNo, 2, false, 1},
    {"smollm3", true, true, false, false, kNo, 2, false, 1},
    {"exaone", true, true, false, false, kNo, 2, false, 1},
    {"exaone4", true, true, false, false, kHead, 2, false, 1},
    {"seedoss", false, true, true, false, kNo, 2, false, 1},
    {"internlm2", false, true, false, false, kNo, 2, false, 1},
    {"internlm3", false, true, false, false, kNo, 2, false, 1},
    {"internlm", false, true, true, true, kNo, 2, false, 1},
    {"baichuan", false, true, false, false, kNo, 2, false, 1},
    {"qwen", false, true, true, false, kNo, 2, false, 1},
    {"qwen2", false, true, true, false, kNo, 2, false, 1},
    {"qwen2moe", false, true, true, false, kNo, 2, false, 1},
    {"qwen2vl", false, true, true, false, kNo, 2, false, 1},
    {"qwen25vl", false, true, true, false, kNo, 2, false, 1},
    {"qwen2vltext", false, true, true, false, kNo, 2, false, 1},
    {"qwen25vltext", false, true, true, false, kNo, 2, false, 1},
    {"mimo", false, true, true, false, kNo, 2, false, 1},
    {"qwen3", false, true, false, false, kHead, 2, false, 1},
    {"qwen3moe", false, true, false, false, kHead, 2, false, 1},
    {"qwen3vl", false, true, false, false, kHead, 2, false, 1},
    {"qwen3vltext", false, true, false, false, kHead, 2, false, 1},
    {"qwen3vlmoe", false, true, false, false, kHead, 2, false, 1},
    {"qwen3vlmoetext", false, true, false, false, kHead, 2, false, 1},
    {"qwen3next", false, true, false, false, kHead, 2, false, 0.25},
    {"qwen35", false, true, false, false, kHead, 2, false, 0.25},
    {"qwen35text", false, true, false, false, kHead, 2, false, 0.25},
    {"qwen35moe", false, true, false, false, kHead, 2, false, 0.25},
    {"qwen35moetext", false, true, false, false, kHead, 2, false, 0.25},
    {"gemma", true, true, false, false, kNo, 2, false, 1},
    {"gemma2", true, true, false, false, kNo, 4, false, 1},
    {"gemma3", true, true, false, false, kHead, 4, false, 2},
    {"gemma3text", true, true, false, false, kHead, 4, false, 2},
    {"gemma4", true, true, false, false, kHead, 4, false, 2},
    {"gemma4text", true, true, false, false, kHead, 4, false, 2},
    {"phi", false, false, true, true, kNo, 1, true, 0.5},
    {"phi3", false, true, false, false, kNo, 2, false, 1},
    {"phi4mm", true, true, false, false, kNo, 2, false, 1},
    {"phimoe", false, true, true, true, kNo, 2, true, 1},
    {"opt", true, false, true, true, kNo, 2, true, 0},
    {"gpt2", true, false, true, true, kNo, 2, true, 0},
    {"gptbigcode", true, false, true, true, kNo, 2, true, 0},
    {"gptneox", false, false, true, true, kNo, 2, true, 0.25},
    {"gptj", false, false, false, false, kNo, 1, true, 0.25},
    {"starcoder2", true, false, true, true, kNo, 2, true, 1},
    {"bloom", true, false, true, true, kNo, 2, true, 0},
    {"mpt", true, false, false, false, kNo, 2, false, 0},
    {"stablelm", false, true, false, false, kNo, 2, true, 0.25},
    {"falcon", true, false, false, false, kNo, 1, true, 1},
    {"cohere", true, true, false, false, kNo, 1, false, 1},
    {"cohere2", true, true, false, false, kNo, 1, false, 1},
    {"olmo", false, true, false, false, kNo, 0, false, 1},
    {"olmo2", false, true, false, false, kFull, 2, false, 1},
    {"olmo3", false, true, false, false, kFull, 2, false, 1},
    {"olmoe", false, true, false, false, kFull, 2, false, 1},
    {"nemotron", false, false, false, false, kNo, 2, true, 0.5},
    {"nemotronh", false, false, false, false, kNo, 1, false, 0},
    {"nemotronnas", false, true, false, false, kNo, 2, false, 1},
    {"jamba", false, true, false, false, kNo, 2, false, 0},
    {"dbrx", false, true, false, false, kNo, 2, false, 1},
    {"llama4", false, true, false, false, kNo, 2, false, 1},
    {"llama4text", false, true, false, false, kNo, 2, false, 1},
    {"mllama", false, true, false, false, kNo, 2, false, 1},
    {"mllamatextmodel", false, true, false, false, kNo, 2, false, 1},
    {"llavanext", false, true, false, false, kNo, 2, false, 1},
    {"llava", false, true, false, false, kNo, 2, false, 1},
    {"chatglm", false, true, true, false, kNo, 2, false, 0.5},
    {"glm", false, true, true, false, kNo, 2, false, 0.5},
    {"glm4", false, true, true, false, kNo, 2, false, 0.5},
    {"glm4moe", false, true, true, false, kNo, 2, false, 0.5},
    {"deepseek", false, true, false, false, kNo, 2, false, 1},
    {"deepseekv2", false, true, false, false, kNo, 2, false, 1},
    {"deepseekv3", false, true, false, false, kNo, 2, false, 1},
    {"deepseekv32", false, true, false, false, kNo, 2, false, 1},
    {"kimik2", false, true, false, false, kNo, 2, false, 1},
    {"kimik25", false, true, false, false, kNo, 2, false, 1},
    {"glmmoedsa", false, true, false, false, kNo, 2, false, 1},
    {"gptoss", false, true, true, true, kNo, 2, false, 1},
    {"minimaxm2", false, true, false, false, kFull, 2, false, 1},
    {"ernie45", false, true, false, false, kNo, 2, false, 1},
    {"ernie45moe", false, true, false, false, kNo, 2, false, 1},
    {"hunyuanv1dense", false, true, false, false, kHead, 2, false, 1},
};

}  // namespace oomlab::config
