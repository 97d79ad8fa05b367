// What the black box holds: the records, as plain structs that are copied into the file as they are.
//
// Two kinds of record: the virtual part is a function of scenario and seed, the same to the byte
// each time; the wall part (pids, host memory, wall clock, controls) stands apart, in a log of its
// own. Times of the virtual part are microseconds of the device's clock.
//
// Kept whole: phases, admissions, rejections, preemptions, completions, segment operations, retries,
// failures. Not kept whole: single allocations. For these there are samples with min/max envelopes,
// block maps at intervals and at every failure, and a ring of the last 65,536 operations.
//
// Little-endian, fixed sizes (static_assert); a payload may be followed by `tail` bytes (text, maps).
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/device/device_error.hpp"
#include "kernels/device/owner.hpp"

namespace oomlab::trace {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kRingOps = 65536;
inline constexpr std::uint32_t kNoRequest = 0xffffffffu;

enum class Phase : std::uint16_t {
    start, host_load, context, weights, profile, kv_pool, graph_capture, warmup, serving, shutdown,
    count_
};
const char* phase_name(Phase phase);  // "host_load", ...; "unknown" for a number from a damaged file

enum class RecordType : std::uint16_t {
    none = 0,
    run_info,      // RunInfo + JSON tail (what runs, on what; no fault names, no scenario text)
    phase,         // PhaseRecord
    budget,        // BudgetRecord: the server's own sizing of the pool
    sample,        // SampleRecord
    request,       // RequestRecord: arrival, admission, rejection, preemption, completion, failure
    segment,       // SegmentRecord: segment_alloc/free/map/unmap
    retry,         // RetryRecord: the allocator released its cache and tried again
    failure,       // FailureRecord + text tail (the message that people see)
    block_map,     // BlockMapRecord + MapSegment/MapBlock tail
    kv_map,        // KvMapRecord + KvOwner tail
    log,           // text tail: a line the server printed
    memory_summary,// text tail
    action,        // text tail: an [[action]] that was carried out
    device_csv,    // reserved
    finish,        // FinishRecord: the server ended by itself
    outside,       // OutsideRecord: memory outside the allocator was seen to change
    // wall log
    process = 100, // ProcessRecord
    host_sample,   // HostSampleRecord
    control,       // text tail: pause, step, speed, stop
    evidence,      // JSON tail: what the supervisor found after death
    ready,         // the server acknowledges (tests of the recorder)
};

const char* record_type_name(RecordType type);  // "phase", ...

struct PhaseRecord {
    Phase phase = Phase::start;
    std::uint16_t pad[3] = {};
};

// The engine's arithmetic, as vLLM prints it: available = total * utilization - weights -
// activation - non_torch - graph_estimate.
struct BudgetRecord {
    std::uint64_t total_bytes, free_at_start_bytes, requested_bytes;
    std::uint64_t weights_bytes, activation_peak_bytes, non_torch_bytes, graph_estimate_bytes;
    std::int64_t available_kv_bytes;
    std::uint64_t kv_block_bytes, num_gpu_blocks, block_size;
    std::uint64_t profiled_tokens, profiled_seqs, max_model_len, max_num_seqs,
        max_num_batched_tokens;
    double gpu_memory_utilization;
    std::uint64_t chunked_prefill;
};

// A figure with the smallest and largest value it had since the sample before.
struct Envelope {
    std::uint64_t now, low, high;
};

struct SampleRecord {
    std::array<Envelope, kOwners> owner;  // bytes by owner, all of the device
    Envelope allocated, reserved, device_used;
    std::uint64_t total_bytes;
    std::uint64_t inactive_split_bytes, num_alloc_retries, num_ooms, segments;
    std::uint64_t kv_blocks_used, kv_blocks_total, kv_blocks_cached;
    std::uint32_t running, waiting;
    std::uint64_t steps, received, completed, rejected, preempted, failed;
    std::uint64_t prompt_tokens, generation_tokens;
};

enum class RequestEvent : std::uint16_t {
    arrival, admission, rejection, preemption, completion, cancelled, failed, first_token
};
const char* request_event_name(RequestEvent event);  // "arrival", ...
struct RequestRecord {
    std::uint32_t request;   // number in order of arrival, from 0
    RequestEvent event;
    std::uint16_t http_status;      // rejections: 400 or 429; else 0
    std::uint32_t prompt_tokens, output_tokens;  // asked for; on completion: produced
    std::uint32_t computed_tokens, kv_blocks;
    std::uint32_t preemptions, recomputed_tokens;
};

enum class SegmentEvent : std::uint16_t { alloc, free, map, unmap };
struct SegmentRecord {
    SegmentEvent event;
    std::uint16_t small_pool;       // 1: small pool
    std::uint32_t stream;
    std::uint64_t address, bytes;
    std::uint64_t reserved_after_bytes;
};

struct RetryRecord {
    std::uint64_t asked_bytes, released_bytes, num_alloc_retries;
    std::uint32_t request;
    Owner owner;
    std::uint8_t succeeded;
    std::uint16_t pad;
};

enum class FailureKind : std::uint16_t {
    allocator_oom,      // the caching allocator gave up: figures are exact
    device_oom,         // a driver call outside the allocator (context, module, graph, library)
    cuda_error,         // anything else that CUDA said
    refused,            // planning: the pool is too small, a request can never fit
    host_alloc,         // the host's allocator said no
    internal,
};
const char* failure_kind_name(FailureKind kind);  // "allocator_oom", ...
struct FailureRecord {
    FailureKind kind;
    Phase phase;
    std::int32_t code;               // DeviceErrc
    std::int32_t call;               // DeviceCall
    Owner owner;
    std::uint8_t sticky, capped, pad;   // capped: a per-process fraction or limit, not the card
    std::uint32_t request;           // whose tensors, or kNoRequest
    std::uint32_t step_prefill_tokens, step_decode_tokens, step_requests, longest_prompt;
    std::uint32_t pad2 = 0;
    std::uint64_t requested_bytes, rounded_bytes, segment_bytes;
    std::uint64_t device_total_bytes, device_free_bytes, other_processes_bytes, limit_bytes;
    std::uint64_t allocated_bytes, reserved_bytes, largest_free_block_bytes, inactive_split_bytes;
    std::uint64_t context_bytes, outside_bytes, graph_bytes, cached_private_bytes;
    std::uint64_t step_activation_bytes;     // activations live when it failed, the request included
    std::uint64_t profiled_activation_bytes; // the peak the pool was sized with; 0 before profiling
    std::uint64_t kv_blocks_used, kv_blocks_total, preemptions, completed;
    std::array<std::uint64_t, kOwners> owner_bytes;
};

struct OutsideRecord {
    std::uint64_t outside_bytes, graph_bytes, context_bytes, other_processes_bytes;
};

struct BlockMapRecord {
    std::uint32_t segments, blocks;   // tail: MapSegment[segments], MapBlock[blocks] in order
    std::uint32_t truncated_blocks;   // left out because the map has a ceiling
    std::uint32_t pad;
};
struct MapSegment {
    std::uint64_t address, bytes;
    std::uint32_t first_block, blocks;
    std::uint32_t stream;
    std::uint8_t small_pool, expandable;
    std::uint16_t pad;
};
enum class BlockState : std::uint8_t { free, active, pending_free };
struct MapBlock {
    std::uint64_t address, bytes;
    std::uint32_t request;
    Owner owner;
    BlockState state;
    std::uint16_t pad;
};

struct KvMapRecord {
    std::uint32_t owners, blocks_total, blocks_used, blocks_cached;  // tail: KvOwner[owners]
};
struct KvOwner {
    std::uint32_t request, blocks, first_block, pad;
};

struct FinishRecord {
    std::int32_t exit_status;
    std::uint32_t pad;
    double makespan_s;
    // nanoseconds would not fit means of nothing: -1 where there is no value
    double ttft_mean_s, ttft_p50_s, ttft_p99_s;
    double tpot_mean_s, tpot_p50_s, tpot_p99_s;
    double itl_p50_s, itl_p99_s, e2e_mean_s, e2e_p99_s;
    std::uint64_t peak_allocated_bytes, peak_reserved_bytes, peak_device_used_bytes;
    std::uint64_t received, completed, rejected, preempted, failed, num_preemptions;
    std::uint64_t kv_blocks_peak, kv_blocks_total;
    std::array<std::uint64_t, kOwners> owners_end, owners_peak;
};

struct ProcessRecord {
    std::int64_t pid, wall_us;        // since the epoch
    std::uint64_t rss_bytes;
    std::int32_t status, signal;
};
struct HostSampleRecord {
    std::int64_t wall_us;
    std::uint64_t rss_bytes, peak_rss_bytes, cgroup_current_bytes, cgroup_limit_bytes;
};

// The ring: the last kRingOps allocator operations, newest overwrite oldest.
enum class OpKind : std::uint8_t { alloc, free, failed };
struct RingOp {
    std::uint64_t seq;        // from 1; 0: the slot was never used
    std::int64_t time_us;
    std::uint64_t address, bytes;
    std::uint32_t request;
    std::uint16_t op;         // number in the server's op table, 0xffff: none
    Owner owner;
    OpKind kind;
    std::uint32_t repeat;     // the pattern that ends here was repeated this many times more
    std::uint32_t pad;        // in the file: the lower half of seq, so that torn slots show
};
// Padding that nobody sets would make two runs differ: every byte of a record has a name.
static_assert(std::has_unique_object_representations_v<SampleRecord>);
static_assert(std::has_unique_object_representations_v<RequestRecord>);
static_assert(std::has_unique_object_representations_v<SegmentRecord>);
static_assert(std::has_unique_object_representations_v<RetryRecord>);
static_assert(std::has_unique_object_representations_v<FailureRecord>);
static_assert(std::has_unique_object_representations_v<OutsideRecord>);
static_assert(std::has_unique_object_representations_v<BlockMapRecord>);
static_assert(std::has_unique_object_representations_v<KvMapRecord>);
static_assert(sizeof(BudgetRecord) == 18 * 8);
static_assert(sizeof(FinishRecord) == 2 * 4 + 11 * 8 + 11 * 8 + 2 * kOwners * 8);
static_assert(sizeof(RingOp) == 48);
static_assert(sizeof(MapSegment) == 32);
static_assert(sizeof(MapBlock) == 24);

}  // namespace oomlab::trace
