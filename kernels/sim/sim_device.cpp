#include "kernels/sim/sim_device.hpp"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernels/sim/detail/chip.hpp"

namespace oomlab {
namespace sim {
namespace {

class SimStreams final : public DeviceStreams {
  public:
    explicit SimStreams(Chip& chip) : chip_(chip) {}

    DeviceResult<StreamId> create_stream() override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::create_stream));
        const StreamId stream = next_stream_++;
        streams_.insert(stream);
        return stream;
    }
    DeviceResult<void> destroy_stream(StreamId stream) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::destroy_stream));
        if (streams_.erase(stream) == 1) return {};
        return failure(DeviceErrc::invalid_resource_handle, DeviceCall::destroy_stream);
    }
    // Ops name no stream, so an event stands behind all work issued so far: never too early.
    DeviceResult<EventId> record_event(StreamId stream) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::record_event));
        if (!known(stream)) {
            return failure(DeviceErrc::invalid_resource_handle, DeviceCall::record_event);
        }
        OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::record_event));
        const EventId event = next_event_++;
        events_.emplace(event, chip_.clock.issued());
        return event;
    }
    DeviceResult<bool> query_event(EventId event) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::query_event));
        OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::query_event));
        const auto it = events_.find(event);
        if (it == events_.end()) {
            return failure(DeviceErrc::invalid_resource_handle, DeviceCall::query_event);
        }
        return it->second <= chip_.clock.completed();
    }
    DeviceResult<void> synchronize_event(EventId event) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::synchronize));
        OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::synchronize));
        const auto it = events_.find(event);
        if (it == events_.end()) {
            return failure(DeviceErrc::invalid_resource_handle, DeviceCall::synchronize);
        }
        if (it->second > chip_.clock.completed()) chip_.drain();
        return {};
    }
    DeviceResult<void> destroy_event(EventId event) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::record_event));
        if (events_.erase(event) == 1) return {};
        return failure(DeviceErrc::invalid_resource_handle, DeviceCall::record_event);
    }
    DeviceResult<void> synchronize() override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::synchronize));
        OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::synchronize));
        chip_.drain();
        return {};
    }

    bool known(StreamId stream) const { return stream == 0 || streams_.count(stream) == 1; }

  private:
    Chip& chip_;
    StreamId next_stream_ = 1;
    EventId next_event_ = 1;
    std::unordered_set<StreamId> streams_;
    std::unordered_map<EventId, u64> events_;
};

class SimGraphs final : public DeviceGraphs {
  public:
    SimGraphs(Chip& chip, SimStreams& streams, SimOps& ops)
        : chip_(chip), streams_(streams), ops_(ops) {}

    DeviceResult<void> begin_capture(StreamId stream) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::begin_capture));
        if (!streams_.known(stream)) {
            return failure(DeviceErrc::invalid_resource_handle, DeviceCall::begin_capture);
        }
        OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::begin_capture));
        chip_.capture = Capture{.stream = stream, .invalidated = false, .costs = {}, .ops = {}};
        return {};
    }

    DeviceResult<GraphId> end_capture(StreamId stream) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::end_capture));
        if (!chip_.capture || chip_.capture->stream != stream) {
            return failure(DeviceErrc::invalid_value, DeviceCall::end_capture);
        }
        Capture captured = *std::exchange(chip_.capture, std::nullopt);
        if (captured.invalidated) {
            return failure(DeviceErrc::stream_capture_invalidated, DeviceCall::end_capture);
        }
        const u64 bytes =
            graphs_.empty() ? chip_.profile.first_graph_bytes : chip_.profile.further_graph_bytes;
        OOMLAB_TRY_VOID(chip_.expect_room(DeviceCall::instantiate, bytes));
        chip_.graph_bytes += bytes;
        const GraphId graph = next_graph_++;
        graphs_.emplace(graph, Graph{.captured = std::move(captured), .bytes = bytes});
        return graph;
    }

    DeviceResult<void> launch_graph(GraphId graph, StreamId stream) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::launch_graph));
        const auto it = graphs_.find(graph);
        if (it == graphs_.end() || !streams_.known(stream)) {
            return failure(DeviceErrc::invalid_resource_handle, DeviceCall::launch_graph);
        }
        OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::launch_graph));
        ops_.replay(it->second.captured);
        return {};
    }

    DeviceResult<void> destroy_graph(GraphId graph) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::destroy_graph));
        const auto it = graphs_.find(graph);
        if (it == graphs_.end()) {
            return failure(DeviceErrc::invalid_resource_handle, DeviceCall::destroy_graph);
        }
        chip_.graph_bytes = checked_sub(chip_.graph_bytes, it->second.bytes);
        graphs_.erase(it);
        return {};
    }

  private:
    struct Graph {
        Capture captured;
        u64 bytes;
    };

    Chip& chip_;
    SimStreams& streams_;
    SimOps& ops_;
    GraphId next_graph_ = 1;
    std::unordered_map<GraphId, Graph> graphs_;
};

class SimDevice final : public Device {
  public:
    explicit SimDevice(const SimProfile& profile)
        : chip_(profile),
          memory_(chip_),
          streams_(chip_),
          ops_(chip_),
          graphs_(chip_, streams_, ops_) {}

    const DeviceProps& props() const override { return chip_.props; }
    DeviceResult<void> create_context() override { return chip_.create_context(); }
    DeviceMemory& memory() override { return memory_; }
    DeviceStreams& streams() override { return streams_; }
    DeviceGraphs& graphs() override { return graphs_; }
    DeviceOps& ops() override { return ops_; }
    double now_s() const override { return chip_.clock.now_s(); }
    void wait_until_s(double when) override { chip_.clock.wait_until_s(when); }

    DeviceResult<void> end_step() override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::synchronize));
        OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::synchronize));
        chip_.drain();
        chip_.clock.spend_s(chip_.props.step_overhead_s);
        return {};
    }

    u64 context_bytes() const override {
        return chip_.has_context ? chip_.profile.context_bytes : 0;
    }
    u64 graph_bytes() const override { return chip_.graph_bytes; }
    u64 outside_bytes() const override { return chip_.outside_bytes; }

    DeviceResult<void> grow_outside(u64 bytes) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::malloc));
        OOMLAB_TRY_VOID(chip_.expect_room(DeviceCall::malloc, bytes));
        chip_.outside_bytes += bytes;
        return {};
    }

    // A kernel that faults has been launched without complaint: the error waits for the next call.
    // What is refused at launch, or by a library, is refused here and now.
    DeviceResult<void> provoke(DeviceErrc code) override {
        OOMLAB_TRY_VOID(chip_.enter(DeviceCall::launch));
        if (is_sticky(code)) {
            chip_.poison(
                {.code = code, .call = DeviceCall::launch, .bytes = 0, .detail = "provoked"});
            return {};
        }
        if (code == DeviceErrc::memory_allocation) {
            return failure(code, DeviceCall::create_blas, 0, "CUBLAS_STATUS_ALLOC_FAILED");
        }
        return failure(code, DeviceCall::launch, 0, "provoked");
    }

  private:
    Chip chip_;
    SimMemory memory_;
    SimStreams streams_;
    SimOps ops_;
    SimGraphs graphs_;
};

}  // namespace
}  // namespace sim

SimProfile plain_sim_profile(u64 total_bytes) {
    SimProfile profile;
    profile.props.name = "plain simulated chip";
    profile.props.total_bytes = total_bytes;
    profile.props.peak_flops_16 = 300e12;
    profile.props.peak_ops_8 = 600e12;
    profile.props.peak_bytes_per_s = 2e12;
    profile.props.sm_major = 8;
    profile.context_bytes = 0;
    return profile;
}

std::unique_ptr<Device> open_sim_device(const SimProfile& profile) {
    auto chip = std::make_unique<sim::SimDevice>(profile);
    if (profile.call_faults.empty() && profile.step_faults.empty()) return chip;
    auto faulty = std::make_unique<FaultyDevice>(std::move(chip));
    for (const CallFault& fault : profile.call_faults) faulty->plant(fault);
    for (const StepFault& fault : profile.step_faults) faulty->plant(fault);
    return faulty;
}

}  // namespace oomlab
