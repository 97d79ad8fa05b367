// What the server writes into the black box: turns events into records, keeps the counters and the
// min/max envelopes between samples. Without a writer it counts all the same (tests, benchmarks).
//
// Times are the device's clock. Nothing here reads the wall clock, allocates per event, or fails.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "kernels/device/device.hpp"
#include "labs/server/memory/caching_allocator.hpp"
#include "labs/trace/writer.hpp"

namespace oomlab::server {

struct Counters {
    u64 steps = 0, received = 0, completed = 0, rejected = 0, preemptions = 0, failed = 0, cancelled = 0;
    u64 requests_preempted = 0;
    u64 prompt_tokens = 0, generation_tokens = 0, recomputed_tokens = 0, cached_tokens = 0;
};

class Recorder final : public AllocatorObserver {
  public:
    Recorder(Device& device, trace::Writer* writer);

    void run_info(std::string_view json);
    void phase(trace::Phase phase);
    trace::Phase current_phase() const { return phase_; }
    void budget(const trace::BudgetRecord& record);
    void request(const trace::RequestRecord& record);
    void failure(trace::FailureRecord record, std::string_view message);
    void log(std::string_view line);
    void text(trace::RecordType type, std::string_view text);
    void kv_map(const trace::KvMapRecord& record, const std::vector<trace::KvOwner>& owners);
    void block_map(const CachingAllocator& allocator);
    void finish(const trace::FinishRecord& record);

    // The hot path: one allocation or release of `bytes` for an owner.
    void grew(Owner owner, u64 address, u64 bytes, u32 request, u16 op) {
        Flow& f = flow_[static_cast<std::size_t>(owner)];
        f.now += bytes;
        if (f.now > f.high) f.high = f.now;
        allocated_.now += bytes;
        if (allocated_.now > allocated_.high) allocated_.high = allocated_.now;
        if (writer_ != nullptr) ring(trace::OpKind::alloc, owner, address, bytes, request, op);
    }
    void shrank(Owner owner, u64 address, u64 bytes, u32 request, u16 op) {
        Flow& f = flow_[static_cast<std::size_t>(owner)];
        f.now -= bytes;
        if (f.now < f.low) f.low = f.now;
        allocated_.now -= bytes;
        if (allocated_.now < allocated_.low) allocated_.low = allocated_.now;
        if (writer_ != nullptr) ring(trace::OpKind::free, owner, address, bytes, request, op);
    }
    // The pattern of the last `ops` operations happened `times` more.
    void repeated(u64 times);
    void failed_op(Owner owner, u64 bytes, u32 request, u16 op);

    u64 live(Owner owner) const { return flow_[static_cast<std::size_t>(owner)].now; }
    u64 peak(Owner owner) const;

    // Memory that is known to be outside the allocator, by owner (context, graphs, libraries, ...).
    void set_outside(Owner owner, u64 bytes);

    struct Load {
        u64 kv_used = 0, kv_total = 0, kv_cached = 0;
        u32 running = 0, waiting = 0;
    };
    // A sample, when `every_s` of the device's time have passed since the last one, or `force`.
    void sample(const CachingAllocator* allocator, const Load& load, double every_s, bool force);
    // Looks at the device as a whole; keeps its peak.
    void observe_device(const CachingAllocator* allocator);

    Counters counters;
    u64 peak_device_used() const { return device_used_peak_; }
    // What the device said last: a dead context does not answer any more.
    const MemInfo& last_mem_info() const { return last_info_; }
    std::array<u64, kOwners> owners_now(const CachingAllocator* allocator);
    const std::array<u64, kOwners>& owners_peak() const { return peaks_; }
    trace::Writer* writer() { return writer_; }

    // AllocatorObserver
    void segment_alloc(u64 address, u64 bytes, StreamId stream, bool small_pool) override;
    void segment_free(u64 address, u64 bytes, StreamId stream, bool small_pool) override;
    void segment_map(u64 address, u64 bytes, StreamId stream, bool small_pool) override;
    void segment_unmap(u64 address, u64 bytes, StreamId stream, bool small_pool) override;
    void retry(u64 asked_bytes, u64 released_bytes, bool succeeded) override;

    i64 now_us() const;
    // The labels that a retry is recorded with.
    u32 current_request = trace::kNoRequest;
    Owner current_owner = Owner::activations;

  private:
    struct Flow {
        u64 now = 0, low = 0, high = 0;
        void set(u64 value) {
            now = value;
            if (now < low) low = now;
            if (now > high) high = now;
        }
        trace::Envelope take() {
            const trace::Envelope e{now, low, high};
            low = high = now;
            return e;
        }
    };
    void ring(trace::OpKind kind, Owner owner, u64 address, u64 bytes, u32 request, u16 op);
    void segment(trace::SegmentEvent event, u64 address, u64 bytes, StreamId stream, bool small_pool);

    Device& device_;
    trace::Writer* writer_;
    trace::Phase phase_ = trace::Phase::start;
    std::array<Flow, kOwners> flow_{};
    Flow allocated_{}, reserved_{}, device_used_{};
    std::array<u64, kOwners> peaks_{};
    std::array<bool, kOwners> outside_{};
    u64 device_used_peak_ = 0, reserved_now_ = 0;
    double last_sample_s_ = -1e9;
    MemInfo last_info_{};
    i64 ring_time_us_ = 0;
};

}  // namespace oomlab::server
