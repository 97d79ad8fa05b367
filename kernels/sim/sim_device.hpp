// The simulated chip: a GPU's memory, clock and errors, without a GPU.
//
// It promises exact bytes: what the caller asks for is taken and given back in the driver's grain,
// and a call that would not fit fails with CUDA's own number. It promises a repeatable clock: a
// roofline over the ops of a step, nothing measured. It does not promise contention, caches or
// launch latency, and computes only when `backed`. Everything it reports is marked simulated.
//
// It opens no file and reads no clock. Not thread safe: one thread drives a device.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/device.hpp"
#include "kernels/device/faulty_device.hpp"

namespace oomlab {

// Another process on the same card. It holds `bytes` from `from_s` until `until_s` and grows
// meanwhile; it never takes memory that this process already has.
struct SimTenant {
    std::string name{};
    u64 bytes = 0;
    double from_s = 0;
    double until_s = std::numeric_limits<double>::infinity();
    double grows_bytes_per_hour = 0;
};

struct SimProfile {
    // name, total, granularity, peaks and shares; `simulated` and `computes` are set on opening.
    // memory_limit_bytes caps this process, as MPS' limit does: mem_info() then shows it as total.
    DeviceProps props;

    // The context with the libraries' handles: 0.3 GiB on Turing, 0.35 to 0.45 on Ampere and Ada,
    // 0.5 to 0.6 on Hopper and Blackwell (total minus free at the start of a fresh process).
    u64 context_bytes = 512 * kMiB;

    // Memory of captured graphs, outside any allocator: the first one brings the driver's pools
    // (100 to 260 MiB were seen with vLLM 0.19), each further one 4 to 12 MiB.
    u64 first_graph_bytes = 128 * kMiB;
    u64 further_graph_bytes = 8 * kMiB;

    // Copies between host and device, and the time they take besides the roofline (PCIe 4 x16).
    double host_bytes_per_s = 25e9;

    // Device memory really exists on the host, and ops really compute. For small chips only:
    // what a program touches is what the host pays.
    bool backed = false;

    std::vector<SimTenant> tenants;
    std::vector<CallFault> call_faults;
    std::vector<StepFault> step_faults;
};

// A chip of 80 GiB without context, tenants or faults: the plainest one, for tests and examples.
SimProfile plain_sim_profile(u64 total_bytes = 80 * kGiB);

// REQUIRES: total_bytes > 0, a granularity that is a power of two.
// Owns nothing outside itself; the caller owns the device. Planted faults come as a FaultyDevice
// around the chip.
std::unique_ptr<Device> open_sim_device(const SimProfile& profile);

}  // namespace oomlab
