#include <fmt/format.h>

#include "labs/server/memory/alloc_failure.hpp"

namespace oomlab {
namespace {

bool is_driver_call(DeviceCall call) {
    switch (call) {
        case DeviceCall::reserve:
        case DeviceCall::release:
        case DeviceCall::create:
        case DeviceCall::destroy:
        case DeviceCall::map:
        case DeviceCall::unmap:
            return true;
        default:
            return false;
    }
}

// What a failed call of the runtime or the driver becomes: no figures, and not an OutOfMemoryError.
std::string error_message(const DeviceError& error) {
    if (is_driver_call(error.call)) {
        return fmt::format("CUDA driver error: {}", errc_text(error.code));
    }
    return fmt::format(
        "CUDA error: {}\n"
        "Search for `{}' in "
        "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more "
        "information.\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        errc_text(error.code), errc_name(error.code));
}

}  // namespace

std::string oom_message(const AllocFailure& f, int device_index) {
    if (f.kind == AllocFailure::Kind::absurd_size) {
        return "CUDA out of memory. Tried to allocate more than 1EB memory.";
    }
    if (f.kind == AllocFailure::Kind::device_error) return error_message(f.device);
    std::string text = fmt::format(
        "CUDA out of memory. Tried to allocate {}. GPU {} has a total capacity of {} of which {} "
        "is "
        "free. ",
        format_size(f.segment_bytes), device_index, format_size(f.device_total_bytes),
        format_size(f.device_free_bytes));
    if (f.process_bytes != 0) {
        text += fmt::format("Including non-PyTorch memory, this process has {} memory in use. ",
                            format_size(f.process_bytes));
    }
    if (f.allowed_bytes != 0) text += fmt::format("{} allowed; ", format_size(f.allowed_bytes));
    text += fmt::format("Of the allocated memory {} is allocated by PyTorch, ",
                        format_size(f.allocated_bytes + f.private_pool_free_bytes));
    if (f.private_pool_free_bytes != 0) {
        text += fmt::format("with {} allocated in private pools (e.g., CUDA Graphs), ",
                            format_size(f.private_pool_free_bytes));
    }
    const u64 unallocated =
        checked_sub(f.reserved_bytes, f.allocated_bytes + f.private_pool_free_bytes);
    text += fmt::format(
        "and {} is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
        "large "
        "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  "
        "(https://docs.pytorch.org/docs/stable/notes/"
        "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)",
        format_size(unallocated));
    return text;
}

}  // namespace oomlab
