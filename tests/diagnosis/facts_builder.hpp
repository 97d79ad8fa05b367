// Writes a run record by record, as the server would, and folds it at once: no file, no server.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "labs/diagnosis/six_types.hpp"

namespace oomlab::testing {

class RunBuilder {
  public:
    explicit RunBuilder(u64 total_bytes = 24 * kGiB) : total_(total_bytes) {}

    RunBuilder& phase(trace::Phase p) {
        put(trace::RecordType::phase, trace::PhaseRecord{p, {}});
        phase_ = p;
        return *this;
    }
    RunBuilder& up_to_serving(u64 profiled_bytes = 512 * kMiB, u64 blocks = 2000) {
        phase(trace::Phase::start).phase(trace::Phase::host_load).phase(trace::Phase::context);
        phase(trace::Phase::weights).phase(trace::Phase::profile).phase(trace::Phase::kv_pool);
        budget.total_bytes = total_;
        budget.requested_bytes = total_ / 10 * 9;
        budget.weights_bytes = 15 * kGiB;
        budget.activation_peak_bytes = profiled_bytes;
        budget.kv_block_bytes = 2 * kMiB;
        budget.available_kv_bytes = static_cast<i64>(blocks * 2 * kMiB);
        budget.num_gpu_blocks = blocks;
        budget.block_size = 16;
        budget.profiled_tokens = 2048;
        budget.max_model_len = 8192;
        budget.gpu_memory_utilization = 0.9;
        put(trace::RecordType::budget, budget);
        kv_total = blocks;
        allocated = 15 * kGiB + blocks * 2 * kMiB;
        reserved = allocated + 600 * kMiB;
        return phase(trace::Phase::serving);
    }
    RunBuilder& sample() {
        trace::SampleRecord s{};
        const auto flat = [](u64 v) { return trace::Envelope{v, v, v}; };
        s.allocated = flat(allocated);
        s.allocated.high = allocated + step_peak;
        s.reserved = flat(reserved);
        s.device_used = flat(reserved + outside + others);
        s.total_bytes = total_;
        for (std::size_t o = 0; o < kOwners; ++o) s.owner[o] = flat(owner[o]);
        trace::Envelope& act = s.owner[static_cast<std::size_t>(Owner::activations)];
        act.high = act.now + step_peak;
        s.owner[static_cast<std::size_t>(Owner::other_processes)] = flat(others);
        s.kv_blocks_total = kv_total;
        s.completed = completed;
        s.received = completed;
        put(trace::RecordType::sample, s);
        return *this;
    }
    // `n` requests come, are served and go, a sample after each; `each` changes the figures.
    template <class Each>
    RunBuilder& serve(u64 n, Each&& each) {
        for (u64 i = 0; i < n; ++i) {
            request(static_cast<u32>(completed), trace::RequestEvent::arrival);
            request(static_cast<u32>(completed), trace::RequestEvent::completion);
            ++completed;
            now_us += 500'000;
            each(i);
            sample();
        }
        return *this;
    }
    RunBuilder& serve(u64 n) {
        return serve(n, [](u64) {});
    }
    RunBuilder& request(u32 number, trace::RequestEvent event, u32 prompt = 500) {
        trace::RequestRecord r{};
        r.request = number;
        r.event = event;
        r.prompt_tokens = prompt;
        put(trace::RecordType::request, r);
        return *this;
    }
    trace::FailureRecord oom(u64 asked_bytes, u64 free_bytes, Owner of = Owner::activations) const {
        trace::FailureRecord f{};
        f.kind = trace::FailureKind::allocator_oom;
        f.phase = phase_;
        f.code = 2;
        f.call = static_cast<i32>(DeviceCall::malloc);
        f.owner = of;
        f.request = trace::kNoRequest;
        f.requested_bytes = f.rounded_bytes = f.segment_bytes = asked_bytes;
        f.device_total_bytes = total_;
        f.device_free_bytes = free_bytes;
        f.allocated_bytes = allocated;
        f.reserved_bytes = reserved;
        f.profiled_activation_bytes = budget.activation_peak_bytes;
        f.step_requests = 1;
        f.kv_blocks_total = kv_total;
        f.completed = completed;
        f.owner_bytes = owner;
        return f;
    }
    RunBuilder& fail(const trace::FailureRecord& f, std::string_view message = "torch.OutOfMemoryError: CUDA out of memory.") {
        put(trace::RecordType::failure, f, message);
        return *this;
    }
    RunBuilder& blocks(const std::vector<trace::MapBlock>& list) {
        trace::BlockMapRecord head{1, static_cast<u32>(list.size()), 0, 0};
        trace::MapSegment segment{};
        segment.blocks = static_cast<u32>(list.size());
        std::string tail(reinterpret_cast<const char*>(&segment), sizeof segment);
        tail.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(trace::MapBlock));
        put(trace::RecordType::block_map, head, tail);
        return *this;
    }
    RunBuilder& text(trace::RecordType type, std::string_view line) {
        fold(type, std::vector<std::byte>(reinterpret_cast<const std::byte*>(line.data()),
                                          reinterpret_cast<const std::byte*>(line.data()) + line.size()));
        return *this;
    }
    RunBuilder& evidence(std::string_view json) {
        trace::RecordView v;
        v.type = trace::RecordType::evidence;
        v.payload = std::as_bytes(std::span(json.data(), json.size()));
        facts.begin_wall();
        facts.fold_wall(v);
        return *this;
    }
    template <class Record>
    void put(trace::RecordType type, const Record& record, std::string_view tail = {}) {
        std::vector<std::byte> bytes(sizeof record + tail.size());
        std::memcpy(bytes.data(), &record, sizeof record);
        if (!tail.empty()) std::memcpy(bytes.data() + sizeof record, tail.data(), tail.size());
        fold(type, std::move(bytes));
    }
    diagnosis::Diagnosis diagnose() const { return diagnosis::diagnose(facts); }

    diagnosis::RunFacts facts;
    trace::BudgetRecord budget{};
    std::array<u64, kOwners> owner{};
    u64 allocated = 0, reserved = 0, outside = 700 * kMiB, others = 0, step_peak = 300 * kMiB;
    u64 completed = 0, kv_total = 0;
    i64 now_us = 0;

  private:
    void fold(trace::RecordType type, std::vector<std::byte> bytes) {
        trace::RecordView v;
        v.type = type;
        v.time_us = now_us;
        v.payload = bytes;
        facts.fold(v);
    }
    u64 total_;
    trace::Phase phase_ = trace::Phase::start;
};

}  // namespace oomlab::testing
