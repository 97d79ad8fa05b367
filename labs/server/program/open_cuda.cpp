#include <fmt/format.h>

#include <charconv>

#include "kernels/cuda/open_cuda.hpp"
#include "kernels/device/faulty_device.hpp"
#include "labs/server/program/open_chip.hpp"

namespace oomlab::server {

Result<std::unique_ptr<Device>> open_chip(const Scenario& scenario, const std::string& name, const ModelShape&) {
    const std::string wanted = name.empty() ? scenario.device.name : name;
    int index = 0;
    if (wanted.rfind("cuda:", 0) == 0) {
        const char* end = wanted.data() + wanted.size();
        const auto [rest, ec] = std::from_chars(wanted.data() + 5, end, index);
        if (ec != std::errc() || rest != end || index < 0) {
            return fail(Error::usage(fmt::format("device '{}': write cuda:N, for example cuda:0", wanted)));
        }
    } else if (wanted != "cuda" && wanted != "auto") {
        return fail(Error::usage(fmt::format("device '{}' is not a real one: write cuda:N", wanted)));
    }
    OOMLAB_TRY(device, open_cuda_device(index, scenario.device.memory_limit));
    std::unique_ptr<Device> chip = std::move(device);
    for (const FaultSpec& f : scenario.faults) {
        if (f.kind != "device_call") continue;
        auto faulty = std::make_unique<FaultyDevice>(std::move(chip));
        for (int i = 0; i < static_cast<int>(DeviceCall::count_); ++i) {
            if (f.call != call_name(static_cast<DeviceCall>(i))) continue;
            faulty->plant(CallFault{static_cast<DeviceCall>(i), f.nth != 0 ? f.nth : 1, f.times, f.above,
                                    DeviceErrc::memory_allocation, {}});
        }
        chip = std::move(faulty);
    }
    return chip;
}

std::string probe_chip() { return probe_cuda(0); }

}  // namespace oomlab::server
