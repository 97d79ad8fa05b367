#include "kernels/device/faulty_device.hpp"

#include <numeric>
#include <optional>
#include <utility>

namespace oomlab {
namespace {

constexpr std::size_t kCalls = static_cast<std::size_t>(DeviceCall::count_);

// What was planted, and what has been called so far.
class Plan {
  public:
    // The error that this call meets, if any. Counts the call.
    std::optional<DeviceError> meet(DeviceCall call, u64 bytes) {
        ++counts_[static_cast<std::size_t>(call)];
        if (sticky_) return sticky_;
        if (faults_.empty()) return std::nullopt;
        return match(call, bytes);
    }

    void plant(CallFault fault) {
        OOMLAB_CHECK(fault.nth > 0);
        faults_.push_back({std::move(fault), 0});
    }
    void plant(StepFault fault) {
        OOMLAB_CHECK(fault.step > 0);
        step_faults_.push_back(fault);
    }
    std::optional<DeviceErrc> next_step() {
        ++step_;
        for (const StepFault& fault : step_faults_) {
            if (fault.step != step_) continue;
            ++fired_;
            return fault.code;
        }
        return std::nullopt;
    }
    void clear() {
        faults_.clear();
        step_faults_.clear();
    }
    void reset_counts() { counts_.fill(0); }
    u64 count(DeviceCall call) const { return counts_[static_cast<std::size_t>(call)]; }
    u64 total() const { return std::accumulate(counts_.begin(), counts_.end(), u64{0}); }
    u64 fired() const { return fired_; }

  private:
    struct Planted {
        CallFault fault;
        u64 seen;
    };

    std::optional<DeviceError> match(DeviceCall call, u64 bytes) {
        std::optional<DeviceError> error;
        for (Planted& planted : faults_) {
            const CallFault& fault = planted.fault;
            if (fault.call != CallFault::kAnyCall && fault.call != call) continue;
            if (fault.above_bytes != 0 && bytes <= fault.above_bytes) continue;
            ++planted.seen;
            const bool begun = planted.seen >= fault.nth;
            const bool over = fault.times != 0 && planted.seen - fault.nth >= fault.times;
            if (!begun || over || error) continue;
            error = DeviceError{
                .code = fault.code, .call = call, .bytes = bytes, .detail = fault.detail};
        }
        if (!error) return error;
        ++fired_;
        if (error->sticky()) sticky_ = error;
        return error;
    }

    std::array<u64, kCalls> counts_{};
    std::vector<Planted> faults_;
    std::vector<StepFault> step_faults_;
    std::optional<DeviceError> sticky_;
    u64 step_ = 0;
    u64 fired_ = 0;
};

// One guarded call: the planted error, or what the chip says.
template <class Forward>
auto guard(Plan& plan, DeviceCall call, u64 bytes, Forward forward) -> decltype(forward()) {
    if (auto error = plan.meet(call, bytes)) return fail(*std::move(error));
    return forward();
}

class FaultyMemory final : public DeviceMemory {
  public:
    FaultyMemory(Plan& plan, DeviceMemory& inner) : plan_(plan), inner_(inner) {}

    DeviceResult<DeviceAddress> malloc(u64 bytes) override {
        return guard(plan_, DeviceCall::malloc, bytes, [&] { return inner_.malloc(bytes); });
    }
    DeviceResult<void> free(DeviceAddress address) override {
        return guard(plan_, DeviceCall::free, 0, [&] { return inner_.free(address); });
    }
    DeviceResult<MemInfo> mem_info() override {
        return guard(plan_, DeviceCall::mem_info, 0, [&] { return inner_.mem_info(); });
    }
    DeviceResult<DeviceAddress> reserve(u64 bytes) override {
        return guard(plan_, DeviceCall::reserve, bytes, [&] { return inner_.reserve(bytes); });
    }
    DeviceResult<void> release(DeviceAddress address, u64 bytes) override {
        return guard(plan_, DeviceCall::release, bytes,
                     [&] { return inner_.release(address, bytes); });
    }
    DeviceResult<PhysicalHandle> create(u64 bytes) override {
        return guard(plan_, DeviceCall::create, bytes, [&] { return inner_.create(bytes); });
    }
    DeviceResult<void> destroy(PhysicalHandle handle) override {
        return guard(plan_, DeviceCall::destroy, 0, [&] { return inner_.destroy(handle); });
    }
    DeviceResult<void> map(DeviceAddress address, u64 bytes, PhysicalHandle handle) override {
        return guard(plan_, DeviceCall::map, bytes,
                     [&] { return inner_.map(address, bytes, handle); });
    }
    DeviceResult<void> unmap(DeviceAddress address, u64 bytes) override {
        return guard(plan_, DeviceCall::unmap, bytes, [&] { return inner_.unmap(address, bytes); });
    }
    DeviceResult<void*> host_alloc(u64 bytes) override {
        return guard(plan_, DeviceCall::host_alloc, bytes,
                     [&] { return inner_.host_alloc(bytes); });
    }
    DeviceResult<void> host_free(void* pointer) override {
        return guard(plan_, DeviceCall::host_free, 0, [&] { return inner_.host_free(pointer); });
    }
    DeviceResult<void> copy_to_device(DeviceAddress to, const void* from, u64 bytes) override {
        return guard(plan_, DeviceCall::copy, bytes,
                     [&] { return inner_.copy_to_device(to, from, bytes); });
    }
    DeviceResult<void> copy_to_host(void* to, DeviceAddress from, u64 bytes) override {
        return guard(plan_, DeviceCall::copy, bytes,
                     [&] { return inner_.copy_to_host(to, from, bytes); });
    }

  private:
    Plan& plan_;
    DeviceMemory& inner_;
};

class FaultyStreams final : public DeviceStreams {
  public:
    FaultyStreams(Plan& plan, DeviceStreams& inner) : plan_(plan), inner_(inner) {}

    DeviceResult<StreamId> create_stream() override {
        return guard(plan_, DeviceCall::create_stream, 0, [&] { return inner_.create_stream(); });
    }
    DeviceResult<void> destroy_stream(StreamId stream) override {
        return guard(plan_, DeviceCall::destroy_stream, 0,
                     [&] { return inner_.destroy_stream(stream); });
    }
    DeviceResult<EventId> record_event(StreamId stream) override {
        return guard(plan_, DeviceCall::record_event, 0,
                     [&] { return inner_.record_event(stream); });
    }
    DeviceResult<bool> query_event(EventId event) override {
        return guard(plan_, DeviceCall::query_event, 0, [&] { return inner_.query_event(event); });
    }
    DeviceResult<void> synchronize_event(EventId event) override {
        return guard(plan_, DeviceCall::synchronize, 0,
                     [&] { return inner_.synchronize_event(event); });
    }
    DeviceResult<void> destroy_event(EventId event) override { return inner_.destroy_event(event); }
    DeviceResult<void> synchronize() override {
        return guard(plan_, DeviceCall::synchronize, 0, [&] { return inner_.synchronize(); });
    }

  private:
    Plan& plan_;
    DeviceStreams& inner_;
};

class FaultyGraphs final : public DeviceGraphs {
  public:
    FaultyGraphs(Plan& plan, DeviceGraphs& inner) : plan_(plan), inner_(inner) {}

    DeviceResult<void> begin_capture(StreamId stream) override {
        return guard(plan_, DeviceCall::begin_capture, 0,
                     [&] { return inner_.begin_capture(stream); });
    }
    // Two calls in one: the capture ends whatever happens, then the graph is instantiated.
    DeviceResult<GraphId> end_capture(StreamId stream) override {
        auto ended = plan_.meet(DeviceCall::end_capture, 0);
        auto instantiated = plan_.meet(DeviceCall::instantiate, 0);
        auto graph = inner_.end_capture(stream);
        auto& error = ended ? ended : instantiated;
        if (!error) return graph;
        // The graph that the chip made all the same goes back; its own error no longer matters.
        if (graph) (void)inner_.destroy_graph(*graph);
        return fail(*std::move(error));
    }
    DeviceResult<void> launch_graph(GraphId graph, StreamId stream) override {
        return guard(plan_, DeviceCall::launch_graph, 0,
                     [&] { return inner_.launch_graph(graph, stream); });
    }
    DeviceResult<void> destroy_graph(GraphId graph) override {
        return guard(plan_, DeviceCall::destroy_graph, 0,
                     [&] { return inner_.destroy_graph(graph); });
    }

  private:
    Plan& plan_;
    DeviceGraphs& inner_;
};

class FaultyOps final : public DeviceOps {
  public:
    FaultyOps(Plan& plan, DeviceOps& inner) : plan_(plan), inner_(inner) {}

    DeviceResult<void> matmul(const MatmulArgs& a) override {
        return guard(plan_, DeviceCall::matmul, 0, [&] { return inner_.matmul(a); });
    }
    DeviceResult<void> rms_norm(const RmsNormArgs& a) override {
        return launch([&] { return inner_.rms_norm(a); });
    }
    DeviceResult<void> rope(const RopeArgs& a) override {
        return launch([&] { return inner_.rope(a); });
    }
    DeviceResult<void> kv_append(const KvAppendArgs& a) override {
        return launch([&] { return inner_.kv_append(a); });
    }
    DeviceResult<void> attention(const AttentionArgs& a) override {
        return launch([&] { return inner_.attention(a); });
    }
    DeviceResult<void> gated_act(const GatedActArgs& a) override {
        return launch([&] { return inner_.gated_act(a); });
    }
    DeviceResult<void> embed(const EmbedArgs& a) override {
        return launch([&] { return inner_.embed(a); });
    }
    DeviceResult<void> gather(const GatherArgs& a) override {
        return launch([&] { return inner_.gather(a); });
    }
    DeviceResult<void> sample(const SampleArgs& a) override {
        return launch([&] { return inner_.sample(a); });
    }
    DeviceResult<void> fill(const FillArgs& a) override {
        return launch([&] { return inner_.fill(a); });
    }
    DeviceResult<u64> checksum(u64 address, u64 bytes) override {
        return launch([&] { return inner_.checksum(address, bytes); });
    }
    DeviceResult<void> account(const OpCost& c) override {
        return launch([&] { return inner_.account(c); });
    }

  private:
    template <class Forward>
    auto launch(Forward forward) -> decltype(forward()) {
        return guard(plan_, DeviceCall::launch, 0, forward);
    }

    Plan& plan_;
    DeviceOps& inner_;
};

}  // namespace

struct FaultyDevice::Impl {
    explicit Impl(Device& chip)
        : inner(chip),
          memory(plan, chip.memory()),
          streams(plan, chip.streams()),
          graphs(plan, chip.graphs()),
          ops(plan, chip.ops()) {}

    std::unique_ptr<Device> owned;
    Device& inner;
    Plan plan;
    FaultyMemory memory;
    FaultyStreams streams;
    FaultyGraphs graphs;
    FaultyOps ops;
};

FaultyDevice::FaultyDevice(std::unique_ptr<Device> inner) : impl_(std::make_unique<Impl>(*inner)) {
    impl_->owned = std::move(inner);
}
FaultyDevice::FaultyDevice(Device& inner) : impl_(std::make_unique<Impl>(inner)) {}
FaultyDevice::~FaultyDevice() = default;

void FaultyDevice::plant(CallFault fault) {
    impl_->plan.plant(std::move(fault));
}
void FaultyDevice::plant(StepFault fault) {
    impl_->plan.plant(fault);
}
void FaultyDevice::clear_faults() {
    impl_->plan.clear();
}
u64 FaultyDevice::calls(DeviceCall call) const {
    return impl_->plan.count(call);
}
u64 FaultyDevice::calls_total() const {
    return impl_->plan.total();
}
u64 FaultyDevice::faults_fired() const {
    return impl_->plan.fired();
}
void FaultyDevice::reset_counts() {
    impl_->plan.reset_counts();
}

const DeviceProps& FaultyDevice::props() const {
    return impl_->inner.props();
}
DeviceResult<void> FaultyDevice::create_context() {
    return guard(impl_->plan, DeviceCall::create_context, 0,
                 [&] { return impl_->inner.create_context(); });
}
DeviceMemory& FaultyDevice::memory() {
    return impl_->memory;
}
DeviceStreams& FaultyDevice::streams() {
    return impl_->streams;
}
DeviceGraphs& FaultyDevice::graphs() {
    return impl_->graphs;
}
DeviceOps& FaultyDevice::ops() {
    return impl_->ops;
}
double FaultyDevice::now_s() const {
    return impl_->inner.now_s();
}
void FaultyDevice::wait_until_s(double when) {
    impl_->inner.wait_until_s(when);
}

DeviceResult<void> FaultyDevice::end_step() {
    if (const auto code = impl_->plan.next_step()) {
        OOMLAB_TRY_VOID(impl_->inner.provoke(*code));
    }
    return guard(impl_->plan, DeviceCall::synchronize, 0, [&] { return impl_->inner.end_step(); });
}

u64 FaultyDevice::context_bytes() const {
    return impl_->inner.context_bytes();
}
u64 FaultyDevice::graph_bytes() const {
    return impl_->inner.graph_bytes();
}
DeviceResult<void> FaultyDevice::grow_outside(u64 bytes) {
    return guard(impl_->plan, DeviceCall::malloc, bytes,
                 [&] { return impl_->inner.grow_outside(bytes); });
}
u64 FaultyDevice::outside_bytes() const {
    return impl_->inner.outside_bytes();
}
DeviceResult<void> FaultyDevice::provoke(DeviceErrc code) {
    return impl_->inner.provoke(code);
}

}  // namespace oomlab
