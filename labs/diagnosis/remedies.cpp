// What would have made it fit, by bytes.
#include "labs/diagnosis/judge_parts.hpp"

namespace oomlab::diagnosis {

using trace::Phase;

void add_remedies(const Case& c, Diagnosis& d) {
    const trace::FailureRecord& f = c.f;
    const u64 short_by = d.short_by_bytes;
    const auto offer = [&](u64 bytes, std::string what) {
        if (bytes > 0) d.remedies.push_back({std::move(what), bytes, bytes >= short_by && short_by > 0});
    };
    const u64 weights = c.life.budget ? c.life.budget->weights_bytes : c.owned(Owner::weights);
    if (f.phase < Phase::serving) {
        // Half the bits: at load the weights seen so far are a lower bound.
        if (f.phase >= Phase::weights) offer(weights / 2, "hold the weights in half the bits (model.quantization)");
        if (f.phase >= Phase::weights) offer(weights / 2, "share the weights with a second card (model.tensor_parallel_size)");
        if (f.phase == Phase::profile) {
            offer(c.step_activation_bytes / 2, "halve the dummy batch (max_num_batched_tokens, max_num_seqs)");
        }
        if (c.refused() && c.life.budget) {
            const trace::BudgetRecord& b = *c.life.budget;
            const u64 outside = minus(b.total_bytes, b.free_at_start_bytes);
            offer(minus(minus(b.total_bytes, outside), b.requested_bytes), "raise gpu_memory_utilization to what is free");
            offer(b.activation_peak_bytes / 2, "halve the profiled batch (max_num_batched_tokens, max_num_seqs)");
            if (b.num_gpu_blocks >= 2) {
                const u64 block = std::max<u64>(1, b.block_size);
                const u64 tokens = minus(b.num_gpu_blocks, 1) * block;
                offer(minus(div_ceil(b.max_model_len, block), minus(b.num_gpu_blocks, 1)) * b.kv_block_bytes,
                      fmt::format("lower max_model_len to {}", tokens));
                offer(div_ceil(b.max_model_len, block) * b.kv_block_bytes / 2, "hold KV in 8 bits (kv_cache_dtype = \"fp8\")");
            }
        }
    }
    if (d.type == 4) {
        const u64 kept = std::max(d.growth.rise.grown_bytes(), d.growth.retained_bytes);
        offer(kept, d.growth.what == Growing::gap ? "leave no holes: one size for all (a paged pool); expandable_segments helps where whole segments are empty"
                    : d.growth.what == Growing::outside ? "stop the growth outside the allocator"
                                                        : "let finished work go: that is the cure, all else delays it");
    }
    if (f.profiled_activation_bytes > 0 && c.memory()) {
        offer(minus(c.step_activation_bytes, f.profiled_activation_bytes),
              "bound each step to what was profiled (enable_chunked_prefill = true, or cap the prompt)");
    }
    if (c.memory()) {
        offer(c.others_bytes(), "give the card to this server alone");
        offer(f.graph_bytes, "capture fewer graphs (cudagraph_capture_sizes, enforce_eager)");
        if (d.cause == "fragmentation") offer(c.gap_bytes(), "leave no holes (expandable_segments:True in allocator.conf)");
        if (f.capped != 0) offer(minus(f.device_free_bytes, c.available_bytes), "raise the process's own cap");
    }
    if (c.refused() && f.phase == Phase::serving && c.life.budget) {
        const u64 block = c.life.budget->kv_block_bytes;
        offer(c.life.lost_kv_blocks * block, "give every block back when its request ends (the accounting)");
        if (d.cause == "kv_exhausted_no_preemption" && c.life.lost_kv_blocks == 0) {
            offer(f.kv_blocks_used * block / 2, "let the newest give way (preemption = \"recompute\")");
        }
    }
    if (f.phase == Phase::serving && c.memory()) {
        if (f.owner == Owner::kv || f.kv_blocks_total == 0) {
            offer(c.owned(Owner::kv) / 2, "a pool of a fixed size, and preemption (kv_pool = \"preallocated\", preemption = \"recompute\")");
        } else if (f.device_total_bytes > 0 && short_by > 0) {
            // Utilization is set in hundredths: the smallest step that covers what was missing.
            const u64 hundredth = div_ceil(f.device_total_bytes, 100);
            const u64 steps = div_ceil(short_by, hundredth);
            if (steps * hundredth <= c.owned(Owner::kv)) {
                offer(steps * hundredth, fmt::format("lower gpu_memory_utilization by 0.{:02} (a smaller KV pool; "
                                                     "the step may ask for more after this)", steps));
            }
        }
    }
    std::stable_sort(d.remedies.begin(), d.remedies.end(), [](const Remedy& a, const Remedy& b) { return a.bytes > b.bytes; });
}

}  // namespace oomlab::diagnosis
