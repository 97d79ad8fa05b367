// The memory budget of a deployment: every consumer in bytes on one GPU, what is left for KV,
// whether it fits, and the smallest changes that make it fit. Arithmetic only; no device, no files.
//
// The rules are the engine's own (which fraction of what, what is profiled, what comes on top) and
// change with its version. Constants that are measured rather than derived say so in their line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "labs/catalog/gpu_profile.hpp"
#include "labs/field/budget/server_flags.hpp"
#include "labs/shapes/model_shape.hpp"

namespace oomlab::field {

// One consumer. `bytes` may be negative for the pool and the headroom only.
struct BudgetLine {
    std::string id, title;
    i64 bytes = 0;
    std::string moment;   // when it is taken
    std::string formula;  // in names
    std::string numbers;  // the same with numbers
    std::string error;    // how wrong it is known to be
    bool inside_fraction = false;
};

struct BudgetChange {
    std::string flag;    // as it is typed
    std::string effect;  // what it gives
    std::string cost;    // what it takes
};

struct PipelineStage {
    u64 first_layer = 0, last_layer = 0;
    u64 weights_bytes = 0, activation_bytes = 0;
};

// What the engine would choose for flags that were not given.
struct ResolvedFlags {
    u64 max_model_len = 0, max_num_seqs = 0, max_num_batched_tokens = 0;
    double fraction = 0, kv_dtype_bytes = 2;
    bool chunked_prefill = true, graphs = true;
    u64 capture_sizes = 0;
    std::vector<std::string> assumed;  // in words, with the reason
};

struct Budget {
    ServerFlags flags;
    ResolvedFlags resolved;
    ModelShape shape;
    GpuProfile gpu;
    EngineVersion version;

    std::vector<BudgetLine> lines;  // in the order of the stack; they add up to the card
    u64 total_bytes = 0, weights_bytes = 0, host_weights_bytes = 0;
    u64 activation_peak_bytes = 0, cuda_graph_bytes = 0, non_torch_bytes = 0, context_bytes = 0,
        communication_bytes = 0;
    i64 kv_pool_bytes = 0, headroom_bytes = 0;
    u64 kv_bytes_per_token = 0, kv_tokens = 0, kv_blocks = 0;
    double max_concurrency = 0;  // requests of max_model_len at once
    u64 longest_request = 0;     // tokens of the longest single request the pool holds
    ActivationPeak activation;
    KvLayout layout;
    std::vector<PipelineStage> stages;
    bool fits = false;
    std::vector<std::string> reasons;  // why it does not
    std::vector<BudgetChange> changes;
    std::vector<std::string> unknown;
};

// On failure: Error::usage for a combination that no engine accepts (heads not divisible, ...).
Result<Budget> compute_budget(const ModelShape& shape, const GpuProfile& gpu,
                              const ServerFlags& flags);

// Fills `changes`: each alone makes it fit, smallest first; pairs when no single one does.
void find_changes(Budget& budget, const std::vector<GpuProfile>& larger_cards);

// Bytes of one KV element: "auto", "fp8", "fp8_e5m2", "q8_0", "f16", ... nullopt when unknown.
std::optional<double> kv_element_bytes(const std::string& name, DType model);

// Activation bytes of the worst batch that serving can form, beside the one that was profiled.
struct WorstBatch {
    u64 profiled_tokens = 0, worst_tokens = 0;
    u64 profiled_bytes = 0, worst_bytes = 0;
};
WorstBatch worst_batch(const Budget& budget);

}  // namespace oomlab::field
