// What the window knows of a run: the trace's records folded once, in order, as they arrive.
//
// No ImGui, no files, no clocks: the same records always give the same model, so the terminal, the
// window, `render` and the tests see the same figures. The records' bytes must outlive the model
// (they are views into the mapped trace). Not thread safe.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "labs/diagnosis/run_facts.hpp"
#include "labs/trace/reader.hpp"
#include "ui/view_model/block_map.hpp"
#include "ui/view_model/events.hpp"
#include "ui/view_model/tiers.hpp"

namespace oomlab::view {

// The word on the status pill, each with a shape of its own.
enum class Health { no_data, loading, ok, tight, oom, killed, error, refused, recovering, ended };
const char* health_word(Health health);   // "TIGHT", "KILLED 137"

// The memory figures of one moment.
struct Figures {
    i64 time_us = 0;
    u64 total_bytes = 0, limit_bytes = 0;      // limit: a cap below the card, or the card
    u64 used_bytes = 0, allocated_bytes = 0, reserved_bytes = 0;
    std::array<u64, kOwners> owner_bytes{};
    u64 inactive_split_bytes = 0;
    u64 kv_blocks_used = 0, kv_blocks_total = 0, running = 0, waiting = 0;

    u64 cached_bytes() const { return reserved_bytes - std::min(reserved_bytes, allocated_bytes); }
    u64 device_free_bytes() const { return limit_bytes - std::min(limit_bytes, used_bytes); }
    // What the next request could get at the very most: what the device has left, and the cache.
    u64 headroom_bytes() const { return device_free_bytes() + cached_bytes(); }
};

struct RunFacts {
    std::string device_name, model_name, chip, json;
    bool simulated = false;
    bool known = false;   // a run_info record was seen
};

struct PhaseMark {
    trace::Phase phase;
    i64 time_us;
};

struct FailureNote {
    trace::FailureRecord record;
    i64 time_us;
    std::string text;        // as people see it
    std::size_t event;       // its place in the event list
};

struct MapFrame {
    i64 time_us;
    std::size_t event;       // events that came before it
    std::span<const std::byte> payload;
};

class Model {
  public:
    void fold(const trace::RecordView& record);
    void fold_wall(const trace::RecordView& record);
    void forget_wall();   // the wall log is read whole each time

    // [TIME]
    i64 first_us() const { return first_us_; }
    i64 last_us() const { return last_us_; }
    const Tiers& tiers() const { return tiers_; }
    // The figures at a moment; the newest ones for a moment past the end.
    std::optional<Figures> figures_at(i64 time_us) const;

    // [FACTS]
    const RunFacts& facts() const { return facts_; }
    const std::vector<PhaseMark>& phases() const { return phases_; }
    trace::Phase phase_at(i64 time_us) const;
    const std::optional<trace::BudgetRecord>& budget() const { return budget_; }
    const std::optional<trace::FinishRecord>& finish() const { return finish_; }
    const std::optional<trace::SampleRecord>& last_sample() const { return last_sample_; }
    const std::array<u64, kOwners>& owner_peaks() const { return owner_peaks_; }
    u64 used_peak_bytes() const { return used_peak_; }
    u64 serving_activation_peak_bytes() const { return serving_activation_peak_; }
    u64 total_bytes() const { return total_bytes_; }
    u64 kv_blocks_total() const { return kv_blocks_total_; }    // of the pool, also after it was let go
    bool killed() const;                                        // SIGKILL, whoever sent it
    bool host_oom() const { return run_.host.kernel_killed(); } // the kernel's own, proven
    const diagnosis::RunFacts& run() const { return run_; }     // the same trace, as a diagnosis reads it
    const std::optional<trace::HostSampleRecord>& host() const { return host_; }
    Health health_at(i64 time_us) const;

    // [EVENTS]
    const std::vector<Event>& events() const { return events_; }
    const std::vector<i64>& preemption_times_us() const { return preemption_times_us_; }
    u64 events_not_listed() const { return events_not_listed_; }
    const std::vector<FailureNote>& failures() const { return failures_; }
    // The last failure at or before the moment; null when none.
    const FailureNote* failure_at(i64 time_us) const;
    std::string_view text_of(const Event& event) const;
    std::string describe(const Event& event) const;   // one line, bytes first
    std::size_t events_until(i64 time_us) const;      // how many happened at or before it

    // [MAPS]
    const std::vector<MapFrame>& block_maps() const { return block_maps_; }
    const std::vector<MapFrame>& kv_maps() const { return kv_maps_; }
    // The newest frame at or before the moment, else the first; null when there is none.
    static const MapFrame* nearest(const std::vector<MapFrame>& frames, i64 time_us);

    u64 revision() const { return revision_; }   // changes with every record
    std::size_t bytes_held() const;

  private:
    void add_sample(i64 time_us, const trace::SampleRecord& s);
    void add_event(Event event);
    u32 add_text(std::string_view text);

    RunFacts facts_;
    Tiers tiers_;
    std::vector<PhaseMark> phases_;
    std::optional<trace::BudgetRecord> budget_;
    std::optional<trace::FinishRecord> finish_;
    std::optional<trace::SampleRecord> last_sample_;
    std::optional<trace::HostSampleRecord> host_;
    std::array<u64, kOwners> owner_peaks_{};
    u64 used_peak_ = 0, serving_activation_peak_ = 0, total_bytes_ = 0, kv_blocks_total_ = 0;
    std::vector<Event> events_;
    std::vector<i64> preemption_times_us_;
    u64 events_not_listed_ = 0;
    std::vector<FailureNote> failures_;
    std::vector<std::string> texts_;
    std::size_t text_bytes_ = 0;
    std::vector<MapFrame> block_maps_, kv_maps_;
    diagnosis::RunFacts run_;
    bool signal_9_ = false, serving_ = false;
    bool any_ = false;
    i64 first_us_ = 0, last_us_ = 0, previous_sample_us_ = 0, restart_us_ = 0;
    u64 revision_ = 0;
};

}  // namespace oomlab::view
