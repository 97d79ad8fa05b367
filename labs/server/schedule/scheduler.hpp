// One step of vLLM's V1 scheduler (engines.md 2.1): no prefill and decode phases, every sequence has
// tokens known and tokens computed, and a step lets the second catch up within one token budget.
//
//   1. running sequences first, in order; when one finds no blocks, the latest admitted is preempted
//      (recompute: its blocks are freed, it goes to the front of the queue) until it fits;
//   2. then waiting ones, unless something was preempted in this step, while budget, sequences and
//      blocks last. A waiting sequence never evicts a running one.
//
// With chunked prefill off a prompt is computed whole: the first one of a step whatever its length,
// further ones while the sum stays within max_num_batched_tokens or if they arrived in the same
// instant as the first (one prefill batch).
//
// The scheduler does not know bytes: `BlockSource` gives memory to KvBlocks where they have none yet
// (kv_pool = "on_demand"). Not thread safe.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "labs/server/config.hpp"
#include "labs/server/kv/buddy.hpp"
#include "labs/server/kv/kv_pool.hpp"
#include "labs/server/schedule/sequence.hpp"

namespace oomlab::server {

class BlockSource {
  public:
    virtual ~BlockSource() = default;
    // Gives memory to these blocks, all or none. False: there is none.
    virtual bool back(const std::vector<u32>& blocks, std::size_t first, u32 request) = 0;
    // These blocks are used by nobody any more (called before they are released).
    virtual void unback(const std::vector<u32>& blocks) = 0;
};

struct StepItem {
    Sequence* sequence = nullptr;
    u64 new_tokens = 0;
    bool samples = false;      // reaches its last known token: one row of logits
};
struct StepPlan {
    std::vector<StepItem> items;
    u64 tokens = 0, rows = 0;
    u64 prefill_tokens = 0, decode_tokens = 0, longest_prompt = 0;
    u64 context_tokens = 0;    // sum over new tokens of the context each attends to
    u64 kv_tokens_read = 0;    // sum over sequences of their context
    u64 preemptions = 0;
    enum class Stuck {
        no,
        request_never_fits,    // alone in the pool, and still too large
        no_preemption,         // pool full, preemption is off
        no_memory,             // on demand: the device has no memory and preemption is off
    } stuck = Stuck::no;
    u32 stuck_request = 0;
};

// Events the black box keeps whole.
class SchedulerObserver {
  public:
    virtual ~SchedulerObserver() = default;
    virtual void admitted(const Sequence& s, u64 cached_tokens) = 0;
    virtual void preempted(const Sequence& s, u64 lost_tokens) = 0;
};

class Scheduler {
  public:
    Scheduler(const ServerConfig& config, KvPool& pool, BlockSource& source, SchedulerObserver& observer);

    Sequence* add(std::unique_ptr<Sequence> sequence);
    // Plans the next step into `plan` (reused). Blocks for its tokens are taken.
    void plan(StepPlan& plan);
    // The step's tokens are computed: publishes full blocks, counts samples. Returns nothing; the
    // caller looks at generated and finishes sequences.
    void commit(const StepPlan& plan);
    // Ends a sequence in any state: gives its blocks back.
    void finish(Sequence* sequence);

    // Where the KV slots of the pool are right now, in tokens: the shares of PagedAttention's figure 2.
    struct Slots {
        u64 tokens = 0;      // hold a token's KV
        u64 reserved = 0;    // will, before their request ends
        u64 internal = 0;    // reserved for output that never comes, or the rest of a last block
        u64 all = 0;         // the pool; what is left over is outside any request
    };
    Slots slots() const;

    std::size_t running() const { return running_.size(); }
    std::size_t waiting() const { return waiting_.size(); }
    bool idle() const { return running_.empty() && waiting_.empty(); }
    const std::vector<Sequence*>& running_list() const { return running_; }
    const std::deque<Sequence*>& waiting_list() const { return waiting_; }

    // What may change while running ([[action]] set).
    u64 max_num_seqs, max_num_batched_tokens;
    bool chunked;
    double watermark;

  private:
    bool grow(Sequence& s, u64 tokens_after);
    bool admit(Sequence& s, u64 budget, StepPlan& plan, double batch_arrival);
    void preempt(Sequence* victim, StepPlan& plan);
    void add_item(StepPlan& plan, Sequence& s, u64 tokens);
    u64 reserved_tokens(const Sequence& s) const;
    void release(Sequence& s);
    u64 blocks_for(u64 tokens) const { return div_ceil(tokens, pool_.block_size()); }

    const ServerConfig& config_;
    KvPool& pool_;
    BlockSource& source_;
    SchedulerObserver& observer_;
    bool preemption_, full_isl_, on_demand_;
    std::vector<Sequence*> running_;   // in order of admission
    std::deque<Sequence*> waiting_;
    std::vector<std::unique_ptr<Sequence>> owned_;
    std::vector<std::size_t> free_slots_;
    bool source_failed_ = false;
    std::unique_ptr<BuddyPool> buddy_;   // contiguous reservations; null: paged
};

}  // namespace oomlab::server
