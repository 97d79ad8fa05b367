// Everything that the real chip asks of CUDA, in one table: the runtime, the driver's virtual memory
// management, cuBLAS, and the machine's clock and processes. Two implementations: real_api.cpp (needs
// the toolkit) and the fake of tests/cuda (needs nothing), so that every failure path of this room is
// tested where there is no GPU.
//
// No CUDA header is needed here: handles are opaque pointers, errors are numbers, and the few
// constants are checked against the headers where those are present (real_api.cpp).
#pragma once

#include <optional>
#include <string>

#include "kernels/base/bytes.hpp"

namespace oomlab::cuda {

using Handle = void*;   // cudaStream_t, cudaEvent_t, cudaGraph_t, cudaGraphExec_t, cublasHandle_t

struct DeviceFacts {
    std::string name;
    std::string uuid;   // "GPU-8a5f0c2e-...", as nvidia-smi writes it
    u64 total_bytes = 0;
    int sm_major = 0, sm_minor = 0;
    int multiprocessors = 0;
    u64 clock_hz = 0;
    u64 memory_clock_hz = 0;
    int memory_bus_bits = 0;
};

// cudaDataType and cublasComputeType_t
inline constexpr int kR32F = 0, kR16F = 2, kR8I = 3, kR32I = 10, kR16BF = 14;
inline constexpr int kCompute32F = 68, kCompute32I = 72;

// out[rows, n] = in[rows, k] * weight[n, k]^T, all row-major
struct Gemm {
    u64 in = 0, weight = 0, out = 0;
    int rows = 0, k = 0, n = 0;
    int in_type = kR16BF, out_type = kR16BF;
    int compute_type = kCompute32F;
};

// Each call returns CUDA's number: cudaError_t, CUresult (the two agree where both exist) or, for
// blas_*, cublasStatus_t. Results come by pointer, as in CUDA. Not thread safe.
class CudaApi {
  public:
    virtual ~CudaApi() = default;

    // The driver and the card. None of these creates a context.
    virtual int device_count(int* count) = 0;
    virtual int driver_version(int* version) = 0;   // 13000 is 13.0
    virtual int device_facts(int index, DeviceFacts* facts) = 0;

    // The context. Every later call works on it.
    virtual int create_context(int index) = 0;      // cudaSetDevice and cudaFree(0)
    virtual int device_synchronize() = 0;
    virtual int device_reset() = 0;                 // ends the context with all that it owns
    virtual int get_last_error() = 0;               // and clears it

    // Memory
    virtual int mem_get_info(u64* free_bytes, u64* total_bytes) = 0;
    virtual int malloc(u64* address, u64 bytes) = 0;
    virtual int free(u64 address) = 0;
    virtual int host_alloc(void** pointer, u64 bytes) = 0;
    virtual int free_host(void* pointer) = 0;
    virtual int copy_to_device(u64 to, const void* from, u64 bytes, Handle stream) = 0;   // async
    virtual int copy_to_host(void* to, u64 from, u64 bytes, Handle stream) = 0;           // async

    // Virtual memory management (driver)
    virtual int mem_granularity(int index, u64* bytes) = 0;
    virtual int address_reserve(u64* address, u64 bytes) = 0;
    virtual int address_free(u64 address, u64 bytes) = 0;
    virtual int mem_create(u64* handle, u64 bytes, int index) = 0;
    virtual int mem_release(u64 handle) = 0;
    virtual int mem_map(u64 address, u64 bytes, u64 handle) = 0;
    virtual int mem_set_access(u64 address, u64 bytes, int index) = 0;
    virtual int mem_unmap(u64 address, u64 bytes) = 0;

    // Streams, events, graphs
    virtual int stream_create(Handle* stream) = 0;
    virtual int stream_destroy(Handle stream) = 0;
    virtual int stream_synchronize(Handle stream) = 0;
    virtual int stream_begin_capture(Handle stream) = 0;
    virtual int stream_end_capture(Handle stream, Handle* graph) = 0;
    virtual int event_create(Handle* event) = 0;
    virtual int event_record(Handle event, Handle stream) = 0;
    virtual int event_query(Handle event) = 0;
    virtual int event_synchronize(Handle event) = 0;
    virtual int event_destroy(Handle event) = 0;
    virtual int graph_instantiate(Handle* exec, Handle graph) = 0;
    virtual int graph_upload(Handle exec, Handle stream) = 0;
    virtual int graph_launch(Handle exec, Handle stream) = 0;
    virtual int graph_exec_destroy(Handle exec) = 0;
    virtual int graph_destroy(Handle graph) = 0;

    // cuBLAS. blas_open finds the library: "" or, in words, why there is none.
    virtual std::string blas_open() = 0;
    virtual int blas_create(Handle* handle) = 0;
    virtual int blas_destroy(Handle handle) = 0;
    virtual int blas_set_stream(Handle handle, Handle stream) = 0;
    virtual int blas_set_workspace(Handle handle, u64 address, u64 bytes) = 0;
    virtual int blas_gemm(Handle handle, const Gemm& gemm) = 0;

    // The machine
    virtual double now_s() = 0;                     // monotonic
    virtual void sleep_until_s(double when) = 0;
    // What nvidia-smi prints for a query on this card, or nothing where it cannot be asked.
    virtual std::optional<std::string> nvidia_smi(const std::string& uuid,
                                                  const std::string& query) = 0;
    virtual u64 own_pid() = 0;
};

}  // namespace oomlab::cuda
