#include "labs/server/record/recorder.hpp"

#include <algorithm>
#include <cmath>

namespace oomlab::server {

using trace::RecordType;

namespace {
constexpr std::size_t index(Owner o) { return static_cast<std::size_t>(o); }
// A block map is at most this many blocks; what is left out is counted in the record.
constexpr std::size_t kMapBlocksMax = 20000;
}  // namespace

Recorder::Recorder(Device& device, trace::Writer* writer) : device_(device), writer_(writer) {}

i64 Recorder::now_us() const { return static_cast<i64>(std::llround(device_.now_s() * 1e6)); }

void Recorder::run_info(std::string_view json) { text(RecordType::run_info, json); }

void Recorder::phase(trace::Phase phase) {
    phase_ = phase;
    ring_time_us_ = now_us();
    if (writer_ != nullptr) writer_->append(RecordType::phase, now_us(), trace::PhaseRecord{phase, {}});
}

void Recorder::budget(const trace::BudgetRecord& record) {
    if (writer_ != nullptr) writer_->append(RecordType::budget, now_us(), record);
}

void Recorder::request(const trace::RequestRecord& record) {
    if (writer_ != nullptr) writer_->append(RecordType::request, now_us(), record);
}

void Recorder::failure(trace::FailureRecord record, std::string_view message) {
    record.phase = phase_;
    if (writer_ != nullptr) writer_->append(RecordType::failure, now_us(), record, message);
}

void Recorder::log(std::string_view line) { text(RecordType::log, line); }

void Recorder::text(RecordType type, std::string_view text) {
    if (writer_ != nullptr) writer_->append_text(type, now_us(), text);
}

void Recorder::kv_map(const trace::KvMapRecord& record, const std::vector<trace::KvOwner>& owners) {
    if (writer_ == nullptr) return;
    writer_->append(RecordType::kv_map, now_us(), std::as_bytes(std::span(&record, 1)),
                    std::as_bytes(std::span(owners)));
}

void Recorder::block_map(const CachingAllocator& allocator) {
    if (writer_ == nullptr) return;
    trace::BlockMapRecord head{};
    std::vector<trace::MapSegment> segments;
    std::vector<trace::MapBlock> blocks;
    for (const SegmentInfo& s : allocator.snapshot()) {
        trace::MapSegment m{};
        m.address = s.address;
        m.bytes = s.bytes;
        m.first_block = static_cast<u32>(blocks.size());
        m.stream = static_cast<u32>(s.stream);
        m.small_pool = s.small_pool ? 1 : 0;
        m.expandable = s.expandable ? 1 : 0;
        for (const BlockInfo& b : s.blocks) {
            if (!b.mapped) continue;
            if (blocks.size() >= kMapBlocksMax) {
                ++head.truncated_blocks;
                continue;
            }
            trace::MapBlock out{};
            out.address = b.address;
            out.bytes = b.bytes;
            out.request = b.request;
            out.owner = b.owner;
            out.state = b.pending_free ? trace::BlockState::pending_free
                        : b.active     ? trace::BlockState::active
                                       : trace::BlockState::free;
            blocks.push_back(out);
        }
        m.blocks = static_cast<u32>(blocks.size()) - m.first_block;
        segments.push_back(m);
    }
    head.segments = static_cast<u32>(segments.size());
    head.blocks = static_cast<u32>(blocks.size());
    std::vector<std::byte> tail;
    const auto put = [&](std::span<const std::byte> bytes) { tail.insert(tail.end(), bytes.begin(), bytes.end()); };
    put(std::as_bytes(std::span(segments)));
    put(std::as_bytes(std::span(blocks)));
    writer_->append(RecordType::block_map, now_us(), std::as_bytes(std::span(&head, 1)), tail);
}

void Recorder::finish(const trace::FinishRecord& record) {
    if (writer_ != nullptr) writer_->append(RecordType::finish, now_us(), record);
}

void Recorder::ring(trace::OpKind kind, Owner owner, u64 address, u64 bytes, u32 request, u16 op) {
    trace::RingOp r{};
    r.time_us = ring_time_us_;
    r.address = address;
    r.bytes = bytes;
    r.request = request;
    r.op = op;
    r.owner = owner;
    r.kind = kind;
    writer_->ring(r);
}

void Recorder::repeated(u64 times) {
    if (writer_ == nullptr) return;
    trace::RingOp r{};
    r.time_us = ring_time_us_;
    r.request = trace::kNoRequest;
    r.op = 0xffff;
    r.repeat = static_cast<u32>(times);
    r.owner = Owner::activations;
    writer_->ring(r);
}

void Recorder::failed_op(Owner owner, u64 bytes, u32 request, u16 op) {
    if (writer_ != nullptr) ring(trace::OpKind::failed, owner, 0, bytes, request, op);
}

u64 Recorder::peak(Owner owner) const {
    return std::max(peaks_[index(owner)], flow_[index(owner)].high);
}

void Recorder::set_outside(Owner owner, u64 bytes) {
    outside_[index(owner)] = true;
    flow_[index(owner)].set(bytes);
}

void Recorder::observe_device(const CachingAllocator* allocator) {
    ring_time_us_ = now_us();
    const auto info = device_.memory().mem_info();
    if (!info) return;
    last_info_ = *info;
    const u64 used = info->total_bytes - info->free_bytes;
    device_used_.set(used);
    device_used_peak_ = std::max(device_used_peak_, used);
    flow_[index(Owner::other_processes)].set(info->other_processes_bytes);
    const u64 reserved = allocator != nullptr ? allocator->memory_reserved() : 0;
    const u64 allocated = allocator != nullptr ? allocator->memory_allocated() : 0;
    reserved_.set(reserved);
    reserved_now_ = reserved;   // a process that ended takes its segments with it, unsaid
    flow_[index(Owner::cached)].set(reserved - std::min(reserved, allocated));
    // What the device says is used and nobody claims is shown, never hidden.
    u64 claimed = reserved + info->other_processes_bytes;
    for (std::size_t o = 0; o < kOwners; ++o) claimed += outside_[o] ? flow_[o].now : 0;
    flow_[index(Owner::unattributed)].set(used - std::min(used, claimed));
}

std::array<u64, kOwners> Recorder::owners_now(const CachingAllocator* allocator) {
    observe_device(allocator);
    std::array<u64, kOwners> result{};
    for (std::size_t o = 0; o < kOwners; ++o) result[o] = flow_[o].now;
    return result;
}

void Recorder::sample(const CachingAllocator* allocator, const Load& load, double every_s, bool force) {
    const double now = device_.now_s();
    ring_time_us_ = now_us();
    if (!force && now - last_sample_s_ < every_s) return;
    last_sample_s_ = now;
    observe_device(allocator);
    for (std::size_t o = 0; o < kOwners; ++o) peaks_[o] = std::max(peaks_[o], flow_[o].high);
    if (writer_ == nullptr) {
        for (Flow& f : flow_) f.take();
        return;
    }
    trace::SampleRecord r{};
    for (std::size_t o = 0; o < kOwners; ++o) r.owner[o] = flow_[o].take();
    r.allocated = allocated_.take();
    r.reserved = reserved_.take();
    r.device_used = device_used_.take();
    r.total_bytes = device_.props().total_bytes;
    if (allocator != nullptr) {
        const AllocatorStats& s = allocator->stats();
        r.inactive_split_bytes = static_cast<u64>(s.inactive_split_bytes[kStatAll].current);
        r.num_alloc_retries = static_cast<u64>(s.num_alloc_retries);
        r.num_ooms = static_cast<u64>(s.num_ooms);
        r.segments = static_cast<u64>(s.segment[kStatAll].current);
    }
    r.kv_blocks_used = load.kv_used;
    r.kv_blocks_total = load.kv_total;
    r.kv_blocks_cached = load.kv_cached;
    r.running = load.running;
    r.waiting = load.waiting;
    r.steps = counters.steps;
    r.received = counters.received;
    r.completed = counters.completed;
    r.rejected = counters.rejected;
    r.preempted = counters.preemptions;
    r.failed = counters.failed;
    r.prompt_tokens = counters.prompt_tokens;
    r.generation_tokens = counters.generation_tokens;
    writer_->append(RecordType::sample, now_us(), r);
}

void Recorder::segment(trace::SegmentEvent event, u64 address, u64 bytes, StreamId stream, bool small_pool) {
    const bool more = event == trace::SegmentEvent::alloc || event == trace::SegmentEvent::map;
    reserved_now_ = more ? reserved_now_ + bytes : reserved_now_ - std::min(reserved_now_, bytes);
    reserved_.set(reserved_now_);
    // Between samples the device's use moves with the segments.
    device_used_.set(more ? device_used_.now + bytes : device_used_.now - std::min(device_used_.now, bytes));
    device_used_peak_ = std::max(device_used_peak_, device_used_.now);
    if (writer_ == nullptr) return;
    trace::SegmentRecord r{};
    r.event = event;
    r.small_pool = small_pool ? 1 : 0;
    r.stream = static_cast<u32>(stream);
    r.address = address;
    r.bytes = bytes;
    r.reserved_after_bytes = reserved_now_;
    writer_->append(RecordType::segment, now_us(), r);
}

void Recorder::segment_alloc(u64 address, u64 bytes, StreamId stream, bool small_pool) {
    segment(trace::SegmentEvent::alloc, address, bytes, stream, small_pool);
}
void Recorder::segment_free(u64 address, u64 bytes, StreamId stream, bool small_pool) {
    segment(trace::SegmentEvent::free, address, bytes, stream, small_pool);
}
void Recorder::segment_map(u64 address, u64 bytes, StreamId stream, bool small_pool) {
    segment(trace::SegmentEvent::map, address, bytes, stream, small_pool);
}
void Recorder::segment_unmap(u64 address, u64 bytes, StreamId stream, bool small_pool) {
    segment(trace::SegmentEvent::unmap, address, bytes, stream, small_pool);
}

void Recorder::retry(u64 asked_bytes, u64 released_bytes, bool succeeded) {
    if (writer_ == nullptr) return;
    trace::RetryRecord r{};
    r.asked_bytes = asked_bytes;
    r.released_bytes = released_bytes;
    r.request = current_request;
    r.owner = current_owner;
    r.succeeded = succeeded ? 1 : 0;
    writer_->append(RecordType::retry, now_us(), r);
}

}  // namespace oomlab::server
