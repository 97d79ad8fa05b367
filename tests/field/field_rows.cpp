#include "tests/field/field_rows.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace oomlab::test {
namespace {

bool says(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

std::string quantization_of(const std::string& q) {
    if (says(q, "runtime"))
        return R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float"},"input_activations":{"num_bits":8}}},"ignore":["lm_head"]})";
    if (says(q, "GGUF")) return "";
    if (says(q, "fp8 block"))
        return R"({"quant_method":"fp8","activation_scheme":"dynamic","fmt":"e4m3","weight_block_size":[128,128]})";
    if (says(q, "fp8")) return R"({"quant_method":"fp8","activation_scheme":"dynamic"})";
    if (says(q, "w8a8"))
        return R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"int","strategy":"channel"},"input_activations":{"num_bits":8,"type":"int"}}},"ignore":["lm_head"]})";
    if (says(q, "GPTQ")) return R"({"quant_method":"gptq","bits":4,"group_size":128})";
    if (says(q, "AWQ") || says(q, "w4a16"))
        return R"({"quant_method":"awq","bits":4,"group_size":128,"version":"gemm"})";
    if (says(q, "bnb"))
        return R"({"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true})";
    if (says(q, "MXFP4"))
        return R"({"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn","model.layers.*.mlp.router","model.embed_tokens","lm_head"]})";
    return "";
}

void flag(std::vector<std::string>& out, const Row& row, const char* column, const char* name) {
    if (!cell(row, column).empty()) out.push_back(name), out.push_back(cell(row, column));
}

}  // namespace

std::vector<FieldRow> field_rows() {
    std::map<std::string, Row> models;
    for (Row& r : read_tsv(field_path("models.tsv"))) models[cell(r, "model")] = r;
    std::vector<FieldRow> out;
    for (Row& row : read_tsv(field_path("budgets.tsv"))) {
        FieldRow f;
        f.row = row;
        f.id = cell(row, "id");
        f.model = cell(row, "model");
        f.engine = cell(row, "engine");
        f.note = cell(row, "note");
        const std::string grade = cell(row, "grade"), quant = cell(row, "dtype_quant"),
                          config = cell(row, "config_model");
        f.graded = grade == "A" || grade == "B";
        auto model = models.find(config);
        if (model == models.end()) continue;
        const std::string model_note = cell(model->second, "note");
        const bool tower = says(model_note, "vision") || says(model_note, "Vision") ||
                           says(model_note, "CLIP") || says(f.note, "vision") ||
                           says(f.model, "LoRA") || says(f.model, "llava");
        f.flags_printed =
            f.engine == "llama.cpp" ||
            (!cell(row, "max_num_seqs").empty() &&
             (!cell(row, "max_num_batched_tokens").empty() || !cell(row, "max_model_len").empty()));
        f.parallel_printed = !says(cell(row, "gpu"), "class") && !says(f.note, "figures per GPU") &&
                             !says(f.note, "2 seqs") && !says(f.note, "file size") &&
                             !says(f.note, "whole file");
        f.text_only = !tower && !quant.empty() && quant != "?" && !says(f.note, "unified memory");
        f.four_bit = says(quant, "4");
        const bool llama = f.engine == "llama.cpp", sglang = f.engine == "SGLang";
        if (!llama && !sglang && f.engine.rfind("vLLM", 0) != 0) continue;
        auto shape = parse_config_json(
            config_json(model->second, llama ? "" : quantization_of(quant)), config);
        if (!shape) {
            f.error = shape.error().message;
            out.push_back(f);
            continue;
        }
        std::vector<std::string> flags;
        flag(flags, row, "max_model_len",
             sglang  ? "--context-length"
             : llama ? "-c"
                     : "--max-model-len");
        if (llama) {
            flag(flags, row, "n_ctx", "-c");
            flag(flags, row, "n_ubatch", "-ub");
            flags.push_back("--quantization"), flags.push_back(quant);
            flag(flags, row, "kv_cache_dtype", "-ctk");
            flag(flags, row, "kv_cache_dtype", "-ctv");
            flags.push_back("--flash-attn"),
                flags.push_back(cell(row, "flash_attn") == "True" ? "on" : "off");
        } else {
            flag(flags, row, "max_num_seqs", sglang ? "--max-running-requests" : "--max-num-seqs");
            flag(flags, row, "max_num_batched_tokens",
                 sglang ? "--chunked-prefill-size" : "--max-num-batched-tokens");
            flag(flags, row, "mem_util",
                 sglang ? "--mem-fraction-static" : "--gpu-memory-utilization");
            flag(flags, row, "kv_cache_dtype", "--kv-cache-dtype");
            flag(flags, row, "tp", sglang ? "--tp-size" : "--tensor-parallel-size");
            flag(flags, row, "pp", sglang ? "--pp-size" : "--pipeline-parallel-size");
            if (!sglang && cell(row, "enforce_eager") == "True") flags.push_back("--enforce-eager");
            if (!sglang) flag(flags, row, "block_size", "--block-size");
            if (says(quant, "GGUF"))
                flags.push_back("--quantization"),
                    flags.push_back(quant.substr(quant.find(' ') + 1));
            if (says(cell(row, "parallel_note"), "expert parallel") &&
                says(cell(row, "parallel_note"), "DP2"))
                flags.insert(flags.end(),
                             {"--enable-expert-parallel", "--data-parallel-size", "2"});
            if (quant == "fp16") flags.push_back("--dtype"), flags.push_back("float16");
            std::string version = cell(row, "engine_version");
            if (version == "V1") version = "";
            if (version.empty() && f.engine == "vLLM V0") version = "v0";
            if (f.engine == "vLLM V0" && parse_engine_version(version).at_least(0, 8))
                version = "v0";
            if (!version.empty()) flags.push_back("--engine-version"), flags.push_back(version);
        }
        auto parsed = field::parse_server_flags(llama    ? field::Engine::llama_cpp
                                                : sglang ? field::Engine::sglang
                                                         : field::Engine::vllm,
                                                flags, true);
        const double total = number(row, "gpu_total_gib").value_or(sglang ? 79.19 : 80);
        auto gpu =
            load_gpu_or_size(std::to_string(static_cast<u64>(total * static_cast<double>(kGiB))));
        if (!parsed || !gpu) {
            f.error = !parsed ? parsed.error().message : gpu.error().message;
            out.push_back(f);
            continue;
        }
        if (says(cell(row, "gpu"), "H100")) gpu->id = "h100-80gb", gpu->sm_major = 9;
        if (says(cell(row, "gpu"), "A100")) gpu->id = "a100", gpu->sm_major = 8;
        if (says(cell(row, "gpu"), "A800")) gpu->id = "a800", gpu->sm_major = 8;
        auto budget = field::compute_budget(*shape, *gpu, *parsed);
        if (budget)
            f.budget = std::move(*budget);
        else
            f.error = budget.error().message;
        out.push_back(std::move(f));
    }
    return out;
}

namespace {
std::optional<Pair> pair(const FieldRow& r, const char* column, double computed) {
    auto measured = number(r.row, column);
    if (!measured || *measured <= 0 || !r.error.empty()) return std::nullopt;
    return Pair{*measured, computed};
}
constexpr double kG = 1073741824.0, kM = 1048576.0;
}  // namespace

std::optional<Pair> weights_pair(const FieldRow& r) {
    const double w = static_cast<double>(r.budget.weights_bytes);
    if (r.engine == "llama.cpp")
        return says(r.note, "figures per GPU") ? std::nullopt
                                               : pair(r, "llama_gpu_model_mib", w / kM);
    return pair(r, "weights_gib", w / kG);
}
std::optional<Pair> kv_per_token_pair(const FieldRow& r) {
    if (r.engine == "llama.cpp")
        return pair(r, "llama_kv_mib", static_cast<double>(r.budget.kv_pool_bytes) / kM);
    auto pool = number(r.row, "kv_gib"), tokens = number(r.row, "kv_tokens");
    if (!pool || !tokens || *pool <= 0 || *tokens <= 0 || !r.error.empty()) return std::nullopt;
    return Pair{*pool * kG / *tokens, static_cast<double>(r.budget.kv_bytes_per_token)};
}
std::optional<Pair> activation_pair(const FieldRow& r) {
    if (r.engine == "SGLang") return std::nullopt;
    if (r.engine == "llama.cpp")
        return pair(r, "llama_compute_mib",
                    static_cast<double>(r.budget.activation_peak_bytes) / kM);
    double computed = static_cast<double>(r.budget.activation_peak_bytes);
    if (parse_engine_version(cell(r.row, "engine_version")).at_least(0, 21) &&
        !cell(r.row, "engine_version").empty() && cell(r.row, "engine_version") != "V1")
        computed += static_cast<double>(r.budget.cuda_graph_bytes);
    return pair(r, "act_peak_gib", computed / kG);
}
std::optional<Pair> pool_pair(const FieldRow& r) {
    if (r.engine != "vLLM V0" && r.engine != "vLLM V1") return std::nullopt;
    if (!number(r.row, "gpu_total_gib") || !number(r.row, "mem_util")) return std::nullopt;
    return pair(r, "kv_gib", static_cast<double>(r.budget.kv_pool_bytes) / kG);
}

double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double at = share * static_cast<double>(values.size() - 1);
    const std::size_t low = static_cast<std::size_t>(at);
    const double rest = at - static_cast<double>(low);
    return low + 1 < values.size() ? values[low] * (1 - rest) + values[low + 1] * rest
                                   : values[low];
}

}  // namespace oomlab::test
