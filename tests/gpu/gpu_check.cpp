// oomlab-gpu-check probe | rates | fault NAME: what tests/gpu/check.sh runs on a card.
// Exit: 0 fine, 1 not, 2 usage, 77 no usable card.
#include "tests/gpu/gpu_check.hpp"

#include <cstdio>
#include <string>

#include "kernels/cuda/open_cuda.hpp"

int main(int argc, char** argv) {
    const std::string command = argc > 1 ? argv[1] : "";
    const std::string card = oomlab::probe_cuda(0);
    if (command == "probe") {
        std::puts(card.c_str());
        return card.find("\"usable\":true") != std::string::npos ? 0 : 77;
    }
    if (command != "rates" && !(command == "fault" && argc == 3)) {
        std::fputs("usage: oomlab-gpu-check probe | rates | fault "
                   "illegal_access|device_assert|bad_launch|library_alloc_failed\n", stderr);
        return 2;
    }
    if (card.find("\"usable\":true") == std::string::npos) {
        std::printf("skipped: no usable card: %s\n", card.c_str());
        return 77;
    }
    return command == "rates" ? oomlab::gpu::print_rates() : oomlab::gpu::provoke(argv[2]);
}
