#include "kernels/cuda/detail/parts.hpp"

namespace oomlab::cuda {

DeviceResult<DeviceAddress> CudaMemory::malloc(u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    if (bytes == 0) return DeviceAddress{0};
    OOMLAB_TRY_VOID(s_.expect_within_limit(DeviceCall::malloc, bytes));
    u64 address = 0;
    OOMLAB_TRY_VOID(s_.check(s_.api.malloc(&address, bytes), DeviceCall::malloc, bytes));
    s_.allocations[address] = bytes;
    s_.allocated_bytes += bytes;
    return address;
}

DeviceResult<void> CudaMemory::free(DeviceAddress address) {
    OOMLAB_TRY_VOID(s_.enter());
    if (address == 0) return {};
    OOMLAB_TRY_VOID(s_.check(s_.api.free(address), DeviceCall::free));
    if (const auto found = s_.allocations.find(address); found != s_.allocations.end()) {
        s_.allocated_bytes -= found->second;
        s_.allocations.erase(found);
    }
    return {};
}

DeviceResult<MemInfo> CudaMemory::mem_info() {
    OOMLAB_TRY_VOID(s_.enter());
    return s_.mem_info();
}

DeviceResult<void> CudaMemory::expect_grain(DeviceCall call, u64 bytes) {
    if (bytes != 0 && bytes % s_.props.granularity_bytes == 0) return {};
    return fail(DeviceError{.code = DeviceErrc::invalid_value, .call = call, .bytes = bytes,
                            .detail = "not a multiple of the granularity"});
}

DeviceResult<DeviceAddress> CudaMemory::reserve(u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(expect_grain(DeviceCall::reserve, bytes));
    u64 address = 0;
    OOMLAB_TRY_VOID(s_.check(s_.api.address_reserve(&address, bytes), DeviceCall::reserve, bytes));
    s_.ranges[address] = bytes;
    return address;
}

DeviceResult<void> CudaMemory::release(DeviceAddress address, u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(s_.check(s_.api.address_free(address, bytes), DeviceCall::release, bytes));
    s_.ranges.erase(address);
    return {};
}

DeviceResult<PhysicalHandle> CudaMemory::create(u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(expect_grain(DeviceCall::create, bytes));
    OOMLAB_TRY_VOID(s_.expect_within_limit(DeviceCall::create, bytes));
    u64 handle = 0;
    OOMLAB_TRY_VOID(
        s_.check(s_.api.mem_create(&handle, bytes, s_.index), DeviceCall::create, bytes));
    s_.physical[handle] = {.bytes = bytes};
    return handle;
}

// The driver keeps memory until its handle is released and its last mapping is gone.
void CudaMemory::forget_if_gone(PhysicalHandle handle) {
    const auto found = s_.physical.find(handle);
    if (found == s_.physical.end()) return;
    if (found->second.destroyed && found->second.mappings == 0) s_.physical.erase(found);
}

DeviceResult<void> CudaMemory::destroy(PhysicalHandle handle) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(s_.check(s_.api.mem_release(handle), DeviceCall::destroy));
    if (const auto found = s_.physical.find(handle); found != s_.physical.end()) {
        found->second.destroyed = true;
    }
    forget_if_gone(handle);
    return {};
}

DeviceResult<void> CudaMemory::map(DeviceAddress address, u64 bytes, PhysicalHandle handle) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(s_.check(s_.api.mem_map(address, bytes, handle), DeviceCall::map, bytes));
    const auto accessible = s_.check(s_.api.mem_set_access(address, bytes, s_.index),
                                     DeviceCall::map, bytes, "cuMemSetAccess");
    if (!accessible) {
        s_.api.mem_unmap(address, bytes);   // all or nothing
        return accessible;
    }
    s_.mappings[address] = {.bytes = bytes, .handle = handle};
    ++s_.physical[handle].mappings;
    return {};
}

DeviceResult<void> CudaMemory::unmap(DeviceAddress address, u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(s_.check(s_.api.mem_unmap(address, bytes), DeviceCall::unmap, bytes));
    auto mapping = s_.mappings.lower_bound(address);
    while (mapping != s_.mappings.end() && mapping->first < address + bytes) {
        const u64 handle = mapping->second.handle;
        --s_.physical[handle].mappings;
        mapping = s_.mappings.erase(mapping);
        forget_if_gone(handle);
    }
    return {};
}

DeviceResult<void*> CudaMemory::host_alloc(u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    void* pointer = nullptr;
    OOMLAB_TRY_VOID(s_.check(s_.api.host_alloc(&pointer, bytes), DeviceCall::host_alloc, bytes));
    s_.pinned.insert(pointer);
    return pointer;
}

DeviceResult<void> CudaMemory::host_free(void* pointer) {
    OOMLAB_TRY_VOID(s_.enter());
    if (pointer == nullptr) return {};
    OOMLAB_TRY_VOID(s_.check(s_.api.free_host(pointer), DeviceCall::host_free));
    s_.pinned.erase(pointer);
    return {};
}

DeviceResult<void> CudaMemory::copy_to_device(DeviceAddress to, const void* from, u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    const Handle stream = s_.current_stream();
    OOMLAB_TRY_VOID(s_.check(s_.api.copy_to_device(to, from, bytes, stream), DeviceCall::copy, bytes));
    return s_.check(s_.api.stream_synchronize(stream), DeviceCall::copy, bytes);
}

DeviceResult<void> CudaMemory::copy_to_host(void* to, DeviceAddress from, u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    const Handle stream = s_.current_stream();
    OOMLAB_TRY_VOID(s_.check(s_.api.copy_to_host(to, from, bytes, stream), DeviceCall::copy, bytes));
    return s_.check(s_.api.stream_synchronize(stream), DeviceCall::copy, bytes);
}

}  // namespace oomlab::cuda
