#include <cstdio>
#include <cstring>

#include "kernels/cuda/open_cuda.hpp"
#include "tests/gpu/gpu_check.hpp"

namespace oomlab::gpu {
namespace {

struct Fault {
    const char* name;
    DeviceErrc code;
    bool sticky;
};
constexpr Fault kFaults[] = {{"illegal_access", DeviceErrc::illegal_address, true},
                             {"device_assert", DeviceErrc::device_assert, true},
                             {"bad_launch", DeviceErrc::invalid_configuration, false},
                             {"library_alloc_failed", DeviceErrc::memory_allocation, false}};

int check(const Fault& fault) {
    auto device = open_cuda_device(0, 0);
    if (!device) {
        std::printf("%s: %s\n", fault.name, device.error().message.c_str());
        return 1;
    }
    const auto said = (*device)->provoke(fault.code);
    if (said) {
        std::printf("%s: no fault came\n", fault.name);
        return 1;
    }
    const auto later = (*device)->memory().malloc(kMiB);
    const DeviceError& e = said.error();
    std::printf("%-22s %4d %-28s %-22s %s; a later malloc %s\n", fault.name,
                static_cast<int>(e.code), errc_name(e.code), call_name(e.call), e.detail.c_str(),
                later ? "works" : errc_name(later.error().code));
    const bool right = e.code == fault.code && later.has_value() != fault.sticky &&
                       (later.has_value() || later.error().code == fault.code);
    return right ? 0 : 1;
}

}  // namespace

int provoke(const char* name) {
    for (const Fault& fault : kFaults) {
        if (std::strcmp(fault.name, name) == 0) return check(fault);
    }
    std::fprintf(stderr, "unknown fault %s\n", name);
    return 2;
}

}  // namespace oomlab::gpu
