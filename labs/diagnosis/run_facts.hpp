// A run as facts: the records of its trace folded once, in order, into what a diagnosis needs.
//
// Pure: no files, no clock; the same records give the same facts, live or afterwards. Nothing here
// knows a scenario or the name of a fault. Figures stand per life: a server that was started again
// after a failure begins a new one. Memory is bounded by the number of requests (8 bytes each).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "labs/diagnosis/floors.hpp"
#include "labs/trace/reader.hpp"

namespace oomlab::diagnosis {

// What the server said about itself at the start. For summaries; a verdict never rests on it.
struct RunInfo {
    bool known = false, simulated = false;
    std::string device, model, preemption, kv_pool;
    u64 total_bytes = 0, max_model_len = 0, max_num_seqs = 0, max_num_batched_tokens = 0;
    u64 host_memory_limit_bytes = 0, weights_bytes = 0, vocab_size = 0;
    double sample_every_s = 10;
};

// What the supervisor saw (the evidence record at the end of the wall log).
struct HostFacts {
    bool known = false;
    std::string outcome, killed_by, way;
    int exit_status = 0, signal = 0;
    u64 limit_bytes = 0, peak_bytes = 0;
    std::vector<std::string> sentences;

    bool kernel_killed() const { return outcome == "host_oom"; }
    bool stand_in_killed() const { return killed_by.find("stand-in") != std::string::npos; }
};

// Memory that stays allocated under the label of a request that has ended, in one block map.
struct Retained {
    i64 time_us = 0;
    u64 bytes = 0, blocks = 0, requests = 0;
    u64 cancelled_requests = 0;          // of them: the client had gone away
    u64 ended_requests = 0, ended_cancelled = 0;   // all that had ended by then
    u64 smallest_block_bytes = 0, largest_block_bytes = 0;
    double per_prompt_token_low = 0, per_prompt_token_high = 0;   // bytes of a request / its prompt
    std::array<u64, kOwners> owner_bytes{};
    bool truncated = false;              // the map had a ceiling: these are lower bounds
};

struct FailureFacts {
    trace::FailureRecord record{};
    i64 time_us = 0;
    std::string message;                 // as people see it; control characters are not removed
    std::size_t life = 0;
    // The step before it: allocated and owners between steps, nothing of the failing step in it.
    std::optional<trace::SampleRecord> before;
    u64 retries = 0;                     // releases of the cache in this life that did not suffice
    u32 request_prompt_tokens = 0, request_output_tokens = 0;
};

struct Life {
    i64 begin_us = 0, serving_us = -1, end_us = 0;
    trace::Phase last_phase = trace::Phase::start;
    u64 completed_at_begin = 0;
    std::optional<trace::BudgetRecord> budget;
    // Between steps, over completed requests.
    FloorSeries allocated;     // without KV blocks taken on demand
    FloorSeries gap;           // reserved - allocated, beyond what the largest step so far explains
    FloorSeries outside;       // device used - reserved, other processes included
    FloorSeries others;        // other processes alone
    std::array<FloorSeries, kOwners> owner;
    u64 step_activations_peak_bytes = 0;   // most that a step held, above what stayed between steps
    u64 gap_floor_raw_from = 0, gap_raw_last = 0;
    u64 lost_kv_blocks = 0;    // used in a KV map, and held by nobody in it
    u64 preemptions_at_begin = 0;
    std::optional<Retained> retained;      // of the last block map
    std::optional<std::size_t> failure;    // index into failures
};

struct HostPoint {
    i64 wall_us = 0;
    u64 rss_bytes = 0, cgroup_bytes = 0;
};

class RunFacts {
  public:
    // Virtual part, in order. Wall part: any number of times, it is read whole each time.
    void fold(const trace::RecordView& record);
    void begin_wall();
    void fold_wall(const trace::RecordView& record);

    RunInfo info;
    HostFacts host;
    std::vector<Life> lives;
    std::vector<FailureFacts> failures;
    std::optional<trace::FinishRecord> finish;
    std::optional<trace::SampleRecord> last_sample;
    i64 last_us = 0;
    trace::Phase phase = trace::Phase::start;
    u64 preemptions = 0, rejections = 0, retries = 0, arrivals = 0;
    std::array<u64, kOwners> owner_peaks{};
    u64 allocated_peak = 0, reserved_peak = 0, device_used_peak = 0, kv_blocks_peak = 0;
    std::optional<std::pair<u32, u32>> last_arrival;   // request, prompt tokens
    u64 prompt_tokens_before_last = 0;     // of all arrivals but the last one
    bool pinned_pool_begun = false;        // the server said that it was about to pin host memory
    std::vector<HostPoint> host_points;

    bool ended() const { return finish.has_value() || host.known; }
    u64 restarts() const { return lives.size() > 1 ? lives.size() - 1 : 0; }

  private:
    void add_sample(i64 time_us, const trace::SampleRecord& s);
    void add_request(const trace::RequestRecord& r);
    void add_map(const trace::RecordView& view);
    Life& life();

    struct Seen {
        u32 prompt_tokens = 0;
        u32 state = 0;   // 0 alive, 1 ended, 2 cancelled
    };
    std::vector<Seen> requests_;
    u64 ended_ = 0, cancelled_ = 0, ooms_ = 0;
};

// The whole of a finished or a growing trace.
RunFacts facts_of(trace::Reader& reader);

// allocated, reserved and device used between steps, one row every `every_s` of serving time.
class MemorySeries {
  public:
    struct Row {
        double at_s;
        u64 memory_allocated_bytes, memory_reserved_bytes, device_used_bytes;
    };
    explicit MemorySeries(double every_s) : every_us_(static_cast<i64>(every_s * 1e6)) {}
    void fold(const trace::RecordView& record);
    const std::vector<Row>& rows() const { return rows_; }

  private:
    i64 every_us_, serving_us_ = -1, next_us_ = 0;
    std::vector<Row> rows_;
};

}  // namespace oomlab::diagnosis
