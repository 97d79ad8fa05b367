// The forward pass: allocates by the op table, tensor by tensor, and runs the ops where the chip
// computes; elsewhere the step's cost is accounted at once.
//
// Layers of a pass are alike. When the allocator's arrangement after a layer is one that it had one
// or two layers before, the remaining layers repeat it exactly: they are counted instead of redone
// (same figures, same totals, same peak; a test compares both ways byte for byte). It is off when
// the chip computes and when garbage collection makes blocks age.
#pragma once

#include <array>
#include <vector>

#include "labs/server/config.hpp"
#include "labs/server/memory/ledger.hpp"
#include "labs/server/model/op_table.hpp"
#include "labs/server/model/weights.hpp"
#include "labs/server/schedule/scheduler.hpp"

namespace oomlab::server {

class Forward {
  public:
    Forward(const ServerConfig& config, Device& device, Ledger& ledger, Weights& weights);
    ~Forward();

    // Buffers that stand for the server's life: inputs, block tables, cuBLAS workspace.
    // kv: one tensor a layer, for chips that compute (empty otherwise).
    Outcome<void> prepare();
    void set_cache(std::vector<Tensor> kv_by_layer) { kv_ = std::move(kv_by_layer); }

    // The dummy pass: `tokens` over `rows` sequences, nothing is computed.
    Outcome<void> profile(u64 tokens, u64 rows);
    // One step. On success sampled tokens are in the sequences' token lists (chips that compute).
    // On failure everything the step had allocated is freed again by abort().
    Outcome<void> run(const StepPlan& plan);
    void abort();

    // Activations alive, and the most that were alive since the last reset.
    u64 live_activations() const { return ledger_.recorder().live(Owner::activations); }
    u64 layers_replayed() const { return replayed_; }
    OpTable& table() { return table_; }
    bool replay = true;

    // Tokens by sequence serial (chips that compute); prompt tokens are a function of the content.
    std::vector<std::vector<i32>> token_lists;

  private:
    struct Step;
    Outcome<void> pass(u64 tokens, u64 rows, const StepPlan* plan);
    bool rows_of(const std::vector<OpRow>& rows, u64 tokens, u64 sampled, const Step* step, u64 layer);
    Outcome<void> compute(Op op, const Step& step, u64 layer);
    Outcome<void> load_inputs(const StepPlan& plan, Step& step);
    Outcome<void> grow_moe_workspace(u64 tokens);
    std::vector<i32>& tokens_of(const Sequence& s);

    const ServerConfig& config_;
    Device& device_;
    Ledger& ledger_;
    Weights& weights_;
    OpTable table_;
    std::array<Tensor, kSlots> slots_{};
    std::vector<Tensor> kv_;
    Tensor workspace_, inputs_, moe_workspace_, attention_scratch_;
    u64 replayed_ = 0;
    Failure failure_;
    std::vector<i32> host_inputs_;
};

}  // namespace oomlab::server
