// oomlab-calibrate [INDEX]: measures a card and prints its profile for `--device sim:FILE`.
// Exit: 0 printed, 1 the card failed meanwhile, 2 usage, 3 no usable card.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/cuda/calibrate.hpp"
#include "kernels/cuda/open_cuda.hpp"

namespace {

// "driver":"13.0" of the probe's line.
std::string driver_of(const std::string& probe) {
    const std::string key = "\"driver\":\"";
    const std::size_t at = probe.find(key);
    if (at == std::string::npos) return "unknown";
    const std::size_t from = at + key.size();
    return probe.substr(from, probe.find('"', from) - from);
}

}  // namespace

int main(int argc, char** argv) {
    using namespace oomlab;
    char* end = nullptr;
    const long index = argc == 2 ? std::strtol(argv[1], &end, 10) : 0;
    if (argc > 2 || index < 0 || index > 1024 || (argc == 2 && (end == argv[1] || *end != '\0'))) {
        std::fputs("usage: oomlab-calibrate [INDEX OF THE CARD]\n", stderr);
        return 2;
    }
    auto device = open_cuda_device(static_cast<int>(index), 0);
    if (!device) {
        std::fprintf(stderr, "oomlab-calibrate: %s\n", device.error().message.c_str());
        return exit_code(device.error());
    }
    const auto profile = calibrate(**device);
    if (!profile) {
        const DeviceError& e = profile.error();
        std::fprintf(stderr, "oomlab-calibrate: %s: %s (%d) %s\n", call_name(e.call), errc_text(e.code),
                     static_cast<int>(e.code), e.detail.c_str());
        return 1;
    }
    std::fputs(profile_toml(*profile, driver_of(probe_cuda(static_cast<int>(index)))).c_str(), stdout);
    return 0;
}
