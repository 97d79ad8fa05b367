// The interfaces of the real chip over one session.
#pragma once

#include "kernels/cuda/detail/session.hpp"

namespace oomlab::cuda {

class CudaMemory final : public DeviceMemory {
  public:
    explicit CudaMemory(Session& session) : s_(session) {}
    DeviceResult<DeviceAddress> malloc(u64 bytes) override;
    DeviceResult<void> free(DeviceAddress address) override;
    DeviceResult<MemInfo> mem_info() override;
    DeviceResult<DeviceAddress> reserve(u64 bytes) override;
    DeviceResult<void> release(DeviceAddress address, u64 bytes) override;
    DeviceResult<PhysicalHandle> create(u64 bytes) override;
    DeviceResult<void> destroy(PhysicalHandle handle) override;
    DeviceResult<void> map(DeviceAddress address, u64 bytes, PhysicalHandle handle) override;
    DeviceResult<void> unmap(DeviceAddress address, u64 bytes) override;
    DeviceResult<void*> host_alloc(u64 bytes) override;
    DeviceResult<void> host_free(void* pointer) override;
    DeviceResult<void> copy_to_device(DeviceAddress to, const void* from, u64 bytes) override;
    DeviceResult<void> copy_to_host(void* to, DeviceAddress from, u64 bytes) override;

  private:
    DeviceResult<void> expect_grain(DeviceCall call, u64 bytes);
    void forget_if_gone(PhysicalHandle handle);
    Session& s_;
};

class CudaStreams final : public DeviceStreams {
  public:
    explicit CudaStreams(Session& session) : s_(session) {}
    DeviceResult<StreamId> create_stream() override;
    DeviceResult<void> destroy_stream(StreamId stream) override;
    DeviceResult<EventId> record_event(StreamId stream) override;
    DeviceResult<bool> query_event(EventId event) override;
    DeviceResult<void> synchronize_event(EventId event) override;
    DeviceResult<void> destroy_event(EventId event) override;
    DeviceResult<void> synchronize() override;

  private:
    Session& s_;
};

class CudaGraphs final : public DeviceGraphs {
  public:
    explicit CudaGraphs(Session& session) : s_(session) {}
    DeviceResult<void> begin_capture(StreamId stream) override;
    DeviceResult<GraphId> end_capture(StreamId stream) override;
    DeviceResult<void> launch_graph(GraphId graph, StreamId stream) override;
    DeviceResult<void> destroy_graph(GraphId graph) override;

  private:
    DeviceResult<GraphId> instantiate(Handle graph);
    Session& s_;
};

class CudaOps final : public DeviceOps {
  public:
    explicit CudaOps(Session& session) : s_(session) {}
    DeviceResult<void> matmul(const MatmulArgs& a) override;
    DeviceResult<void> rms_norm(const RmsNormArgs& a) override;
    DeviceResult<void> rope(const RopeArgs& a) override;
    DeviceResult<void> kv_append(const KvAppendArgs& a) override;
    DeviceResult<void> attention(const AttentionArgs& a) override;
    DeviceResult<void> gated_act(const GatedActArgs& a) override;
    DeviceResult<void> embed(const EmbedArgs& a) override;
    DeviceResult<void> gather(const GatherArgs& a) override;
    DeviceResult<void> sample(const SampleArgs& a) override;
    DeviceResult<void> fill(const FillArgs& a) override;
    DeviceResult<u64> checksum(u64 address, u64 bytes) override;
    // Nothing to do: on a real chip work is launched, not accounted.
    DeviceResult<void> account(const OpCost&) override { return s_.enter(); }

  private:
    // Starts one kernel unless the op is cost only or has nothing to do.
    template <class Launch>
    DeviceResult<void> start(const char* name, bool wanted, Launch&& launch);
    Session& s_;
};

}  // namespace oomlab::cuda
