#include "labs/server/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace oomlab::server {

std::vector<u64> default_capture_sizes(const EngineVersion& version, u64 max_num_seqs,
                                       u64 max_num_batched_tokens) {
    std::vector<u64> sizes = {1, 2, 4};
    if (!version.at_least(0, 8)) {   // V0: 1, 2, 4, 8..256 by 8
        for (u64 n = 8; n <= 256; n += 8) sizes.push_back(n);
    } else if (!version.at_least(0, 12)) {
        for (u64 n = 8; n <= 512; n += 8) sizes.push_back(n);
    } else {
        for (u64 n = 8; n < 256; n += 8) sizes.push_back(n);
        for (u64 n = 256; n <= 512; n += 16) sizes.push_back(n);
    }
    const u64 most = std::min({2 * max_num_seqs, u64{512}, max_num_batched_tokens});
    std::erase_if(sizes, [&](u64 n) { return n > most; });
    return sizes;
}

namespace {

constexpr double kGiBd = 1073741824.0;

// Growth outside PyTorch between the first snapshot and the end of the profile, one rank, in GiB
// (memory_formulas.md section 5: the middle of the measured rows).
double non_torch_gib(const EngineVersion& v, u64 tp) {
    if (!v.at_least(0, 8)) return tp == 1 ? 0.08 : tp == 2 ? 0.30 : 0.90;
    if (!v.at_least(0, 18)) return tp == 1 ? 0.13 : tp == 2 ? 0.54 : 1.20;
    return tp == 1 ? 0.25 : tp == 2 ? 2.08 : 2.17;
}

Result<void> apply_dtype(const Scenario::Model& model, ModelShape& shape) {
    if (model.dtype == "float32") shape.dtype = DType::f32;
    if (model.dtype == "float16") shape.dtype = DType::f16;
    if (model.dtype == "bfloat16") shape.dtype = DType::bf16;
    struct Named {
        const char* name;
        Quantization q;
        double bits;   // memory_formulas.md section 1
        u64 group;
    };
    static constexpr Named kNamed[] = {{"none", Quantization::none, 16, 0},
                                       {"fp8", Quantization::fp8, 8, 0},
                                       {"awq", Quantization::awq, 4.15625, 128},
                                       {"gptq", Quantization::gptq, 4.15625, 128},
                                       {"w8a8_int8", Quantization::w8a8_int8, 8, 0},
                                       {"bitsandbytes", Quantization::bitsandbytes, 4.127, 64},
                                       {"mxfp4", Quantization::mxfp4, 4.25, 32}};
    for (const Named& n : kNamed) {
        if (model.quantization != n.name) continue;
        shape.quantization = n.q;
        shape.quant_bits = n.bits;
        shape.quant_group = n.group;
    }
    return {};
}

}  // namespace

Result<ServerConfig> resolve_config(const Scenario& scenario, const ModelShape& model,
                                    const DeviceProps& device) {
    ServerConfig c;
    c.scenario = scenario;
    c.shape = model;
    const Scenario::Server& s = scenario.server;
    const auto bad = [&](const std::string& what) {
        return fail(Error::parse(scenario.path + ": " + what));
    };
    OOMLAB_TRY_VOID(apply_dtype(scenario.model, c.shape));
    c.version = parse_engine_version(s.engine_version);
    c.tp = scenario.model.tensor_parallel_size;
    c.loaded_tp = c.tp;
    if (c.shape.num_attention_heads % c.tp != 0) {
        return bad(fmt::format("model.tensor_parallel_size {} does not divide the model's {} attention heads",
                               c.tp, c.shape.num_attention_heads));
    }
    if (!device.has_bf16 && c.shape.dtype == DType::bf16) {
        c.shape.dtype = DType::f16;
        c.warnings.push_back(fmt::format("{} has no bfloat16: using float16", device.name));
    }

    // Defaults by card and version: engines.md 1.8.
    const bool large_card = device.total_bytes >= 70 * kGiB && device.name.find("A100") == std::string::npos;
    c.max_model_len = s.max_model_len != 0 ? s.max_model_len : c.shape.max_position_embeddings;
    if (c.shape.max_position_embeddings != 0 && s.max_model_len > c.shape.max_position_embeddings) {
        return bad(fmt::format("server.max_model_len {} is greater than the model's own {}", s.max_model_len,
                               c.shape.max_position_embeddings));
    }
    const bool v1 = c.version.at_least(0, 8);
    c.max_num_seqs = s.max_num_seqs != 0 ? s.max_num_seqs : (v1 && large_card ? 1024 : 256);
    c.max_num_batched_tokens =
        s.max_num_batched_tokens != 0 ? s.max_num_batched_tokens
        : v1                          ? (large_card ? 8192 : 2048)
                                      : (s.enable_chunked_prefill ? 2048 : std::max<u64>(c.max_model_len, 2048));
    c.max_num_batched_tokens = std::max(c.max_num_batched_tokens, c.max_num_seqs < 1 ? 1 : u64{1});
    if (s.max_num_batched_tokens != 0 && s.max_num_seqs != 0 && c.max_num_batched_tokens < c.max_num_seqs) {
        return bad(fmt::format("server.max_num_batched_tokens {} is smaller than max_num_seqs {}: every "
                               "running request decodes a token in each step",
                               c.max_num_batched_tokens, c.max_num_seqs));
    }
    c.max_num_seqs = std::min(c.max_num_seqs, c.max_num_batched_tokens);
    c.block_size = s.block_size;
    c.kv_dtype_bytes = s.kv_cache_dtype.rfind("fp8", 0) == 0   ? 1.0
                       : s.kv_cache_dtype == "float32"         ? 4.0
                       : s.kv_cache_dtype != "auto"            ? 2.0
                                                               : static_cast<double>(dtype_bytes(c.shape.dtype));

    c.profile_tokens = c.max_num_batched_tokens;
    if (!s.enable_chunked_prefill && c.max_num_batched_tokens < c.max_model_len) {
        if (s.profile == "max_model_len") {
            c.profile_tokens = c.max_model_len;
        } else {
            c.warnings.push_back(fmt::format(
                "Chunked prefill is off: a prompt of up to max_model_len={} is processed whole, but memory "
                "was profiled with max_num_batched_tokens={}. Today's vLLM refuses this pair.",
                c.max_model_len, c.max_num_batched_tokens));
        }
    } else if (s.profile == "max_model_len") {
        c.profile_tokens = std::max(c.max_model_len, c.max_num_batched_tokens);
    }

    if (!s.enforce_eager) {
        c.graph_sizes = s.cudagraph_sizes_given
                            ? s.cudagraph_capture_sizes
                            : default_capture_sizes(c.version, c.max_num_seqs, c.max_num_batched_tokens);
        std::sort(c.graph_sizes.rbegin(), c.graph_sizes.rend());   // the largest first
    }
    const double non_torch = non_torch_gib(c.version, c.tp);
    c.non_torch_bytes = static_cast<u64>(non_torch * kGiBd);
    c.communication_bytes =
        c.tp == 1 ? 0 : static_cast<u64>((non_torch - non_torch_gib(c.version, 1)) * kGiBd);
    // PyTorch's default: 2 x 4096 KiB + 8 x 16 KiB; 32 MiB on Hopper and later (memory_formulas.md 6).
    c.cublas_workspace_bytes = device.sm_major >= 9 ? 32 * kMiB : 8519680;
    // The measured figure holds the workspace too; ours goes through the allocator.
    c.non_torch_bytes -= std::min(c.non_torch_bytes, c.cublas_workspace_bytes);
    c.sampler_bytes_per_logit_tenths = c.version.at_least(0, 17) ? 144 : 380;

    for (const FaultSpec& f : scenario.faults) {
        const auto repaired = [&](const char* repair) {
            return std::find(scenario.fix.begin(), scenario.fix.end(), repair) != scenario.fix.end();
        };
        if (f.kind == "quantization_ignored" && !repaired("load_quantized")) c.quantization_ignored = true;
        if (f.kind == "sharding_ignored" && !repaired("shard_the_weights")) c.loaded_tp = 1;
    }
    if (c.quantization_ignored) {
        c.shape.quantization = Quantization::none;
        c.shape.quant_bits = 8.0 * static_cast<double>(dtype_bytes(c.shape.dtype));
    }
    return c;
}

}  // namespace oomlab::server
