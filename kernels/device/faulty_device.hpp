// A wrapper that makes calls of any chip fail on purpose, and counts them.
//
// Faults are planted by the kind of call (cudaMalloc, cuMemCreate, ...), so that the code under
// test runs unchanged and meets the very error values a driver would hand it. Without faults the
// wrapper is transparent: the contract suite runs on it too. Not thread safe, as every Device.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/device.hpp"

namespace oomlab {

// Calls are counted per fault, from 1, and only those that match: the kind, and more than
// `above_bytes` asked. The `nth` of them fails, and those after it until `times` have failed.
struct CallFault {
    static constexpr DeviceCall kAnyCall = DeviceCall::count_;
    DeviceCall call = DeviceCall::malloc;  // kAnyCall: whatever its kind
    u64 nth = 1;
    u64 times = 1;        // 0: for ever
    u64 above_bytes = 0;  // 0: of any size, also calls that have none
    DeviceErrc code = DeviceErrc::memory_allocation;
    std::string detail{};
};

// At the end of step `step` (from 1) the chip itself is made to fault, see Device::provoke.
struct StepFault {
    u64 step = 1;
    DeviceErrc code = DeviceErrc::illegal_address;
};

class FaultyDevice final : public Device {
  public:
    // Owns the chip.
    explicit FaultyDevice(std::unique_ptr<Device> inner);
    // Borrows it: the chip must outlive this.
    explicit FaultyDevice(Device& inner);
    ~FaultyDevice() override;

    void plant(CallFault fault);
    void plant(StepFault fault);
    // Planted faults are forgotten; a sticky error that fired stays, as on a chip.
    void clear_faults();

    // How many calls of this kind were made (failed ones included) since the last reset.
    u64 calls(DeviceCall call) const;
    u64 calls_total() const;
    u64 faults_fired() const;
    void reset_counts();

    const DeviceProps& props() const override;
    DeviceResult<void> create_context() override;
    DeviceMemory& memory() override;
    DeviceStreams& streams() override;
    DeviceGraphs& graphs() override;
    DeviceOps& ops() override;
    double now_s() const override;
    void wait_until_s(double when) override;
    DeviceResult<void> end_step() override;
    u64 context_bytes() const override;
    u64 graph_bytes() const override;
    DeviceResult<void> grow_outside(u64 bytes) override;
    u64 outside_bytes() const override;
    DeviceResult<void> provoke(DeviceErrc code) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace oomlab
