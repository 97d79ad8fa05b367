#include "kernels/device/device_error.hpp"

#include <array>

namespace oomlab {
namespace {

struct ErrcRow {
    DeviceErrc code;
    const char* name;
    const char* text;
    bool sticky;
};

// Names and texts as cudaGetErrorName and cudaGetErrorString of CUDA 13.0 print them. Sticky are
// those of which driver_types.h says that the process is left in an inconsistent state, and beside
// them the assert and the ECC error, after which the context accepts no work either.
constexpr ErrcRow kRows[] = {
    {DeviceErrc::success, "cudaSuccess", "no error", false},
    {DeviceErrc::invalid_value, "cudaErrorInvalidValue", "invalid argument", false},
    {DeviceErrc::memory_allocation, "cudaErrorMemoryAllocation", "out of memory", false},
    {DeviceErrc::initialization_error, "cudaErrorInitializationError", "initialization error",
     false},
    {DeviceErrc::cudart_unloading, "cudaErrorCudartUnloading", "driver shutting down", false},
    {DeviceErrc::invalid_configuration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument", false},
    {DeviceErrc::insufficient_driver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version", false},
    {DeviceErrc::devices_unavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable", false},
    {DeviceErrc::no_device, "cudaErrorNoDevice", "no CUDA-capable device is detected", false},
    {DeviceErrc::invalid_device, "cudaErrorInvalidDevice", "invalid device ordinal", false},
    {DeviceErrc::invalid_kernel_image, "cudaErrorInvalidKernelImage",
     "device kernel image is invalid", false},
    {DeviceErrc::map_buffer_object_failed, "cudaErrorMapBufferObjectFailed",
     "mapping of buffer object failed", false},
    {DeviceErrc::unmap_buffer_object_failed, "cudaErrorUnmapBufferObjectFailed",
     "unmapping of buffer object failed", false},
    {DeviceErrc::no_kernel_image_for_device, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device", false},
    {DeviceErrc::ecc_uncorrectable, "cudaErrorECCUncorrectable",
     "uncorrectable ECC error encountered", true},
    {DeviceErrc::operating_system, "cudaErrorOperatingSystem",
     "OS call failed or operation not supported on this OS", false},
    {DeviceErrc::invalid_resource_handle, "cudaErrorInvalidResourceHandle",
     "invalid resource handle", false},
    {DeviceErrc::symbol_not_found, "cudaErrorSymbolNotFound", "named symbol not found", false},
    {DeviceErrc::not_ready, "cudaErrorNotReady", "device not ready", false},
    {DeviceErrc::illegal_address, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered", true},
    {DeviceErrc::launch_out_of_resources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch", false},
    {DeviceErrc::launch_timeout, "cudaErrorLaunchTimeout",
     "the launch timed out and was terminated", true},
    {DeviceErrc::device_assert, "cudaErrorAssert", "device-side assert triggered", true},
    {DeviceErrc::host_memory_already_registered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped", false},
    {DeviceErrc::hardware_stack_error, "cudaErrorHardwareStackError", "hardware stack error", true},
    {DeviceErrc::illegal_instruction, "cudaErrorIllegalInstruction",
     "an illegal instruction was encountered", true},
    {DeviceErrc::misaligned_address, "cudaErrorMisalignedAddress", "misaligned address", true},
    {DeviceErrc::invalid_address_space, "cudaErrorInvalidAddressSpace",
     "operation not supported on global/shared address space", true},
    {DeviceErrc::invalid_pc, "cudaErrorInvalidPc", "invalid program counter", true},
    {DeviceErrc::launch_failure, "cudaErrorLaunchFailure", "unspecified launch failure", true},
    {DeviceErrc::cooperative_launch_too_large, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch", false},
    {DeviceErrc::not_permitted, "cudaErrorNotPermitted", "operation not permitted", false},
    {DeviceErrc::not_supported, "cudaErrorNotSupported", "operation not supported", false},
    {DeviceErrc::system_not_ready, "cudaErrorSystemNotReady", "system not yet initialized", false},
    {DeviceErrc::stream_capture_unsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing", false},
    {DeviceErrc::stream_capture_invalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture", false},
    {DeviceErrc::unknown, "cudaErrorUnknown", "unknown error", false},
};

const ErrcRow* find(DeviceErrc code) {
    for (const ErrcRow& row : kRows) {
        if (row.code == code) return &row;
    }
    return nullptr;
}

constexpr std::size_t kCalls = static_cast<std::size_t>(DeviceCall::count_);

// In the order of DeviceCall: the call a reader of a CUDA program would look for.
constexpr std::array<const char*, kCalls> kCallNames = {"cudaSetDevice",
                                                        "cudaMalloc",
                                                        "cudaFree",
                                                        "cudaMemGetInfo",
                                                        "cuMemAddressReserve",
                                                        "cuMemAddressFree",
                                                        "cuMemCreate",
                                                        "cuMemRelease",
                                                        "cuMemMap",
                                                        "cuMemUnmap",
                                                        "cudaHostAlloc",
                                                        "cudaFreeHost",
                                                        "cudaStreamCreate",
                                                        "cudaStreamDestroy",
                                                        "cudaEventCreate",
                                                        "cudaEventRecord",
                                                        "cudaEventQuery",
                                                        "cudaDeviceSynchronize",
                                                        "cudaStreamBeginCapture",
                                                        "cudaStreamEndCapture",
                                                        "cudaGraphInstantiate",
                                                        "cudaGraphLaunch",
                                                        "cudaGraphExecDestroy",
                                                        "cublasCreate",
                                                        "cublasSetWorkspace",
                                                        "cublasGemmEx",
                                                        "cudaLaunchKernel",
                                                        "cudaMemcpy",
                                                        "cuModuleLoad"};

}  // namespace

const char* errc_name(DeviceErrc code) {
    const ErrcRow* row = find(code);
    return row != nullptr ? row->name : "unrecognized error code";
}

const char* errc_text(DeviceErrc code) {
    const ErrcRow* row = find(code);
    return row != nullptr ? row->text : "unrecognized error code";
}

bool is_sticky(DeviceErrc code) {
    const ErrcRow* row = find(code);
    return row != nullptr && row->sticky;
}

const char* call_name(DeviceCall call) {
    const auto index = static_cast<std::size_t>(call);
    OOMLAB_CHECK(index < kCalls);
    return kCallNames[index];
}

}  // namespace oomlab
