#include "kernels/cuda/real_api.hpp"

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "kernels/cuda/blas_library.hpp"
#include "kernels/cuda/nvidia_smi.hpp"
#include "kernels/device/device_error.hpp"

namespace oomlab::cuda {
namespace {

// The numbers that are written down without a header elsewhere are those of this toolkit.
constexpr int n(DeviceErrc code) { return static_cast<int>(code); }
static_assert(n(DeviceErrc::invalid_value) == cudaErrorInvalidValue);
static_assert(n(DeviceErrc::memory_allocation) == cudaErrorMemoryAllocation);
static_assert(n(DeviceErrc::initialization_error) == cudaErrorInitializationError);
static_assert(n(DeviceErrc::cudart_unloading) == cudaErrorCudartUnloading);
static_assert(n(DeviceErrc::invalid_configuration) == cudaErrorInvalidConfiguration);
static_assert(n(DeviceErrc::insufficient_driver) == cudaErrorInsufficientDriver);
static_assert(n(DeviceErrc::devices_unavailable) == cudaErrorDevicesUnavailable);
static_assert(n(DeviceErrc::no_device) == cudaErrorNoDevice);
static_assert(n(DeviceErrc::invalid_device) == cudaErrorInvalidDevice);
static_assert(n(DeviceErrc::invalid_kernel_image) == cudaErrorInvalidKernelImage);
static_assert(n(DeviceErrc::map_buffer_object_failed) == cudaErrorMapBufferObjectFailed);
static_assert(n(DeviceErrc::unmap_buffer_object_failed) == cudaErrorUnmapBufferObjectFailed);
static_assert(n(DeviceErrc::no_kernel_image_for_device) == cudaErrorNoKernelImageForDevice);
static_assert(n(DeviceErrc::ecc_uncorrectable) == cudaErrorECCUncorrectable);
static_assert(n(DeviceErrc::operating_system) == cudaErrorOperatingSystem);
static_assert(n(DeviceErrc::invalid_resource_handle) == cudaErrorInvalidResourceHandle);
static_assert(n(DeviceErrc::symbol_not_found) == cudaErrorSymbolNotFound);
static_assert(n(DeviceErrc::not_ready) == cudaErrorNotReady);
static_assert(n(DeviceErrc::illegal_address) == cudaErrorIllegalAddress);
static_assert(n(DeviceErrc::launch_out_of_resources) == cudaErrorLaunchOutOfResources);
static_assert(n(DeviceErrc::launch_timeout) == cudaErrorLaunchTimeout);
static_assert(n(DeviceErrc::device_assert) == cudaErrorAssert);
static_assert(n(DeviceErrc::hardware_stack_error) == cudaErrorHardwareStackError);
static_assert(n(DeviceErrc::illegal_instruction) == cudaErrorIllegalInstruction);
static_assert(n(DeviceErrc::misaligned_address) == cudaErrorMisalignedAddress);
static_assert(n(DeviceErrc::invalid_address_space) == cudaErrorInvalidAddressSpace);
static_assert(n(DeviceErrc::invalid_pc) == cudaErrorInvalidPc);
static_assert(n(DeviceErrc::launch_failure) == cudaErrorLaunchFailure);
static_assert(n(DeviceErrc::cooperative_launch_too_large) == cudaErrorCooperativeLaunchTooLarge);
static_assert(n(DeviceErrc::not_permitted) == cudaErrorNotPermitted);
static_assert(n(DeviceErrc::not_supported) == cudaErrorNotSupported);
static_assert(n(DeviceErrc::system_not_ready) == cudaErrorSystemNotReady);
static_assert(n(DeviceErrc::stream_capture_unsupported) == cudaErrorStreamCaptureUnsupported);
static_assert(n(DeviceErrc::stream_capture_invalidated) == cudaErrorStreamCaptureInvalidated);
static_assert(n(DeviceErrc::unknown) == cudaErrorUnknown);
// Driver and runtime agree about what the virtual memory calls can say.
static_assert(n(DeviceErrc::invalid_value) == CUDA_ERROR_INVALID_VALUE);
static_assert(n(DeviceErrc::memory_allocation) == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(n(DeviceErrc::initialization_error) == CUDA_ERROR_NOT_INITIALIZED);
static_assert(n(DeviceErrc::illegal_address) == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(n(DeviceErrc::not_permitted) == CUDA_ERROR_NOT_PERMITTED);
static_assert(n(DeviceErrc::not_supported) == CUDA_ERROR_NOT_SUPPORTED);
static_assert(n(DeviceErrc::symbol_not_found) == CUDA_ERROR_NOT_FOUND);
static_assert(kR32F == CUDA_R_32F && kR16F == CUDA_R_16F && kR16BF == CUDA_R_16BF);
static_assert(kR8I == CUDA_R_8I && kR32I == CUDA_R_32I);
static_assert(kCompute32F == CUBLAS_COMPUTE_32F && kCompute32I == CUBLAS_COMPUTE_32I);
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1 && CUBLAS_GEMM_DEFAULT == -1);
static_assert(CUBLAS_STATUS_NOT_INITIALIZED == 1 && CUBLAS_STATUS_ALLOC_FAILED == 3 &&
              CUBLAS_STATUS_INVALID_VALUE == 7 && CUBLAS_STATUS_ARCH_MISMATCH == 8 &&
              CUBLAS_STATUS_MAPPING_ERROR == 11 && CUBLAS_STATUS_EXECUTION_FAILED == 13 &&
              CUBLAS_STATUS_INTERNAL_ERROR == 14 && CUBLAS_STATUS_NOT_SUPPORTED == 15 &&
              CUBLAS_STATUS_LICENSE_ERROR == 16);

void* pointer(u64 address) { return reinterpret_cast<void*>(address); }
cudaStream_t stream_of(Handle h) { return static_cast<cudaStream_t>(h); }

constexpr unsigned kDriverVersion = 11000;   // all of the functions below are as old as that

// Driver functions, by entry point: libcuda is never linked.
struct Driver {
    decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
    decltype(&cuMemAddressReserve) reserve = nullptr;
    decltype(&cuMemAddressFree) release = nullptr;
    decltype(&cuMemCreate) create = nullptr;
    decltype(&cuMemRelease) destroy = nullptr;
    decltype(&cuMemMap) map = nullptr;
    decltype(&cuMemSetAccess) set_access = nullptr;
    decltype(&cuMemUnmap) unmap = nullptr;
    bool loaded = false;

    int load() {
        if (loaded) return 0;
        const auto get = [](auto& function, const char* name) -> int {
            void* symbol = nullptr;
            cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
            const cudaError_t error = cudaGetDriverEntryPointByVersion(
                name, &symbol, kDriverVersion, cudaEnableDefault, &found);
            if (error != cudaSuccess) return error;
            if (found != cudaDriverEntryPointSuccess || symbol == nullptr) {
                return cudaErrorSymbolNotFound;
            }
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
            return 0;
        };
        int error = get(granularity, "cuMemGetAllocationGranularity");
        if (error == 0) error = get(reserve, "cuMemAddressReserve");
        if (error == 0) error = get(release, "cuMemAddressFree");
        if (error == 0) error = get(create, "cuMemCreate");
        if (error == 0) error = get(destroy, "cuMemRelease");
        if (error == 0) error = get(map, "cuMemMap");
        if (error == 0) error = get(set_access, "cuMemSetAccess");
        if (error == 0) error = get(unmap, "cuMemUnmap");
        loaded = error == 0;
        return error;
    }
};

CUmemAllocationProp properties_of(int index) {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = index;
    return p;
}

std::string uuid_text(const cudaUUID_t& uuid) {
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        char hex[3];
        std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        text += hex;
        if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
    }
    return text;
}

class RealApi final : public CudaApi {
  public:
    int device_count(int* count) override { return cudaGetDeviceCount(count); }
    int driver_version(int* version) override { return cudaDriverGetVersion(version); }
    int device_facts(int index, DeviceFacts* facts) override;

    int create_context(int index) override {
        const int error = cudaSetDevice(index);
        return error != 0 ? error : cudaFree(nullptr);
    }
    int device_synchronize() override { return cudaDeviceSynchronize(); }
    int device_reset() override { return cudaDeviceReset(); }
    int get_last_error() override { return cudaGetLastError(); }

    int mem_get_info(u64* free_bytes, u64* total_bytes) override {
        std::size_t free_now = 0, total = 0;
        const int error = cudaMemGetInfo(&free_now, &total);
        *free_bytes = free_now;
        *total_bytes = total;
        return error;
    }
    int malloc(u64* address, u64 bytes) override {
        void* p = nullptr;
        const int error = cudaMalloc(&p, bytes);
        *address = reinterpret_cast<u64>(p);
        return error;
    }
    int free(u64 address) override { return cudaFree(pointer(address)); }
    int host_alloc(void** p, u64 bytes) override {
        return cudaHostAlloc(p, bytes, cudaHostAllocDefault);
    }
    int free_host(void* p) override { return cudaFreeHost(p); }
    int copy_to_device(u64 to, const void* from, u64 bytes, Handle stream) override {
        return cudaMemcpyAsync(pointer(to), from, bytes, cudaMemcpyHostToDevice, stream_of(stream));
    }
    int copy_to_host(void* to, u64 from, u64 bytes, Handle stream) override {
        return cudaMemcpyAsync(to, pointer(from), bytes, cudaMemcpyDeviceToHost, stream_of(stream));
    }

    int mem_granularity(int index, u64* bytes) override {
        if (const int error = driver_.load()) return error;
        const CUmemAllocationProp p = properties_of(index);
        std::size_t grain = 0;
        const int error = driver_.granularity(&grain, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        *bytes = grain;
        return error;
    }
    int address_reserve(u64* address, u64 bytes) override {
        CUdeviceptr start = 0;
        const int error = driver_.reserve(&start, bytes, 0, 0, 0);
        *address = start;
        return error;
    }
    int address_free(u64 address, u64 bytes) override { return driver_.release(address, bytes); }
    int mem_create(u64* handle, u64 bytes, int index) override {
        const CUmemAllocationProp p = properties_of(index);
        CUmemGenericAllocationHandle made = 0;
        const int error = driver_.create(&made, bytes, &p, 0);
        *handle = made;
        return error;
    }
    int mem_release(u64 handle) override { return driver_.destroy(handle); }
    int mem_map(u64 address, u64 bytes, u64 handle) override {
        return driver_.map(address, bytes, 0, handle, 0);
    }
    int mem_set_access(u64 address, u64 bytes, int index) override {
        CUmemAccessDesc access{};
        access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access.location.id = index;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return driver_.set_access(address, bytes, &access, 1);
    }
    int mem_unmap(u64 address, u64 bytes) override { return driver_.unmap(address, bytes); }

    int stream_create(Handle* stream) override {
        cudaStream_t made = nullptr;
        const int error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
        *stream = made;
        return error;
    }
    int stream_destroy(Handle stream) override { return cudaStreamDestroy(stream_of(stream)); }
    int stream_synchronize(Handle stream) override {
        return cudaStreamSynchronize(stream_of(stream));
    }
    // Relaxed: the allocator may take memory while its stream is captured, as PyTorch's does.
    int stream_begin_capture(Handle stream) override {
        return cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeRelaxed);
    }
    int stream_end_capture(Handle stream, Handle* graph) override {
        cudaGraph_t made = nullptr;
        const int error = cudaStreamEndCapture(stream_of(stream), &made);
        *graph = made;
        return error;
    }
    int event_create(Handle* event) override {
        cudaEvent_t made = nullptr;
        const int error = cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
        *event = made;
        return error;
    }
    int event_record(Handle event, Handle stream) override {
        return cudaEventRecord(static_cast<cudaEvent_t>(event), stream_of(stream));
    }
    int event_query(Handle event) override {
        return cudaEventQuery(static_cast<cudaEvent_t>(event));
    }
    int event_synchronize(Handle event) override {
        return cudaEventSynchronize(static_cast<cudaEvent_t>(event));
    }
    int event_destroy(Handle event) override {
        return cudaEventDestroy(static_cast<cudaEvent_t>(event));
    }
    int graph_instantiate(Handle* exec, Handle graph) override {
        cudaGraphExec_t made = nullptr;
        const int error = cudaGraphInstantiate(&made, static_cast<cudaGraph_t>(graph), 0);
        *exec = made;
        return error;
    }
    int graph_upload(Handle exec, Handle stream) override {
        return cudaGraphUpload(static_cast<cudaGraphExec_t>(exec), stream_of(stream));
    }
    int graph_launch(Handle exec, Handle stream) override {
        return cudaGraphLaunch(static_cast<cudaGraphExec_t>(exec), stream_of(stream));
    }
    int graph_exec_destroy(Handle exec) override {
        return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(exec));
    }
    int graph_destroy(Handle graph) override {
        return cudaGraphDestroy(static_cast<cudaGraph_t>(graph));
    }

    std::string blas_open() override { return blas_.open(); }
    int blas_create(Handle* handle) override { return blas_.create(handle); }
    int blas_destroy(Handle handle) override { return blas_.destroy(handle); }
    int blas_set_stream(Handle handle, Handle stream) override {
        return blas_.set_stream(handle, stream);
    }
    int blas_set_workspace(Handle handle, u64 address, u64 bytes) override {
        return blas_.set_workspace(handle, address, bytes);
    }
    int blas_gemm(Handle handle, const Gemm& gemm) override { return blas_.gemm(handle, gemm); }

    double now_s() override {
        return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    }
    void sleep_until_s(double when) override {
        const auto since = std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(when));
        std::this_thread::sleep_until(Clock::time_point(since));
    }
    std::optional<std::string> nvidia_smi(const std::string& uuid,
                                          const std::string& query) override {
        return ask_nvidia_smi(uuid, query);
    }
    u64 own_pid() override { return static_cast<u64>(getpid()); }

  private:
    using Clock = std::chrono::steady_clock;
    Driver driver_;
    BlasLibrary blas_;
};

int RealApi::device_facts(int index, DeviceFacts* facts) {
    cudaDeviceProp properties;
    int error = cudaGetDeviceProperties(&properties, index);
    int clock_khz = 0, memory_clock_khz = 0;
    if (error == 0) error = cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index);
    if (error == 0) {
        error = cudaDeviceGetAttribute(&memory_clock_khz, cudaDevAttrMemoryClockRate, index);
    }
    if (error != 0) return error;
    *facts = {.name = properties.name,
              .uuid = uuid_text(properties.uuid),
              .total_bytes = properties.totalGlobalMem,
              .sm_major = properties.major,
              .sm_minor = properties.minor,
              .multiprocessors = properties.multiProcessorCount,
              .clock_hz = static_cast<u64>(clock_khz) * 1000,
              .memory_clock_hz = static_cast<u64>(memory_clock_khz) * 1000,
              .memory_bus_bits = properties.memoryBusWidth};
    return 0;
}

}  // namespace

std::unique_ptr<CudaApi> real_api() { return std::make_unique<RealApi>(); }

}  // namespace oomlab::cuda
