// What a chip can say when a call fails: CUDA's own numbers and names, and which of them are sticky.
//
// A sticky error (an illegal access, a device-side assert) poisons the context: every later call
// returns it again until the process ends. A failed allocation is not sticky.
#pragma once

#include <string>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab {

// Numbers from driver_types.h of CUDA 13.0 (cudaError).
enum class DeviceErrc : int {
    success = 0,
    invalid_value = 1,
    memory_allocation = 2,
    initialization_error = 3,
    cudart_unloading = 4,
    invalid_configuration = 9,
    insufficient_driver = 35,
    devices_unavailable = 46,
    no_device = 100,
    invalid_device = 101,
    invalid_kernel_image = 200,
    map_buffer_object_failed = 205,
    unmap_buffer_object_failed = 206,
    no_kernel_image_for_device = 209,
    ecc_uncorrectable = 214,
    operating_system = 304,
    invalid_resource_handle = 400,
    symbol_not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    launch_out_of_resources = 701,
    launch_timeout = 702,
    device_assert = 710,
    host_memory_already_registered = 712,
    hardware_stack_error = 714,
    illegal_instruction = 715,
    misaligned_address = 716,
    invalid_address_space = 717,
    invalid_pc = 718,
    launch_failure = 719,
    cooperative_launch_too_large = 720,
    not_permitted = 800,
    not_supported = 801,
    system_not_ready = 802,
    stream_capture_unsupported = 900,
    stream_capture_invalidated = 901,
    unknown = 999,
};

const char* errc_name(DeviceErrc code);  // "cudaErrorMemoryAllocation"
const char* errc_text(DeviceErrc code);  // "out of memory"
bool is_sticky(DeviceErrc code);

// The kinds of call that may fail; faults and sweeps are planted by kind.
enum class DeviceCall : int {
    create_context, malloc, free, mem_info, reserve, release, create, destroy, map, unmap,
    host_alloc, host_free, create_stream, destroy_stream, create_event, record_event, query_event,
    synchronize, begin_capture, end_capture, instantiate, launch_graph, destroy_graph,
    create_blas, blas_workspace, matmul, launch, copy, module_load, count_
};
const char* call_name(DeviceCall call);  // "cudaMalloc", "cuMemCreate", "cudaGraphInstantiate", ...

struct DeviceError {
    DeviceErrc code = DeviceErrc::unknown;
    DeviceCall call = DeviceCall::launch;
    u64 bytes = 0;        // what was asked, where the call has a size
    std::string detail{};   // "CUBLAS_STATUS_ALLOC_FAILED", a kernel's name; may be empty

    bool out_of_memory() const { return code == DeviceErrc::memory_allocation; }
    bool sticky() const { return is_sticky(code); }
};

template <class T>
using DeviceResult = Result<T, DeviceError>;

}  // namespace oomlab
