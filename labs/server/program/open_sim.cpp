#include <fmt/format.h>

#include "kernels/sim/sim_device.hpp"
#include "labs/catalog/gpu_profile.hpp"
#include "labs/server/program/open_chip.hpp"

namespace oomlab::server {

namespace {
// Models up to this size really compute on the host.
constexpr u64 kComputeWeightsMax = 16 * kMiB;
constexpr const char* kDefaultProfile = "l4";

DeviceCall call_by_name(const std::string& name) {
    for (int i = 0; i < static_cast<int>(DeviceCall::count_); ++i) {
        if (name == call_name(static_cast<DeviceCall>(i))) return static_cast<DeviceCall>(i);
    }
    return DeviceCall::count_;
}
}  // namespace

Result<std::unique_ptr<Device>> open_chip(const Scenario& scenario, const std::string& name, const ModelShape& shape) {
    std::string wanted = name.empty() ? scenario.device.name : name;
    if (wanted == "auto" || wanted == "sim") wanted = std::string("sim:") + kDefaultProfile;
    if (wanted.rfind("sim:", 0) != 0) {
        return fail(Error::usage(fmt::format("device '{}' is not a simulated one: write sim:PROFILE, for example sim:l4", wanted)));
    }
    OOMLAB_TRY(gpu, load_gpu_profile(wanted.substr(4)));
    SimProfile p;
    p.props.name = gpu.name;
    p.props.total_bytes = gpu.total_bytes;
    p.props.memory_limit_bytes = scenario.device.memory_limit;
    p.props.sm_major = gpu.sm_major;
    p.props.sm_minor = gpu.sm_minor;
    p.props.has_bf16 = gpu.has_bf16;
    p.props.peak_flops_16 = gpu.peak_flops_16;
    p.props.peak_ops_8 = gpu.peak_ops_8;
    p.props.peak_bytes_per_s = gpu.peak_bytes_per_s;
    p.props.flops_share = gpu.flops_share;
    p.props.bandwidth_share = gpu.bandwidth_share;
    p.props.step_overhead_s = gpu.step_overhead_s;
    p.context_bytes = gpu.context_bytes;
    p.first_graph_bytes = gpu.graph_first_bytes;
    p.further_graph_bytes = gpu.graph_each_bytes;
    p.backed = weights_bytes(shape, 1) <= kComputeWeightsMax;
    for (const Tenant& t : scenario.device.tenants) {
        p.tenants.push_back({t.name, t.bytes, t.from_s, t.until_s, static_cast<double>(t.grows_per_hour)});
    }
    for (const FaultSpec& f : scenario.faults) {
        if (f.kind != "device_call") continue;
        const DeviceCall call = call_by_name(f.call);
        if (call == DeviceCall::count_) {
            return fail(Error::parse(fmt::format("{}: fault device_call: '{}' is not a call; write it as CUDA does, "
                                                 "for example cudaMalloc, cuMemCreate, cudaGraphInstantiate",
                                                 scenario.path, f.call)));
        }
        p.call_faults.push_back({call, f.nth != 0 ? f.nth : 1, f.times, f.above, DeviceErrc::memory_allocation, {}});
    }
    return open_sim_device(p);
}

std::string probe_chip() { return R"({"usable":true,"simulated":true})"; }

}  // namespace oomlab::server
