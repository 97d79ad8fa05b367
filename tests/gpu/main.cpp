// The main of the GPU tests. Without a usable card it exits with 77, which CTest shows as "Skipped",
// and says why; listing the cases needs no card.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "kernels/cuda/open_cuda.hpp"

int main(int argc, char** argv) {
    doctest::Context context(argc, argv);
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]).find("list-test") != std::string::npos) return context.run();
    }
    const std::string card = oomlab::probe_cuda(0);
    if (card.find("\"usable\":true") == std::string::npos) {
        std::printf("skipped: no usable card: %s\n", card.c_str());
        return 77;
    }
    std::printf("card: %s\n", card.c_str());
    return context.run();
}
