#include "tests/support/field_tables.hpp"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace oomlab::test {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> out;
    std::stringstream in(line);
    std::string part;
    while (std::getline(in, part, '\t')) out.push_back(part);
    return out;
}

// "12 sliding / 12 full of 24 layers" and "key=value" notes.
long number_after(const std::string& text, const std::string& key, long absent) {
    const auto at = text.find(key);
    return at == std::string::npos ? absent : std::atol(text.c_str() + at + key.size());
}

void put(Json& j, const char* key, const Row& row, const char* column) {
    if (auto n = number(row, column)) j[key] = static_cast<long long>(*n);
}

Json text_part(const Row& row, const std::string& arch) {
    Json j;
    put(j, "hidden_size", row, "hidden_size");
    const bool opt = arch == "OPT", falcon = arch == "Falcon", glm = arch == "Glm4";
    put(j,
        opt   ? "ffn_dim"
        : glm ? "ffn_hidden_size"
              : "intermediate_size",
        row, "intermediate_size");
    put(j, glm ? "num_layers" : "num_hidden_layers", row, "num_hidden_layers");
    put(j, "num_attention_heads", row, "num_attention_heads");
    put(j,
        falcon ? "num_kv_heads"
        : glm  ? "multi_query_group_num"
               : "num_key_value_heads",
        row, "num_key_value_heads");
    put(j, glm ? "padded_vocab_size" : "vocab_size", row, "vocab_size");
    if (!falcon)
        put(j, glm ? "seq_length" : "max_position_embeddings", row, "max_position_embeddings");
    const std::string tied = cell(row, "tie_word_embeddings");
    if (!tied.empty()) j["tie_word_embeddings"] = tied == "True";
    if (auto d = number(row, "head_dim");
        d && *d * *number(row, "num_attention_heads") != *number(row, "hidden_size"))
        j[glm ? "kv_channels" : "head_dim"] = static_cast<long long>(*d);
    if (opt) j["word_embed_proj_dim"] = j["hidden_size"], j.erase("num_key_value_heads");
    if (falcon) {
        const bool modern = *number(row, "num_attention_heads") > 100;
        j["new_decoder_architecture"] = modern;
        j["multi_query"] = true;
        j["parallel_attn"] = true;
        j["bias"] = false;
        j.erase("intermediate_size");
        if (!modern) j.erase("num_kv_heads");
    }
    if (glm)
        j["add_qkv_bias"] = true, j["add_bias_linear"] = false, j["multi_query_attention"] = true;
    if (arch == "Phi") j["partial_rotary_factor"] = 0.4;
    return j;
}

void experts(Json& j, const Row& row, const std::string& arch) {
    if (!number(row, "num_experts")) return;
    const bool routed = arch.rfind("Deepseek", 0) == 0 || arch == "Glm4Moe" ||
                        arch == "GlmMoeDsa" || arch == "NemotronH";
    const bool local =
        arch == "Mixtral" || arch == "GptOss" || arch == "MiniMaxM2" || arch == "Llama4";
    put(j,
        routed  ? "n_routed_experts"
        : local ? "num_local_experts"
                : "num_experts",
        row, "num_experts");
    put(j, "num_experts_per_tok", row, "num_experts_per_tok");
    if (!local && arch != "Jamba") put(j, "moe_intermediate_size", row, "moe_intermediate_size");
    if (local && arch != "Llama4") put(j, "intermediate_size", row, "moe_intermediate_size");
    if (arch == "Qwen2Moe" || arch == "Qwen3Next" || arch == "Qwen3.5Moe")
        put(j, "shared_expert_intermediate_size", row, "shared_expert_intermediate_size");
    else if (arch == "NemotronH")
        put(j, "moe_shared_expert_intermediate_size", row, "shared_expert_intermediate_size");
    else if (number(row, "num_shared_experts"))
        put(j, "n_shared_experts", row, "num_shared_experts");
    put(j, "first_k_dense_replace", row, "dense_layers");
    if (arch == "Jamba") j["expert_layer_period"] = 2, j["expert_layer_offset"] = 1;
    if (arch == "Llama4") {
        j["interleave_moe_layer_step"] =
            number_after(cell(row, "note"), "interleave_moe_layer_step=", 1);
        j["intermediate_size_mlp"] =
            number_after(cell(row, "note"), "intermediate_size_mlp=", 16384);
        j["attention_chunk_size"] = 8192;
    }
}

void mixers(Json& j, const Row& row, const std::string& arch) {
    for (const char* key :
         {"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
        put(j, key, row, key);
    if (number(row, "kv_lora_rank") && !number(row, "q_lora_rank")) j["q_lora_rank"] = nullptr;
    put(j, "sliding_window", row, "sliding_window");
    const std::string note = cell(row, "note"), mamba = cell(row, "mamba"),
                      pattern = cell(row, "sliding_pattern");
    const long layers = static_cast<long>(*number(row, "num_hidden_layers"));
    if (arch == "GptOss") {
        for (long i = 0; i < layers; ++i)
            j["layer_types"].push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
        j["attention_bias"] = true;
    }
    if (arch == "Gemma3" || arch == "Gemma4") j["sliding_window_pattern"] = 6;
    if (arch == "Cohere2") j["sliding_window_pattern"] = 4;
    if (note.find("index_head_dim=") != std::string::npos) {
        j["index_n_heads"] = number_after(note, "index_n_heads=", 64);
        j["index_head_dim"] = number_after(note, "index_head_dim=", 128);
    }
    if (arch == "Glm4Moe")
        j["attention_bias"] = true, j["use_qk_norm"] = *number(row, "hidden_size") > 5000;
    if (arch == "MiniMaxM2") j["use_qk_norm"] = true;
    if (arch == "Cohere" && cell(row, "model").find("plus") != std::string::npos)
        j["use_qk_norm"] = true;
    if (mamba.find("gated delta-net") != std::string::npos) {
        j["full_attention_interval"] = 4;
        j["linear_num_key_heads"] = 16;
        j["linear_num_value_heads"] = number_after(mamba, "linear_num_value_heads=", 32);
        j["linear_key_head_dim"] = 128;
        j["linear_value_head_dim"] = 128;
        j["linear_conv_kernel_dim"] = 4;
        j["partial_rotary_factor"] = 0.25;
    }
    if (arch == "Jamba") {
        j["attn_layer_period"] = 8, j["attn_layer_offset"] = 4;
        j["mamba_d_state"] = 16, j["mamba_d_conv"] = 4, j["mamba_expand"] = 2,
        j["mamba_dt_rank"] = 256;
    }
    if (arch == "NemotronH") {
        const long m = number_after(mamba, "pattern: ", 0), a = number_after(mamba, "mamba2, ", 0),
                   mlp = number_after(mamba, "attention, ", 0),
                   moe = number_after(mamba, "mlp, ", 0);
        j["hybrid_override_pattern"] = std::string(static_cast<std::size_t>(m), 'M') +
                                       std::string(static_cast<std::size_t>(a), '*') +
                                       std::string(static_cast<std::size_t>(mlp), '-') +
                                       std::string(static_cast<std::size_t>(moe), 'E');
        j["mamba_num_heads"] = number_after(mamba, "mamba_num_heads=", 64);
        j["mamba_head_dim"] = 64;
        j["ssm_state_size"] = number_after(mamba, "ssm_state_size=", 128);
        j["n_groups"] = 8, j["conv_kernel"] = 4;
    }
}

struct Name {
    const char* arch;
    const char* type;
    const char* architecture;
};
constexpr Name kNames[] = {
    {"Llama", "llama", "LlamaForCausalLM"},
    {"Jamba", "jamba", "JambaForCausalLM"},
    {"Olmo2", "olmo2", "Olmo2ForCausalLM"},
    {"Cohere", "cohere", "CohereForCausalLM"},
    {"Cohere2", "cohere2", "Cohere2ForCausalLM"},
    {"DeepseekV2", "deepseek_v2", "DeepseekV2ForCausalLM"},
    {"DeepseekV3", "deepseek_v3", "DeepseekV3ForCausalLM"},
    {"OPT", "opt", "OPTForCausalLM"},
    {"Gemma", "gemma", "GemmaForCausalLM"},
    {"Gemma2", "gemma2", "Gemma2ForCausalLM"},
    {"Gemma3", "gemma3_text", "Gemma3ForCausalLM"},
    {"Gemma4", "gemma4_text", "Gemma4ForCausalLM"},
    {"Granite", "granite", "GraniteForCausalLM"},
    {"LlavaNext", "llava_next", "LlavaNextForConditionalGeneration"},
    {"Mllama", "mllama", "MllamaForConditionalGeneration"},
    {"Llama4", "llama4_text", "Llama4ForConditionalGeneration"},
    {"Phi", "phi", "PhiForCausalLM"},
    {"Phi3", "phi3", "Phi3ForCausalLM"},
    {"MiniMaxM2", "minimax_m2", "MiniMaxM2ForCausalLM"},
    {"Mistral", "mistral", "MistralForCausalLM"},
    {"Mixtral", "mixtral", "MixtralForCausalLM"},
    {"NemotronH", "nemotron_h", "NemotronHForCausalLM"},
    {"GptOss", "gpt_oss", "GptOssForCausalLM"},
    {"Qwen2Moe", "qwen2_moe", "Qwen2MoeForCausalLM"},
    {"Qwen2", "qwen2", "Qwen2ForCausalLM"},
    {"Qwen3", "qwen3", "Qwen3ForCausalLM"},
    {"Qwen3Moe", "qwen3_moe", "Qwen3MoeForCausalLM"},
    {"Qwen3Next", "qwen3_next", "Qwen3NextForCausalLM"},
    {"Qwen3.5", "qwen3_5_text", "Qwen3_5ForConditionalGeneration"},
    {"Qwen3.5Moe", "qwen3_5_moe_text", "Qwen3_5MoeForConditionalGeneration"},
    {"Glm4", "chatglm", "ChatGLMModel"},
    {"Falcon", "falcon", "FalconForCausalLM"},
    {"MiMo", "mimo", "MiMoForCausalLM"},
    {"Glm4Moe", "glm4_moe", "Glm4MoeForCausalLM"},
    {"GlmMoeDsa", "glm_moe_dsa", "GlmMoeDsaForCausalLM"},
};

}  // namespace

std::vector<Row> read_tsv(const std::string& path) {
    std::vector<Row> rows;
    std::ifstream in(path);
    std::string line;
    if (!std::getline(in, line)) return rows;
    const auto header = split(line);
    while (std::getline(in, line)) {
        const auto cells = split(line);
        Row row;
        for (std::size_t i = 0; i < header.size(); ++i)
            row[header[i]] = i < cells.size() ? cells[i] : "";
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string field_path(const std::string& file) {
    return OOMLAB_SOURCE_DIR "/../shared/field/" + file;
}

std::string cell(const Row& row, const std::string& column) {
    auto it = row.find(column);
    return it == row.end() ? "" : it->second;
}

std::optional<double> number(const Row& row, const std::string& column) {
    const std::string text = cell(row, column);
    if (text.empty() || text.find_first_not_of("0123456789.+-eE") != std::string::npos)
        return std::nullopt;
    return std::atof(text.c_str());
}

std::string config_json(const Row& row, const std::string& quantization_config) {
    std::string arch = cell(row, "arch");
    if (arch == "Cohere" && number(row, "sliding_window")) arch = "Cohere2";
    Json text = text_part(row, arch);
    experts(text, row, arch);
    mixers(text, row, arch);
    const std::string dtype = cell(row, "dtype");
    if (!dtype.empty()) text["torch_dtype"] = dtype;
    const Name* name = nullptr;
    for (const Name& n : kNames)
        if (arch == n.arch) name = &n;
    const std::string note = cell(row, "note");
    const bool nested = note.find("vision") != std::string::npos ||
                        note.find("Vision") != std::string::npos || arch == "LlavaNext" ||
                        arch == "Mllama";
    text["model_type"] = name != nullptr ? name->type : arch;
    Json whole;
    whole["_name_or_path"] = cell(row, "model");
    whole["architectures"] = {name != nullptr ? name->architecture : arch + "ForCausalLM"};
    if (nested) {
        whole["model_type"] = text["model_type"];
        if (text.contains("tie_word_embeddings"))
            whole["tie_word_embeddings"] = text["tie_word_embeddings"];
        whole["text_config"] = text;
        whole["vision_config"] = {{"hidden_size", 1152},
                                  {"num_hidden_layers", 27},
                                  {"intermediate_size", 4304},
                                  {"num_attention_heads", 16}};
    } else {
        whole.update(text);
    }
    if (!quantization_config.empty())
        whole["quantization_config"] = Json::parse(quantization_config);
    else if (auto at = note.find("quantization_config={");
             at != std::string::npos && note.back() == '}') {
        std::string part = note.substr(at + 20);
        auto parsed = Json::parse(part, nullptr, false);
        if (!parsed.is_discarded())
            whole["quantization_config"] = parsed;
        else if (part.find("\"fp8\"") != std::string::npos)
            whole["quantization_config"] = {{"quant_method", "fp8"},
                                            {"weight_block_size", {128, 128}}};
    } else if (note.find("\"fp8\"") != std::string::npos ||
               note.find("modules_to_not_convert\": [\"lm_head\"") != std::string::npos) {
        whole["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
    }
    return whole.dump(2);
}

}  // namespace oomlab::test
