// The flags of an inference server, read as the server reads them: vLLM's, SGLang's and
// llama-server's spellings, `--name value`, `--name=value`, `--name` and `--no-name`.
// Shared by budget (which plans with them) and preflight (which judges them).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::field {

enum class Engine { vllm, sglang, llama_cpp };
const char* engine_name(Engine engine);  // "vllm", "sglang", "llama.cpp"
// On failure: Error::usage with the accepted names.
Result<Engine> parse_engine(const std::string& text);

// Absent means: the engine decides. Names are vLLM's; the others' flags land in the same fields
// where they mean the same.
struct ServerFlags {
    Engine engine = Engine::vllm;
    std::string model, served_as;
    std::string engine_version;        // "": the newest rules known here
    std::optional<u64> max_model_len;  // --max-model-len, --context-length, -c
    bool max_model_len_auto = false;   // -1 or "auto": the engine shortens it until it fits
    std::optional<u64> max_num_seqs;   // --max-num-seqs, --max-running-requests, -np
    std::optional<u64> max_num_batched_tokens;              // also --chunked-prefill-size
    std::optional<double> gpu_memory_utilization;           // also --mem-fraction-static
    std::string kv_cache_dtype = "auto", kv_cache_dtype_v;  // llama.cpp has one each
    std::string quantization, dtype = "auto";
    u64 tensor_parallel_size = 1, pipeline_parallel_size = 1, data_parallel_size = 1;
    std::optional<bool> enable_chunked_prefill, enable_prefix_caching, enforce_eager,
        flash_attention;
    u64 block_size = 16;
    std::optional<u64> num_gpu_blocks_override, kv_cache_memory_bytes, max_total_tokens;
    std::optional<u64> capture_sizes, max_capture_size;
    double cpu_offload_gib = 0, swap_space_gib = 0;
    bool expert_parallel = false;  // experts spread over tensor x data parallel ranks
    bool lora = false, speculative = false, graph_estimate = true, tp_given = false;
    std::optional<u64> ubatch, gpu_layers;     // llama.cpp
    std::map<std::string, std::string> other;  // flags that do not touch memory, as given
};

// Reads flags after the program's name. `strict`: an unknown flag is an error with the nearest
// name (budget); otherwise it is kept in `other` (preflight).
// On failure: Error::usage naming the flag and what it takes.
Result<ServerFlags> parse_server_flags(Engine engine, const std::vector<std::string>& tokens,
                                       bool strict);

// The flag's name in that engine's spelling: set_flag_text(sglang, "max_model_len") ->
// "--context-length".
std::string flag_spelling(Engine engine, const std::string& vllm_name);

}  // namespace oomlab::field
