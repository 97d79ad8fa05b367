// What a scenario comes to on a given model and card: every default filled in, as the engine's
// version would fill it, and every combination checked that cannot run.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "kernels/device/device.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/shapes/model_shape.hpp"

namespace oomlab::server {

struct ServerConfig {
    Scenario scenario;
    ModelShape shape;               // as configured: dtype and quantization applied
    EngineVersion version;
    u64 tp = 1;
    u64 loaded_tp = 1;              // 1 when a fault ignores the sharding
    bool quantization_ignored = false;
    u64 max_model_len = 0, max_num_seqs = 0, max_num_batched_tokens = 0, block_size = 16;
    double kv_dtype_bytes = 2;
    u64 profile_tokens = 0;         // what the dummy batch is made of
    u64 graph_sizes_max = 0;
    std::vector<u64> graph_sizes;   // empty: eager
    u64 non_torch_bytes = 0;        // libraries, outside the allocator
    u64 communication_bytes = 0;    // of it, NCCL and all-reduce buffers (tp > 1)
    u64 cublas_workspace_bytes = 0; // through the allocator, at the first matrix product
    u64 sampler_bytes_per_logit_tenths = 144;   // c of the sampler's law, times ten
    std::vector<std::string> warnings;
};

// On failure: Error::parse, naming the scenario, the value and the remedy.
Result<ServerConfig> resolve_config(const Scenario& scenario, const ModelShape& shape,
                                    const DeviceProps& device);

// Batch sizes that graphs are captured for (engines.md 1.7): 51 with 256 sequences or more from
// 0.12 on, 67 in older V1, 35 in V0.
std::vector<u64> default_capture_sizes(const EngineVersion& version, u64 max_num_seqs,
                                       u64 max_num_batched_tokens);

}  // namespace oomlab::server
