// A scenario: everything that a run of the server depends on, as one TOML file. Names, defaults and
// meanings are the contract's. Loading checks each value; what loads is runnable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab {

// A number of tokens: fixed, or drawn.
struct TokenDist {
    enum class Kind { fixed, lognormal, uniform, mix };
    Kind kind = Kind::fixed;
    double value = 0;              // fixed
    double mean = 0, cv = 0;       // lognormal
    double low = 0, high = 0;      // uniform; high is also lognormal's max (0: none)
    struct Part;
    std::vector<Part> parts;       // mix
};
struct TokenDist::Part {
    double share = 0;
    TokenDist tokens;
};

struct RatePoint {
    double at_s = 0, rate = 0;
};

struct Tenant {
    std::string name;
    u64 bytes = 0;
    double from_s = 0, until_s = 1e18;
    u64 grows_per_hour = 0;
};

struct PlannedRequest {
    double at_s = 0;
    u64 prompt_tokens = 0, output_tokens = 0, n = 1, count = 1;
    double every_s = 0;
    double cancel_after_s = -1;    // -1: never
    u64 prefix = 0;                // shared prefix group, 0: none
};

struct FaultSpec {
    std::string kind;
    double from_s = 0, until_s = 1e18;
    double share = 1.0;
    u64 bytes = 0;
    u64 bytes_per_hour = 0, bytes_per_request = 0;
    u64 blocks_per_request = 0;
    std::string on;                // cleanup_skipped: "client_disconnect" | "error"
    std::string library;           // library_alloc_failed: "cublas" | "cudnn" | "nccl"
    std::string wraps;             // wrapper_says_oom: the name of a CUDA error
    std::string call;              // device_call: "cudaMalloc", ...
    u64 nth = 0, above = 0, times = 1;
    u64 seed = 0;                  // drawn
};

struct ActionSpec {
    double at_s = 0;
    std::string verb;              // "restart" | "memory_summary" | "" (only settings)
    struct Setting {
        std::string key;           // "server.max_num_seqs", "gateway.max_input_tokens", ...
        double number = 0;
        std::string text;
    };
    std::vector<Setting> settings;
};

struct GatewayRule {
    std::string text, field;       // field: prompt_tokens | output_tokens | n
    std::string op;                // > >= < <= ==
    double value = 0;
};
// "prompt_tokens > 28000"
std::optional<GatewayRule> parse_gateway_rule(const std::string& text);

struct Scenario {
    std::string path;
    u64 text_hash = 0;             // of the file's bytes: scenario + seed + version name a run

    struct Run {
        double sample_every_s = 10;
        bool restart_on_failure = false;
        double restart_delay_s = 120;
        double time_scale = 1;
    } run;
    struct DeviceSection {
        std::string name = "auto";
        u64 memory_limit = 0;
        std::vector<Tenant> tenants;
    } device;
    struct Model {
        std::string config = "llama-3.1-8b";
        std::string dtype = "auto";            // auto | float32 | float16 | bfloat16
        std::string quantization = "auto";     // auto: what config.json says
        u64 tensor_parallel_size = 1;
    } model;
    struct Server {
        double gpu_memory_utilization = 0.90;
        u64 max_model_len = 0;                 // 0: the model's own
        u64 max_num_seqs = 0;                  // 0: vLLM's default for the card
        u64 max_num_batched_tokens = 0;        // 0: vLLM's default for the card
        bool enable_chunked_prefill = true;
        bool enable_prefix_caching = true;
        u64 block_size = 16;
        u64 num_gpu_blocks_override = 0;
        std::string kv_cache_dtype = "auto";
        std::string kv_pool = "preallocated";  // preallocated | on_demand
        std::string kv_reservation = "paged";  // paged | max | pow2 | oracle
        std::string preemption = "recompute";  // recompute | off
        double watermark = 0;
        bool scheduler_reserve_full_isl = true;
        std::vector<u64> cudagraph_capture_sizes;
        bool cudagraph_sizes_given = false;
        bool enforce_eager = false;
        std::string engine_version = "0.19.0";
        std::string profile = "max_num_batched_tokens";   // | max_model_len
    } server;
    struct Allocator {
        std::string conf;                      // the PYTORCH_ALLOC_CONF syntax
        double per_process_memory_fraction = 1.0;
    } allocator;
    struct Host {
        std::string load = "shard_stream";     // full_copy | shard_stream | mmap | mmap_locked
        u64 checkpoint_bytes = 0;              // 0: 64 MiB, streamed
        u64 memory_limit = 0;
        u64 pinned_pool_limit = 0;
        u64 tokenizer_bytes_per_token = 0;
    } host;
    struct Gateway {
        u64 max_input_tokens = 0, max_output_tokens = 0, max_n = 0, max_concurrent_requests = 0;
        std::vector<GatewayRule> deny;
    } gateway;
    struct Workload {
        u64 seed = 1;
        double duration_s = 60;
        bool poisson = true;
        std::vector<RatePoint> arrival_rate;   // one point: constant
        double rate_repeat_s = 0;
        u64 concurrency = 0;                   // closed loop when above 0
        TokenDist prompt_tokens, output_tokens;
        u64 n = 1;
        double cancel_share = 0;
        double cancel_after_s = 2;
        u64 shared_prefix = 0;                 // tokens that all prompts have in common
        std::string requests_file;
        std::vector<PlannedRequest> requests;  // [[workload.request]], then those of requests_file
    } workload;
    std::vector<ActionSpec> actions;
    std::vector<FaultSpec> faults;
    std::vector<std::string> fix;
};

// The kinds of fault and the repair that cures each ([fix] apply); "" where only the setting helps.
struct FaultKind {
    const char* kind;
    const char* repair;
};
const std::vector<FaultKind>& fault_kinds();

// On failure: one line, file:line:column, what was expected, the nearest known name.
Result<Scenario> load_scenario(const std::string& path);
Result<Scenario> parse_scenario(std::string_view text, const std::string& file);
// A requests_file: TSV with at_s, prompt_tokens, output_tokens; optional n, cancel_at_s, prefix.
Result<std::vector<PlannedRequest>> load_requests_tsv(const std::string& path);

}  // namespace oomlab
