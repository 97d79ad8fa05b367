// Faults on purpose, for lab A's sixth type: what people report as "out of memory" and is not.
#undef NDEBUG
#include <cassert>

#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

// Far outside any allocation: cudaErrorIllegalAddress at the next synchronisation, and for ever.
__global__ void illegal_access_kernel(u64 address) { *reinterpret_cast<volatile int*>(address) = 1; }

// The token id that is one past the vocabulary: cudaErrorAssert.
__global__ void assert_kernel(int token, int vocab) { assert(token < vocab); }

__global__ void nothing_kernel() {}

}  // namespace

int provoke(DeviceErrc code, void* stream) {
    switch (code) {
        case DeviceErrc::illegal_address:
            return launch(illegal_access_kernel, 1, 1, stream, u64{0x100});
        case DeviceErrc::device_assert: return launch(assert_kernel, 1, 1, stream, 128256, 128256);
        case DeviceErrc::invalid_configuration:   // at most 1024 threads make a thread block
            return launch(nothing_kernel, 1, 2048, stream);
        default: return kNotSupported;
    }
}

void list_provoke(KernelList& list) {
    list.push_back({"illegal_access_kernel", reinterpret_cast<const void*>(&illegal_access_kernel)});
    list.push_back({"assert_kernel", reinterpret_cast<const void*>(&assert_kernel)});
    list.push_back({"nothing_kernel", reinterpret_cast<const void*>(&nothing_kernel)});
}

}  // namespace oomlab::kernel
