#include "kernels/cuda/detail/session.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cuda/nvidia_smi.hpp"

namespace oomlab::cuda {
namespace {

// PyTorch's defaults for cuBLAS: 32 MiB from Hopper on, else 2 * 4096 KiB + 8 * 16 KiB.
constexpr u64 kWorkspaceHopper = 32 * kMiB;
constexpr u64 kWorkspaceOlder = 8519680;
// A context that nobody can tell from other processes' memory is taken to be at most this large.
constexpr u64 kContextMax = kGiB;
constexpr u64 kContextTypical = 512 * kMiB;

struct BlasStatus {
    int status;
    DeviceErrc code;
    const char* name;
};
// cublasStatus_t. Where the cause is not told, the code is "unknown" and the name says the rest.
constexpr BlasStatus kBlas[] = {
    {1, DeviceErrc::initialization_error, "CUBLAS_STATUS_NOT_INITIALIZED"},
    {3, DeviceErrc::memory_allocation, "CUBLAS_STATUS_ALLOC_FAILED"},
    {7, DeviceErrc::invalid_value, "CUBLAS_STATUS_INVALID_VALUE"},
    {8, DeviceErrc::no_kernel_image_for_device, "CUBLAS_STATUS_ARCH_MISMATCH"},
    {11, DeviceErrc::map_buffer_object_failed, "CUBLAS_STATUS_MAPPING_ERROR"},
    {13, DeviceErrc::unknown, "CUBLAS_STATUS_EXECUTION_FAILED"},
    {14, DeviceErrc::unknown, "CUBLAS_STATUS_INTERNAL_ERROR"},
    {15, DeviceErrc::not_supported, "CUBLAS_STATUS_NOT_SUPPORTED"},
    {16, DeviceErrc::not_permitted, "CUBLAS_STATUS_LICENSE_ERROR"}};

bool is_known(DeviceErrc code) {
    return code == DeviceErrc::unknown ||
           std::strcmp(errc_name(code), errc_name(DeviceErrc::unknown)) != 0;
}

}  // namespace

Session::Session(CudaApi& table, LaunchOps& launches, const OpenOptions& options, DeviceProps facts,
                 std::string card_uuid)
    : api(table),
      launch(launches),
      props(std::move(facts)),
      index(options.index),
      uuid_(std::move(card_uuid)) {}

Session::~Session() {
    if (has_context_) give_back_everything();
}

DeviceResult<void> Session::enter() {
    if (poison_) return fail(*poison_);
    if (ready_) return {};
    return create_context();
}

DeviceResult<void> Session::check(int error, DeviceCall call, u64 bytes, const char* detail) {
    if (error == 0) return {};
    api.get_last_error();
    DeviceError e{.code = static_cast<DeviceErrc>(error), .call = call, .bytes = bytes,
                  .detail = detail};
    if (!is_known(e.code)) {
        e.code = DeviceErrc::unknown;
        e.detail = "CUDA error " + std::to_string(error);
    }
    if (e.sticky() && !poison_) poison_ = e;
    return fail(std::move(e));
}

DeviceResult<void> Session::check_blas(int status, DeviceCall call, u64 bytes) {
    if (status == 0) return {};
    // A fault of an earlier kernel often shows here first; then it is the truth, not the library's.
    const int runtime = api.get_last_error();
    if (is_sticky(static_cast<DeviceErrc>(runtime))) return check(runtime, call, bytes);
    DeviceError e{.code = DeviceErrc::unknown, .call = call, .bytes = bytes,
                  .detail = "CUBLAS_STATUS " + std::to_string(status)};
    for (const BlasStatus& row : kBlas) {
        if (row.status != status) continue;
        e.code = row.code;
        e.detail = row.name;
    }
    return fail(std::move(e));
}

DeviceResult<void> Session::create_context() {
    if (poison_) return fail(*poison_);
    if (ready_) return {};
    if (!has_context_) OOMLAB_TRY_VOID(make_context());
    OOMLAB_TRY_VOID(make_libraries());
    ready_ = true;
    return {};
}

// May be tried again after a failure: what was made stays in the books.
DeviceResult<void> Session::make_context() {
    std::optional<u64> used_before;
    if (const auto text = api.nvidia_smi(uuid_, kQueryUsed)) used_before = parse_used_bytes(*text);
    OOMLAB_TRY_VOID(check(api.create_context(index), DeviceCall::create_context));
    has_context_ = true;
    u64 free_bytes = 0, total_bytes = 0;
    OOMLAB_TRY_VOID(check(api.mem_get_info(&free_bytes, &total_bytes), DeviceCall::mem_info));
    measure_context(used_before, total_bytes - std::min(free_bytes, total_bytes));
    return {};
}

// How much of what is used is ours: what appeared since nvidia-smi was asked; else, what its list of
// other processes leaves; else everything, unless that is more than a context can be.
void Session::measure_context(std::optional<u64> used_before, u64 used_after) {
    if (used_before && *used_before < used_after && used_after - *used_before <= kContextMax) {
        context_bytes_ = used_after - *used_before;
        return;
    }
    u64 others = 0;
    if (const auto text = api.nvidia_smi(uuid_, kQueryProcesses)) {
        const u64 own_pid = api.own_pid();
        for (const GpuProcess& process : parse_processes(*text)) {
            if (process.pid != own_pid) others += process.bytes;
        }
    }
    const u64 rest = used_after - std::min(others, used_after);
    context_bytes_ = rest <= kContextMax ? rest : kContextTypical;
}

DeviceResult<void> Session::make_libraries() {
    if (main_stream_ == nullptr) {
        OOMLAB_TRY_VOID(check(api.stream_create(&main_stream_), DeviceCall::create_stream));
    }
    const u64 before = free_bytes_or_zero();
    OOMLAB_TRY_VOID(check(launch.load(), DeviceCall::module_load));
    if (blas_ == nullptr) {
        OOMLAB_TRY_VOID(check_blas(api.blas_create(&blas_), DeviceCall::create_blas));
    }
    if (workspace_.address == 0) {
        const u64 bytes = props.sm_major >= 9 ? kWorkspaceHopper : kWorkspaceOlder;
        u64 address = 0;
        OOMLAB_TRY_VOID(check(api.malloc(&address, bytes), DeviceCall::blas_workspace, bytes));
        workspace_ = {address, bytes};
    }
    OOMLAB_TRY_VOID(check_blas(api.blas_set_stream(blas_, main_stream_), DeviceCall::create_blas));
    OOMLAB_TRY_VOID(check_blas(api.blas_set_workspace(blas_, workspace_.address, workspace_.bytes),
                               DeviceCall::blas_workspace, workspace_.bytes));
    // Modules, the handle and the workspace count as context; nobody else ran in between, or it is
    // counted as ours once, here.
    const u64 after = free_bytes_or_zero();
    if (after != 0 && after < before) context_bytes_ += before - after;
    return {};
}

u64 Session::free_bytes_or_zero() {
    u64 free_bytes = 0, total_bytes = 0;
    if (api.mem_get_info(&free_bytes, &total_bytes) == 0) return free_bytes;
    api.get_last_error();   // only a measurement: what matters fails again where it is checked
    return 0;
}

u64 Session::own_bytes() const {
    u64 bytes = context_bytes_ + graph_bytes + outside_bytes + charge_for(allocated_bytes);
    for (const auto& [handle, memory] : physical) bytes += memory.bytes;
    return bytes;
}

DeviceResult<void> Session::expect_within_limit(DeviceCall call, u64 bytes) {
    if (props.memory_limit_bytes == 0) return {};
    const u64 own = own_bytes();
    if (own <= props.memory_limit_bytes && bytes <= props.memory_limit_bytes - own) return {};
    return fail(DeviceError{.code = DeviceErrc::memory_allocation, .call = call, .bytes = bytes,
                            .detail = "memory_limit of " + human_bytes(props.memory_limit_bytes)});
}

DeviceResult<MemInfo> Session::mem_info() {
    MemInfo info;
    OOMLAB_TRY_VOID(
        check(api.mem_get_info(&info.free_bytes, &info.total_bytes), DeviceCall::mem_info));
    const u64 used = info.total_bytes - std::min(info.free_bytes, info.total_bytes);
    const u64 own = own_bytes();
    info.other_processes_bytes = used - std::min(own, used);
    if (const u64 limit = props.memory_limit_bytes; limit != 0 && limit < info.total_bytes) {
        info.total_bytes = limit;
        info.free_bytes = std::min(info.free_bytes, limit - std::min(own, limit));
    }
    return info;
}

DeviceResult<void> Session::grow_outside(u64 bytes) {
    if (bytes == 0) return {};
    OOMLAB_TRY_VOID(expect_within_limit(DeviceCall::malloc, charge_for(bytes)));
    u64 address = 0;
    OOMLAB_TRY_VOID(check(api.malloc(&address, bytes), DeviceCall::malloc, bytes));
    outside_[address] = bytes;
    outside_bytes += charge_for(bytes);
    return {};
}

// Takes all memory that is left, in halving pieces, and makes cuBLAS handles until one cannot be
// made. Everything is given back before the error is returned. Under a memory limit the card is
// shared: there the library's answer is given without squeezing out the others.
DeviceResult<void> Session::library_cannot_allocate() {
    constexpr u64 kFirstPiece = 4 * kGiB, kLastPiece = 64 * kKiB;
    constexpr int kHandlesMax = 64;
    constexpr int kStatusAllocFailed = 3;
    if (props.memory_limit_bytes != 0) {
        return check_blas(kStatusAllocFailed, DeviceCall::create_blas);
    }
    std::vector<u64> pieces;
    for (u64 piece = kFirstPiece; piece >= kLastPiece; piece /= 2) {
        u64 address = 0;
        while (api.malloc(&address, piece) == 0) pieces.push_back(address);
        api.get_last_error();
    }
    std::vector<Handle> handles;
    int status = 0;
    for (int i = 0; i < kHandlesMax && status == 0; ++i) {
        Handle handle = nullptr;
        status = api.blas_create(&handle);
        if (status == 0) handles.push_back(handle);
    }
    DeviceResult<void> result = check_blas(status, DeviceCall::create_blas);
    for (const u64 address : pieces) api.free(address);
    for (const Handle handle : handles) api.blas_destroy(handle);
    return result;
}

void Session::give_back_everything() {
    // Errors are no news here: device_reset ends what an earlier call could not.
    api.device_synchronize();
    for (const auto& [exec, bytes] : graphs) api.graph_exec_destroy(reinterpret_cast<Handle>(exec));
    for (const u64 event : events) api.event_destroy(reinterpret_cast<Handle>(event));
    for (const u64 stream : streams) api.stream_destroy(reinterpret_cast<Handle>(stream));
    for (const auto& [address, mapping] : mappings) api.mem_unmap(address, mapping.bytes);
    for (const auto& [handle, memory] : physical) {
        if (!memory.destroyed) api.mem_release(handle);
    }
    for (const auto& [address, bytes] : ranges) api.address_free(address, bytes);
    for (const auto& [address, bytes] : allocations) api.free(address);
    for (const auto& [address, bytes] : outside_) api.free(address);
    for (void* pointer : pinned) api.free_host(pointer);
    if (blas_ != nullptr) api.blas_destroy(blas_);
    if (workspace_.address != 0) api.free(workspace_.address);
    if (main_stream_ != nullptr) api.stream_destroy(main_stream_);
    api.get_last_error();
    api.device_reset();
}

}  // namespace oomlab::cuda
