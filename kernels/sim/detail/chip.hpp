// The state that the four interfaces of the simulated chip share.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "kernels/sim/detail/address_space.hpp"
#include "kernels/sim/detail/roofline.hpp"
#include "kernels/sim/sim_device.hpp"

namespace oomlab::sim {

using AnyOp = std::variant<MatmulArgs, RmsNormArgs, RopeArgs, KvAppendArgs, AttentionArgs,
                           GatedActArgs, EmbedArgs, GatherArgs, SampleArgs, FillArgs>;

// What is being captured: costs always, the ops themselves only where they compute.
struct Capture {
    StreamId stream = 0;
    bool invalidated = false;
    std::vector<OpCost> costs;
    std::vector<AnyOp> ops;
};

class Chip {
  public:
    explicit Chip(const SimProfile& profile);

    const SimProfile profile;
    const DeviceProps props;
    AddressSpace addresses;
    Roofline clock;
    std::optional<Capture> capture;

    bool has_context = false;
    u64 graph_bytes = 0;
    u64 outside_bytes = 0;

    // Every call begins here: the sticky error if there is one, and a context, which the first
    // call that needs one makes, as the CUDA runtime does.
    DeviceResult<void> enter(DeviceCall call);
    DeviceResult<void> create_context();
    // Whether `bytes` more fit on the device, and under this process' limit.
    DeviceResult<void> expect_room(DeviceCall call, u64 bytes);
    MemInfo mem_info() const;

    void poison(DeviceError error);
    bool poisoned() const { return sticky_.has_value(); }
    // Not permitted while a stream is captured; asking invalidates the capture.
    DeviceResult<void> outside_capture(DeviceCall call);
    void drain() { clock.drain(); }

  private:
    u64 own_bytes() const;
    u64 tenants_bytes() const;

    std::optional<DeviceError> sticky_;
};

inline Failure<DeviceError> failure(DeviceErrc code, DeviceCall call, u64 bytes = 0,
                                    std::string detail = {}) {
    return fail(
        DeviceError{.code = code, .call = call, .bytes = bytes, .detail = std::move(detail)});
}
inline DeviceResult<void> outcome(DeviceErrc code, DeviceCall call, u64 bytes = 0) {
    if (code == DeviceErrc::success) return {};
    return failure(code, call, bytes);
}

class SimMemory final : public DeviceMemory {
  public:
    explicit SimMemory(Chip& chip) : chip_(chip) {}
    ~SimMemory() override;
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
    DeviceResult<void> enter_copy(DeviceAddress address, u64 bytes);

    Chip& chip_;
    std::map<void*, HostRange> pinned_;
};

class SimOps final : public DeviceOps {
  public:
    explicit SimOps(Chip& chip) : chip_(chip) {}
    DeviceResult<void> matmul(const MatmulArgs& a) override { return issue(a, DeviceCall::matmul); }
    DeviceResult<void> rms_norm(const RmsNormArgs& a) override { return issue(a); }
    DeviceResult<void> rope(const RopeArgs& a) override { return issue(a); }
    DeviceResult<void> kv_append(const KvAppendArgs& a) override { return issue(a); }
    DeviceResult<void> attention(const AttentionArgs& a) override { return issue(a); }
    DeviceResult<void> gated_act(const GatedActArgs& a) override { return issue(a); }
    DeviceResult<void> embed(const EmbedArgs& a) override { return issue(a); }
    DeviceResult<void> gather(const GatherArgs& a) override { return issue(a); }
    DeviceResult<void> sample(const SampleArgs& a) override { return issue(a); }
    DeviceResult<void> fill(const FillArgs& a) override { return issue(a); }
    DeviceResult<u64> checksum(u64 address, u64 bytes) override;
    DeviceResult<void> account(const OpCost& cost) override;

    // What a captured graph held, once more.
    void replay(const Capture& graph);

  private:
    template <class Args>
    DeviceResult<void> issue(const Args& args, DeviceCall call = DeviceCall::launch);
    // Computes on the host. An address that is not memory poisons the chip, as it would a real one.
    template <class Args>
    void compute(const Args& args);

    Chip& chip_;
};

}  // namespace oomlab::sim
