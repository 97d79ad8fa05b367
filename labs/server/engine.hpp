// The server: seven stages, then serving until the workload ends, the process dies, or somebody
// stops it. One Engine is one run of a scenario on one device.
//
//   host load | context and libraries | weights | memory profiling | KV pool | graphs | serving
//
// Every stage is a phase in the trace. A stage that fails ends the run with a Failure that carries
// all figures; [run] restart = "on_failure" starts the stages again after restart_delay.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "labs/server/config.hpp"
#include "labs/server/failure.hpp"
#include "labs/server/faults/faults.hpp"
#include "labs/server/host/host_memory.hpp"
#include "labs/server/kv/kv_pool.hpp"
#include "labs/server/memory/ledger.hpp"
#include "labs/server/model/forward.hpp"
#include "labs/server/model/weights.hpp"
#include "labs/server/record/latency.hpp"
#include "labs/server/record/recorder.hpp"
#include "labs/server/schedule/gateway.hpp"
#include "labs/server/schedule/scheduler.hpp"
#include "labs/server/schedule/workload.hpp"

namespace oomlab::server {

// Where the server's lines go (stderr); the trace gets them too.
class Console {
  public:
    virtual ~Console() = default;
    virtual void line(const std::string& text) = 0;
};

// Pause, step, speed and stop, polled between steps. Never changes a byte of the result.
class Control {
  public:
    virtual ~Control() = default;
    // Called after every step with the device's time; may block (pause). False: stop serving.
    virtual bool after_step(double device_now_s) = 0;
};

struct RequestResult {        // kept when Engine::keep_results is set
    double at_s, first_token_s, last_token_s;
    u64 prompt_tokens, output_tokens;
};

class Engine final : public SchedulerObserver, public BlockSource {
  public:
    Engine(ServerConfig config, Device& device, trace::Writer* writer, Console& console,
           Control* control = nullptr);
    ~Engine();

    // Runs to the end. Returns the exit status: 0 served, 1 died of a GPU error or refused.
    int run();

    const trace::FinishRecord& finish_record() const { return finish_; }
    const trace::BudgetRecord& budget() const { return budget_; }
    const std::optional<Failure>& failure() const { return first_failure_; }
    // What the step that failed was made of; zeros when none did.
    struct FailedStep {
        u64 prefill_tokens = 0, decode_tokens = 0, requests = 0, longest_prompt = 0;
    };
    const FailedStep& failed_step() const { return failed_step_; }
    const Recorder& recorder() const { return recorder_; }
    const std::vector<RequestResult>& results() const { return results_; }
    // Tokens of every finished request by number (chips that compute).
    const std::vector<std::vector<i32>>& finished_tokens() const { return finished_tokens_; }
    double mean_running() const { return steps_time_ > 0 ? running_time_ / steps_time_ : 0; }
    double mean_kv_usage() const { return steps_time_ > 0 ? kv_time_ / steps_time_ : 0; }
    // Time means of where the KV slots were, in shares of the pool.
    struct SlotShares {
        double tokens = 0, reserved = 0, internal = 0;
    };
    SlotShares mean_slots() const;
    u64 peak_waiting() const { return peak_waiting_; }
    u64 layers_replayed() const { return layers_replayed_; }

    bool keep_results = false;
    bool watch_slots = false;    // keeps mean_slots(); costs a walk over the running list each step
    bool replay = true;          // see Forward
    bool check_invariants = false;   // one ledger, conservation, at every step

  private:
    struct Instance;             // everything that dies with the process

    Outcome<void> start_up();
    Outcome<void> profile();
    Outcome<void> make_pool();
    Outcome<void> capture_graphs();
    Outcome<void> serve();
    Outcome<void> step(StepPlan& plan);
    Outcome<void> take_arrivals(double now);
    Outcome<void> cancel_due(double now);
    Outcome<void> apply_actions(double now);
    Outcome<void> end_sequence(Sequence* s, bool cancelled);
    void fail_in_flight();
    void report(Failure& failure);
    void shut_down();
    Outcome<void> check() const;

    void admitted(const Sequence& s, u64 cached_tokens) override;
    void preempted(const Sequence& s, u64 lost_tokens) override;
    bool back(const std::vector<u32>& blocks, std::size_t first, u32 request) override;
    void unback(const std::vector<u32>& blocks) override;

    void log(const char* level, std::string text);
    double serving_now() const { return device_.now_s() - serving_began_s_; }
    Recorder::Load load() const;
    void request_event(trace::RequestEvent event, const Request& r, const Sequence* s, u16 status = 0);

    ServerConfig config_;
    Device& device_;
    Recorder recorder_;
    Console& console_;
    Control* control_;
    HostMemory host_;
    Faults faults_;
    Workload workload_;
    Scenario::Gateway gateway_;
    std::unique_ptr<Instance> instance_;
    trace::BudgetRecord budget_{};
    trace::FinishRecord finish_{};
    Latency latency_;
    std::optional<Failure> first_failure_;
    std::vector<Request> requests_;
    std::vector<std::size_t> cancels_;     // requests with a time of cancellation, in order of it
    std::vector<RequestResult> results_;
    std::vector<std::vector<i32>> finished_tokens_;
    std::size_t next_action_ = 0;
    u64 in_flight_ = 0, restarts_ = 0, peak_waiting_ = 0, kv_peak_ = 0, layers_replayed_ = 0;
    u64 kv_peak_total_ = 0;
    double serving_began_s_ = -1, last_step_s_ = 0, last_map_s_ = -1e9, map_every_s_ = 30, last_stat_s_ = 0;
    SlotShares slot_time_;
    double running_time_ = 0, kv_time_ = 0, steps_time_ = 0;
    u64 last_stat_prompt_ = 0, last_stat_generation_ = 0;
    u64 peak_allocated_ = 0, peak_reserved_ = 0;
    bool restart_asked_ = false, stopped_ = false;
    double down_until_s_ = 0;
    FailedStep failed_step_;
};

}  // namespace oomlab::server
