#include "labs/server/schedule/scheduler.hpp"

#include <algorithm>
#include <bit>

namespace oomlab::server {

Scheduler::Scheduler(const ServerConfig& config, KvPool& pool, BlockSource& source,
                     SchedulerObserver& observer)
    : max_num_seqs(config.max_num_seqs),
      max_num_batched_tokens(config.max_num_batched_tokens),
      chunked(config.scenario.server.enable_chunked_prefill),
      watermark(config.scenario.server.watermark),
      config_(config),
      pool_(pool),
      source_(source),
      observer_(observer),
      preemption_(config.scenario.server.preemption == "recompute"),
      full_isl_(config.scenario.server.scheduler_reserve_full_isl),
      on_demand_(config.scenario.server.kv_pool == "on_demand") {
    if (config.scenario.server.kv_reservation != "paged") {
        buddy_ = std::make_unique<BuddyPool>(pool.usable() * pool.block_size());
    }
}

Sequence* Scheduler::add(std::unique_ptr<Sequence> sequence) {
    Sequence* s = sequence.get();
    if (free_slots_.empty()) {
        s->serial = static_cast<u32>(owned_.size());
        owned_.push_back(std::move(sequence));
    } else {
        s->serial = static_cast<u32>(free_slots_.back());
        owned_[free_slots_.back()] = std::move(sequence);
        free_slots_.pop_back();
    }
    waiting_.push_back(s);
    return s;
}

// Room that a contiguous reservation takes at admission; 0: paged.
u64 Scheduler::reserved_tokens(const Sequence& s) const {
    const std::string& policy = config_.scenario.server.kv_reservation;
    if (policy == "max") return config_.max_model_len;
    u64 tokens = s.prompt_tokens;
    if (policy == "pow2") tokens += std::bit_ceil(s.output_tokens);
    if (policy == "oracle") tokens += s.output_tokens;
    return std::min(tokens, config_.max_model_len);
}

bool Scheduler::grow(Sequence& s, u64 tokens_after) {
    if (buddy_ != nullptr) return tokens_after <= s.reserved_tokens;
    const u64 need = blocks_for(tokens_after);
    if (need <= s.blocks.size()) return true;
    const std::size_t first = s.blocks.size();
    if (!pool_.allocate(need - first, s.blocks)) return false;
    if (!on_demand_ || source_.back(s.blocks, first, s.request)) return true;
    std::vector<u32> taken(s.blocks.begin() + static_cast<std::ptrdiff_t>(first), s.blocks.end());
    s.blocks.resize(first);
    pool_.release(taken);
    source_failed_ = true;
    return false;
}

void Scheduler::add_item(StepPlan& plan, Sequence& s, u64 tokens) {
    const u64 after = s.computed + tokens;
    const bool samples = after == s.known();
    plan.items.push_back({&s, tokens, samples});
    plan.tokens += tokens;
    plan.rows += samples ? 1 : 0;
    if (tokens == 1 && s.generated > 0 && !s.prefilling) {
        plan.decode_tokens += 1;
    } else {
        plan.prefill_tokens += tokens;
        plan.longest_prompt = std::max(plan.longest_prompt, s.known());
    }
    plan.context_tokens += tokens * s.computed + tokens * (tokens + 1) / 2;
    plan.kv_tokens_read += after;
}

void Scheduler::release(Sequence& s) {
    if (buddy_ != nullptr && s.state == Sequence::State::running) buddy_->free(s.slot);
    if (on_demand_) source_.unback(s.blocks);
    pool_.release(s.blocks);
}

Scheduler::Slots Scheduler::slots() const {
    Slots r;
    r.all = pool_.usable() * pool_.block_size();
    for (const Sequence* s : running_) {
        const u64 at_end = s->prompt_tokens + s->output_tokens;
        r.tokens += s->computed;
        if (buddy_ != nullptr) {
            r.reserved += at_end - std::min(at_end, s->computed);
            r.internal += s->reserved_tokens - std::min(s->reserved_tokens, at_end);
        } else {
            r.internal += s->blocks.size() * pool_.block_size() - s->computed;
        }
    }
    return r;
}

void Scheduler::preempt(Sequence* victim, StepPlan& plan) {
    const u64 lost = victim->computed;
    release(*victim);
    victim->computed = 0;
    victim->published = 0;
    victim->prefilling = true;
    victim->preempted_before = true;
    victim->state = Sequence::State::waiting;
    waiting_.push_front(victim);
    ++plan.preemptions;
    observer_.preempted(*victim, lost);
}

void Scheduler::plan(StepPlan& plan) {
    plan = StepPlan{std::move(plan.items)};
    plan.items.clear();
    source_failed_ = false;
    u64 budget = max_num_batched_tokens;

    for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
        Sequence& s = *running_[i];
        u64 tokens = s.known() - s.computed;
        if (chunked) tokens = std::min(tokens, budget);
        bool gone = false;
        while (!grow(s, s.computed + tokens)) {
            if (!preemption_ || running_.size() == 1) {
                plan.stuck = preemption_       ? StepPlan::Stuck::request_never_fits
                             : source_failed_  ? StepPlan::Stuck::no_memory
                                               : StepPlan::Stuck::no_preemption;
                if (preemption_ && source_failed_) plan.stuck = StepPlan::Stuck::no_memory;
                plan.stuck_request = s.request;
                return;
            }
            Sequence* victim = running_.back();
            running_.pop_back();
            preempt(victim, plan);
            if (victim == &s) {
                gone = true;
                break;
            }
        }
        if (gone) break;
        add_item(plan, s, tokens);
        budget -= std::min(budget, tokens);
    }

    double batch_arrival = -1;
    while (plan.preemptions == 0 && !waiting_.empty() && budget > 0 && running_.size() < max_num_seqs) {
        Sequence& s = *waiting_.front();
        if (!admit(s, budget, plan, batch_arrival)) break;
        if (!chunked && batch_arrival < 0) batch_arrival = s.arrival_s;
        budget -= std::min(budget, plan.items.back().new_tokens);
        if (!chunked && budget == 0 && !waiting_.empty() && waiting_.front()->arrival_s == batch_arrival) {
            budget = 1;   // the rest of one prefill batch
        }
    }
    if (plan.items.empty() && !waiting_.empty() && running_.empty() && plan.preemptions == 0) {
        plan.stuck = source_failed_ ? StepPlan::Stuck::no_memory : StepPlan::Stuck::request_never_fits;
        plan.stuck_request = waiting_.front()->request;
    }
}

bool Scheduler::admit(Sequence& s, u64 budget, StepPlan& plan, double batch_arrival) {
    const KvPool::Hit hit = on_demand_ ? KvPool::Hit{} : pool_.find_prefix(s.content, s.known());
    const u64 cached = hit.blocks.size() * pool_.block_size();
    u64 tokens = s.known() - cached;
    if (chunked) {
        tokens = std::min(tokens, budget);
    } else if (batch_arrival >= 0 && tokens > budget && s.arrival_s != batch_arrival) {
        return false;
    }
    if (buddy_ != nullptr) {
        s.reserved_tokens = reserved_tokens(s);
        const auto slot = buddy_->allocate(s.reserved_tokens);
        if (!slot) return false;
        s.slot = *slot;
    } else {
        const u64 known = std::min(s.known(), config_.max_model_len);
        const u64 must_fit = blocks_for(full_isl_ ? known : cached + tokens);
        const u64 fresh = must_fit - std::min<u64>(must_fit, hit.blocks.size());
        const u64 kept = running_.empty() ? 0 : static_cast<u64>(watermark * static_cast<double>(pool_.usable()));
        if (fresh + hit.evictable + kept > pool_.free_blocks()) return false;
    }
    pool_.take_hit(hit);
    s.blocks = hit.blocks;
    s.published = hit.blocks.size();
    s.computed = cached;
    if (!grow(s, cached + tokens)) {
        pool_.release(s.blocks);
        s.computed = 0;
        s.published = 0;
        return false;
    }
    waiting_.pop_front();
    s.state = Sequence::State::running;
    running_.push_back(&s);
    observer_.admitted(s, cached);
    add_item(plan, s, tokens);
    return true;
}

void Scheduler::commit(const StepPlan& plan) {
    for (const StepItem& item : plan.items) {
        Sequence& s = *item.sequence;
        s.computed += item.new_tokens;
        const u64 full = s.computed / pool_.block_size();
        for (; buddy_ == nullptr && s.published < full; ++s.published) {
            pool_.publish(s.content, s.published, s.blocks[s.published]);
        }
        if (item.samples) {
            ++s.generated;
            s.prefilling = false;
        }
    }
}

void Scheduler::finish(Sequence* sequence) {
    release(*sequence);
    if (sequence->state == Sequence::State::running) {
        running_.erase(std::find(running_.begin(), running_.end(), sequence));
    } else {
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), sequence));
    }
    sequence->state = Sequence::State::finished;
    const std::size_t slot = sequence->serial;
    free_slots_.push_back(slot);
    owned_[slot].reset();
}

}  // namespace oomlab::server
