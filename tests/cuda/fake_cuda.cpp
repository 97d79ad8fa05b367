#include "tests/cuda/fake_cuda.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/nvidia_smi.hpp"
#include "kernels/ops/bodies/elementwise.hpp"
#include "kernels/ops/host_ops.hpp"

namespace oomlab::test {
namespace {

using cuda::Handle;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidConfiguration = 9, kInvalidDevice = 101,
              kInvalidContext = 201, kInvalidHandle = 400, kIllegalState = 401, kNotSupported = 801,
              kCaptureUnsupported = 900;
constexpr int kBlasNotInitialized = 1, kBlasAllocFailed = 3, kBlasInvalidValue = 7;

const host::Translate kSameAddress{};   // device addresses are host addresses here

u64 id_of(Handle handle) { return reinterpret_cast<u64>(handle); }
Handle handle_of(u64 id) { return reinterpret_cast<Handle>(id); }

// Untouched pages cost nothing, so that a fake card may be large. Aligned as the driver aligns.
constexpr u64 kAlignment = 2 * kMiB;
void unmap_pages(u64 address, u64 bytes) {
    munmap(reinterpret_cast<void*>(address), round_up(bytes, kAlignment));
}
u64 map_pages(u64 bytes) {
    const u64 size = round_up(bytes, kAlignment);
    void* p = mmap(nullptr, size + kAlignment, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return 0;
    const u64 start = reinterpret_cast<u64>(p);
    const u64 address = round_up(start, kAlignment);
    if (address != start) munmap(p, address - start);
    if (address != start + kAlignment) {
        munmap(reinterpret_cast<void*>(address + size), start + kAlignment - address);
    }
    return address;
}

}  // namespace

FakeCuda::~FakeCuda() { device_reset(); }

void FakeCuda::plan(const Plan& p) {
    plan_ = p;
    seen_ = 0;
    failures_ = 0;
    failed_name_.clear();
}

u64 FakeCuda::count(const std::string& name) const {
    return static_cast<u64>(std::count(names_.begin(), names_.end(), name));
}

int FakeCuda::refuse(int error) {
    last_error_ = error;
    if (is_sticky(static_cast<DeviceErrc>(error))) sticky_ = error;
    return error;
}

int FakeCuda::finish() {
    for (auto& [event, recorded] : events_) recorded = false;
    return pending_fault_ != 0 ? refuse(std::exchange(pending_fault_, 0)) : 0;
}

int FakeCuda::enter(const std::string& name, bool blas) {
    names_.push_back(name);
    if (before_call) before_call(name);
    // After a fault the library does not know better than "failed"; the runtime tells the cause.
    if (sticky_ != 0) return blas ? (last_error_ = sticky_, 13) : sticky_;
    if (plan_.nth == 0 || (!plan_.only.empty() && plan_.only != name)) return 0;
    ++seen_;
    if (seen_ != plan_.nth && !(plan_.for_ever && seen_ > plan_.nth)) return 0;
    if (failures_++ == 0) failed_name_ = name;
    return blas ? plan_.blas_status : refuse(plan_.error);
}

u64 FakeCuda::used_bytes() const {
    u64 used = 0;
    if (has_context_) used += context_bytes + (modules_loaded_ ? module_bytes : 0);
    for (const auto& [address, bytes] : allocations_) used += round_up(bytes, granularity_bytes);
    for (const auto& [handle, memory] : memory_) used += memory.bytes;
    return used + execs_.size() * graph_bytes + blas_.size() * blas_bytes;
}

bool FakeCuda::room_for(u64 bytes) const {
    const u64 taken = used_bytes() + others_bytes;
    return taken <= total_bytes_ && bytes <= total_bytes_ - taken;
}

u64 FakeCuda::live() const {
    u64 n = allocations_.size() + ranges_.size() + memory_.size() + pinned_.size() + streams_.size() +
            events_.size() + graphs_.size() + execs_.size() + blas_.size() + (has_context_ ? 1 : 0);
    for (const auto& [address, range] : ranges_) n += range.mapped.size();
    return n;
}

int FakeCuda::device_count(int* n) {
    if (driver_error != 0) return refuse(driver_error);
    if (const int e = enter("device_count")) return e;
    *n = cards;
    return 0;
}
int FakeCuda::driver_version(int* version) {
    if (const int e = enter("driver_version")) return e;
    *version = 13000;
    return 0;
}
int FakeCuda::device_facts(int index, cuda::DeviceFacts* facts) {
    if (const int e = enter("device_facts")) return e;
    if (index >= cards) return refuse(kInvalidDevice);
    *facts = {.name = "Fake GPU", .uuid = "GPU-fake", .total_bytes = total_bytes_, .sm_major = 8,
              .sm_minor = 0, .multiprocessors = 108, .clock_hz = 1410000000,
              .memory_clock_hz = 1593000000, .memory_bus_bits = 5120};
    return 0;
}
int FakeCuda::create_context(int index) {
    if (const int e = enter("create_context")) return e;
    if (index >= cards) return refuse(kInvalidDevice);
    if (!room_for(context_bytes)) return refuse(kOutOfMemory);
    has_context_ = true;
    return 0;
}
int FakeCuda::device_synchronize() {
    if (const int e = enter("device_synchronize")) return e;
    return capturing_ != 0 ? refuse(kCaptureUnsupported) : finish();
}
int FakeCuda::device_reset() {
    for (const auto& [address, bytes] : allocations_) unmap_pages(address, bytes);
    for (const auto& [address, range] : ranges_) unmap_pages(address, range.bytes);
    for (const auto& [pointer, bytes] : pinned_) std::free(pointer);
    allocations_.clear();
    ranges_.clear();
    memory_.clear();
    pinned_.clear();
    streams_.clear();
    events_.clear();
    graphs_.clear();
    execs_.clear();
    blas_.clear();
    has_context_ = modules_loaded_ = false;
    capturing_ = 0;
    captured_.clear();
    sticky_ = pending_fault_ = 0;
    return 0;
}
int FakeCuda::get_last_error() { return sticky_ != 0 ? sticky_ : std::exchange(last_error_, 0); }

int FakeCuda::mem_get_info(u64* free_bytes, u64* total_bytes) {
    if (const int e = enter("mem_get_info")) return e;
    if (!has_context_) return refuse(kInvalidContext);
    *total_bytes = total_bytes_;
    *free_bytes = total_bytes_ - std::min(used_bytes() + others_bytes, total_bytes_);
    return 0;
}
int FakeCuda::malloc(u64* address, u64 bytes) {
    if (const int e = enter("malloc")) return e;
    if (!has_context_) return refuse(kInvalidContext);
    if (bytes > total_bytes_ || !room_for(round_up(bytes, granularity_bytes))) {
        return refuse(kOutOfMemory);
    }
    *address = map_pages(bytes);
    if (*address == 0) return refuse(kOutOfMemory);
    allocations_[*address] = bytes;
    return 0;
}
int FakeCuda::free(u64 address) {
    if (const int e = enter("free")) return e;
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return refuse(kInvalidValue);
    unmap_pages(address, found->second);
    allocations_.erase(found);
    return 0;
}
int FakeCuda::host_alloc(void** pointer, u64 bytes) {
    if (const int e = enter("host_alloc")) return e;
    *pointer = std::malloc(bytes);
    if (*pointer == nullptr) return refuse(kOutOfMemory);
    pinned_[*pointer] = bytes;
    return 0;
}
int FakeCuda::free_host(void* pointer) {
    if (const int e = enter("free_host")) return e;
    if (pinned_.erase(pointer) == 0) return refuse(kInvalidValue);
    std::free(pointer);
    return 0;
}
int FakeCuda::copy_to_device(u64 to, const void* from, u64 bytes, Handle stream) {
    if (const int e = enter("copy_to_device")) return e;
    if (!knows_stream(stream)) return refuse(kInvalidHandle);
    if (bytes != 0) std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return 0;
}
int FakeCuda::copy_to_host(void* to, u64 from, u64 bytes, Handle stream) {
    if (const int e = enter("copy_to_host")) return e;
    if (!knows_stream(stream)) return refuse(kInvalidHandle);
    if (bytes != 0) std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return 0;
}

int FakeCuda::mem_granularity(int, u64* bytes) {
    if (const int e = enter("mem_granularity")) return e;
    *bytes = granularity_bytes;
    return 0;
}
int FakeCuda::address_reserve(u64* address, u64 bytes) {
    if (const int e = enter("address_reserve")) return e;
    if (bytes == 0 || bytes % granularity_bytes != 0) return refuse(kInvalidValue);
    *address = map_pages(bytes);
    if (*address == 0) return refuse(kOutOfMemory);
    ranges_[*address].bytes = bytes;
    return 0;
}
int FakeCuda::address_free(u64 address, u64 bytes) {
    if (const int e = enter("address_free")) return e;
    const auto found = ranges_.find(address);
    if (found == ranges_.end() || found->second.bytes != bytes || !found->second.mapped.empty()) {
        return refuse(kInvalidValue);
    }
    unmap_pages(address, bytes);
    ranges_.erase(found);
    return 0;
}
int FakeCuda::mem_create(u64* handle, u64 bytes, int) {
    if (const int e = enter("mem_create")) return e;
    if (!has_context_) return refuse(kInvalidContext);
    if (bytes == 0 || bytes % granularity_bytes != 0) return refuse(kInvalidValue);
    if (bytes > total_bytes_ || !room_for(bytes)) return refuse(kOutOfMemory);
    *handle = new_id();
    memory_[*handle].bytes = bytes;
    return 0;
}
void FakeCuda::drop_if_gone(u64 handle) {
    const auto found = memory_.find(handle);
    if (found != memory_.end() && found->second.released && found->second.mappings == 0) {
        memory_.erase(found);
    }
}
int FakeCuda::mem_release(u64 handle) {
    if (const int e = enter("mem_release")) return e;
    const auto found = memory_.find(handle);
    if (found == memory_.end() || found->second.released) return refuse(kInvalidValue);
    found->second.released = true;
    drop_if_gone(handle);
    return 0;
}
int FakeCuda::mem_map(u64 address, u64 bytes, u64 handle) {
    if (const int e = enter("mem_map")) return e;
    const auto memory = memory_.find(handle);
    if (memory == memory_.end() || memory->second.released || memory->second.bytes != bytes) {
        return refuse(kInvalidValue);
    }
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return refuse(kInvalidValue);
    --range;
    if (address + bytes > range->first + range->second.bytes) return refuse(kInvalidValue);
    for (const auto& [start, mapping] : range->second.mapped) {
        if (start < address + bytes && address < start + mapping.first) return refuse(kInvalidValue);
    }
    range->second.mapped[address] = {bytes, handle};
    ++memory->second.mappings;
    return 0;
}
int FakeCuda::mem_set_access(u64, u64, int) { return enter("mem_set_access"); }
int FakeCuda::mem_unmap(u64 address, u64 bytes) {
    if (const int e = enter("mem_unmap")) return e;
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return refuse(kInvalidValue);
    auto& mapped = (--range)->second.mapped;
    u64 covered = 0;
    for (const auto& [start, mapping] : mapped) {
        if (start >= address && start + mapping.first <= address + bytes) covered += mapping.first;
    }
    if (covered != bytes) return refuse(kInvalidValue);   // whole mappings, and no hole
    for (auto it = mapped.lower_bound(address); it != mapped.end() && it->first < address + bytes;) {
        const u64 handle = it->second.second;
        --memory_[handle].mappings;
        it = mapped.erase(it);
        drop_if_gone(handle);
    }
    return 0;
}

bool FakeCuda::knows_stream(Handle stream) const { return streams_.count(id_of(stream)) != 0; }

int FakeCuda::stream_create(Handle* stream) {
    if (const int e = enter("stream_create")) return e;
    const u64 id = new_id();
    streams_.insert(id);
    *stream = handle_of(id);
    return 0;
}
int FakeCuda::stream_destroy(Handle stream) {
    if (const int e = enter("stream_destroy")) return e;
    return streams_.erase(id_of(stream)) == 1 ? 0 : refuse(kInvalidHandle);
}
int FakeCuda::stream_synchronize(Handle stream) {
    if (const int e = enter("stream_synchronize")) return e;
    if (!knows_stream(stream)) return refuse(kInvalidHandle);
    return capturing_ == id_of(stream) ? refuse(kCaptureUnsupported) : finish();
}
int FakeCuda::stream_begin_capture(Handle stream) {
    if (const int e = enter("stream_begin_capture")) return e;
    if (!knows_stream(stream)) return refuse(kInvalidHandle);
    if (capturing_ != 0) return refuse(kIllegalState);
    capturing_ = id_of(stream);
    return 0;
}
int FakeCuda::stream_end_capture(Handle stream, Handle* graph) {
    const int e = enter("stream_end_capture");
    if (capturing_ != id_of(stream)) return e != 0 ? e : refuse(kIllegalState);
    capturing_ = 0;
    std::vector<Work> work = std::move(captured_);
    captured_.clear();
    if (e != 0) return e;
    const u64 id = new_id();
    graphs_[id] = std::move(work);
    *graph = handle_of(id);
    return 0;
}
int FakeCuda::event_create(Handle* event) {
    if (const int e = enter("event_create")) return e;
    const u64 id = new_id();
    events_[id] = false;
    *event = handle_of(id);
    return 0;
}
int FakeCuda::event_record(Handle event, Handle stream) {
    if (const int e = enter("event_record")) return e;
    const auto found = events_.find(id_of(event));
    if (found == events_.end() || !knows_stream(stream)) return refuse(kInvalidHandle);
    found->second = true;
    return 0;
}
// Not done at the first asking: so that callers see both answers.
int FakeCuda::event_query(Handle event) {
    if (const int e = enter("event_query")) return e;
    const auto found = events_.find(id_of(event));
    if (found == events_.end()) return refuse(kInvalidHandle);
    if (found->second) {
        found->second = false;
        return refuse(static_cast<int>(DeviceErrc::not_ready));
    }
    return 0;
}
int FakeCuda::event_synchronize(Handle event) {
    if (const int e = enter("event_synchronize")) return e;
    if (events_.count(id_of(event)) == 0) return refuse(kInvalidHandle);
    return finish();
}
int FakeCuda::event_destroy(Handle event) {
    if (const int e = enter("event_destroy")) return e;
    return events_.erase(id_of(event)) == 1 ? 0 : refuse(kInvalidHandle);
}
int FakeCuda::graph_instantiate(Handle* exec, Handle graph) {
    if (const int e = enter("graph_instantiate")) return e;
    const auto found = graphs_.find(id_of(graph));
    if (found == graphs_.end()) return refuse(kInvalidValue);
    if (!room_for(graph_bytes)) return refuse(kOutOfMemory);
    const u64 id = new_id();
    execs_[id] = found->second;
    *exec = handle_of(id);
    return 0;
}
int FakeCuda::graph_upload(Handle exec, Handle) {
    if (const int e = enter("graph_upload")) return e;
    return execs_.count(id_of(exec)) == 1 ? 0 : refuse(kInvalidValue);
}
int FakeCuda::graph_launch(Handle exec, Handle stream) {
    if (const int e = enter("graph_launch")) return e;
    const auto found = execs_.find(id_of(exec));
    if (found == execs_.end() || !knows_stream(stream)) return refuse(kInvalidHandle);
    for (const Work& work : found->second) work();
    return 0;
}
int FakeCuda::graph_exec_destroy(Handle exec) {
    if (const int e = enter("graph_exec_destroy")) return e;
    return execs_.erase(id_of(exec)) == 1 ? 0 : refuse(kInvalidValue);
}
int FakeCuda::graph_destroy(Handle graph) {
    if (const int e = enter("graph_destroy")) return e;
    return graphs_.erase(id_of(graph)) == 1 ? 0 : refuse(kInvalidValue);
}

int FakeCuda::blas_create(Handle* handle) {
    if (const int e = enter("blas_create", true)) return e;
    if (!has_context_) return kBlasNotInitialized;
    if (!room_for(blas_bytes)) return kBlasAllocFailed;
    const u64 id = new_id();
    blas_.insert(id);
    *handle = handle_of(id);
    return 0;
}
int FakeCuda::blas_destroy(Handle handle) {
    if (const int e = enter("blas_destroy", true)) return e;
    return blas_.erase(id_of(handle)) == 1 ? 0 : kBlasNotInitialized;
}
int FakeCuda::blas_set_stream(Handle handle, Handle stream) {
    if (const int e = enter("blas_set_stream", true)) return e;
    return blas_.count(id_of(handle)) == 1 && knows_stream(stream) ? 0 : kBlasInvalidValue;
}
int FakeCuda::blas_set_workspace(Handle handle, u64, u64) {
    if (const int e = enter("blas_set_workspace", true)) return e;
    return blas_.count(id_of(handle)) == 1 ? 0 : kBlasNotInitialized;
}
int FakeCuda::blas_gemm(Handle handle, const cuda::Gemm& g) {
    if (const int e = enter("blas_gemm", true)) return e;
    if (blas_.count(id_of(handle)) == 0) return kBlasNotInitialized;
    const auto type = [](int t) {
        switch (t) {
            case cuda::kR16F: return DType::f16;
            case cuda::kR16BF: return DType::bf16;
            case cuda::kR8I: return DType::i8;
            case cuda::kR32I: return DType::i32;
            default: return DType::f32;
        }
    };
    const MatmulArgs a{.in = g.in, .weight = g.weight, .out = g.out,
                       .rows = static_cast<u64>(g.rows), .k = static_cast<u64>(g.k),
                       .n = static_cast<u64>(g.n), .in_type = type(g.in_type),
                       .out_type = type(g.out_type)};
    Work work = [a] { host::matmul(a, kSameAddress); };
    if (capturing_ != 0) {
        captured_.push_back(std::move(work));
    } else if (runs_kernels) {
        work();
    }
    return 0;
}

std::optional<std::string> FakeCuda::nvidia_smi(const std::string&, const std::string& query) {
    if (!has_smi) return std::nullopt;
    const auto mib = [](u64 bytes) { return std::to_string(bytes / kMiB); };
    if (query == cuda::kQueryUsed) return mib(used_bytes() + others_bytes) + "\n";
    if (query == cuda::kQueryProcesses && others_bytes != 0) return "77, " + mib(others_bytes) + "\n";
    return std::string{};
}

int FakeCuda::start(const std::string& name, Handle stream, Work work) {
    if (const int e = enter(name)) return e;
    if (!knows_stream(stream)) return refuse(kInvalidHandle);
    if (capturing_ == id_of(stream)) {
        captured_.push_back(std::move(work));
    } else if (runs_kernels) {
        work();
    }
    return 0;
}

int FakeCuda::load() {
    if (const int e = enter("load")) return e;
    if (!modules_loaded_ && !room_for(module_bytes)) return refuse(kOutOfMemory);
    modules_loaded_ = true;
    return 0;
}
int FakeCuda::rms_norm(const RmsNormArgs& a, void* stream) {
    return start("rms_norm", stream, [a] { host::rms_norm(a, kSameAddress); });
}
int FakeCuda::rope(const RopeArgs& a, void* stream) {
    return start("rope", stream, [a] { host::rope(a, kSameAddress); });
}
int FakeCuda::kv_append(const KvAppendArgs& a, void* stream) {
    return start("kv_append", stream, [a] { host::kv_append(a, kSameAddress); });
}
int FakeCuda::attention(const AttentionArgs& a, Workspace, void* stream) {
    return start("attention", stream, [a] { host::attention(a, kSameAddress); });
}
int FakeCuda::gated_act(const GatedActArgs& a, void* stream) {
    return start("gated_act", stream, [a] { host::gated_act(a, kSameAddress); });
}
int FakeCuda::embed(const EmbedArgs& a, void* stream) {
    return start("embed", stream, [a] { host::embed(a, kSameAddress); });
}
int FakeCuda::gather(const GatherArgs& a, void* stream) {
    return start("gather", stream, [a] { host::gather(a, kSameAddress); });
}
int FakeCuda::sample(const SampleArgs& a, Workspace, void* stream) {
    return start("sample", stream, [a] { host::sample(a, kSameAddress); });
}
int FakeCuda::fill(const FillArgs& a, void* stream) {
    return start("fill", stream, [a] { host::fill(a, kSameAddress); });
}
int FakeCuda::checksum(u64 address, u64 bytes, Workspace work, void* stream) {
    return start("checksum", stream, [=] {
        u64* hash = reinterpret_cast<u64*>(work.address);
        const auto* data = reinterpret_cast<const std::uint8_t*>(address);
        for (u64 i = 0; i < bytes; ++i) *hash = body::fnv_step(*hash, data[i]);
    });
}
int FakeCuda::provoke(DeviceErrc code, void*) {
    if (const int e = enter("provoke")) return e;
    switch (code) {
        case DeviceErrc::illegal_address:
        case DeviceErrc::device_assert: pending_fault_ = static_cast<int>(code); return 0;
        case DeviceErrc::invalid_configuration: return refuse(kInvalidConfiguration);
        default: return refuse(kNotSupported);
    }
}

}  // namespace oomlab::test
