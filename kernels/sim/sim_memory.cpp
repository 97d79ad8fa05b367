#include <cstring>

#include "kernels/sim/detail/chip.hpp"

namespace oomlab::sim {

SimMemory::~SimMemory() = default;

DeviceResult<DeviceAddress> SimMemory::malloc(u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::malloc));
    if (bytes == 0) return DeviceAddress{0};
    // No chip has 2^60 bytes; below that the rounding cannot overflow.
    if (bytes >> 60 != 0) return failure(DeviceErrc::memory_allocation, DeviceCall::malloc, bytes);
    OOMLAB_TRY_VOID(chip_.expect_room(DeviceCall::malloc, chip_.addresses.charge_for(bytes)));
    const auto address = chip_.addresses.malloc(bytes);
    if (!address) {
        return failure(DeviceErrc::memory_allocation, DeviceCall::malloc, bytes,
                       "the host has no memory for this chip");
    }
    return *address;
}

DeviceResult<void> SimMemory::free(DeviceAddress address) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::free));
    if (address == 0) return {};
    // cudaFree waits for the device; while capturing it is refused.
    OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::free));
    chip_.drain();
    return outcome(chip_.addresses.free(address), DeviceCall::free);
}

DeviceResult<MemInfo> SimMemory::mem_info() {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::mem_info));
    return chip_.mem_info();
}

DeviceResult<DeviceAddress> SimMemory::reserve(u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::reserve));
    if (bytes == 0 || bytes >> 60 != 0 || bytes % chip_.props.granularity_bytes != 0) {
        return failure(DeviceErrc::invalid_value, DeviceCall::reserve, bytes);
    }
    const auto address = chip_.addresses.reserve(bytes);
    if (!address) {
        return failure(DeviceErrc::memory_allocation, DeviceCall::reserve, bytes,
                       "the host has no addresses for this chip");
    }
    return *address;
}

DeviceResult<void> SimMemory::release(DeviceAddress address, u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::release));
    return outcome(chip_.addresses.release(address, bytes), DeviceCall::release, bytes);
}

DeviceResult<PhysicalHandle> SimMemory::create(u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::create));
    if (bytes == 0 || bytes >> 60 != 0 || bytes % chip_.props.granularity_bytes != 0) {
        return failure(DeviceErrc::invalid_value, DeviceCall::create, bytes);
    }
    OOMLAB_TRY_VOID(chip_.expect_room(DeviceCall::create, bytes));
    return chip_.addresses.create(bytes);
}

DeviceResult<void> SimMemory::destroy(PhysicalHandle handle) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::destroy));
    return outcome(chip_.addresses.destroy(handle), DeviceCall::destroy);
}

DeviceResult<void> SimMemory::map(DeviceAddress address, u64 bytes, PhysicalHandle handle) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::map));
    return outcome(chip_.addresses.map(address, bytes, handle), DeviceCall::map, bytes);
}

DeviceResult<void> SimMemory::unmap(DeviceAddress address, u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::unmap));
    return outcome(chip_.addresses.unmap(address, bytes), DeviceCall::unmap, bytes);
}

DeviceResult<void*> SimMemory::host_alloc(u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::host_alloc));
    if (bytes == 0) return static_cast<void*>(nullptr);
    HostRange range(bytes, HostRange::Access::read_write);
    char* const data = range.data();
    if (data == nullptr) {
        return failure(DeviceErrc::memory_allocation, DeviceCall::host_alloc, bytes);
    }
    // Pinned memory is resident from the start: every page is touched, so the host really pays.
    std::memset(data, 0, bytes);
    pinned_.emplace(data, std::move(range));
    return static_cast<void*>(data);
}

DeviceResult<void> SimMemory::host_free(void* pointer) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::host_free));
    if (pointer == nullptr || pinned_.erase(pointer) == 1) return {};
    return failure(DeviceErrc::invalid_value, DeviceCall::host_free);
}

// Copies wait for the work before them, as cudaMemcpy on pageable memory does.
DeviceResult<void> SimMemory::enter_copy(DeviceAddress address, u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::copy));
    OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::copy));
    if (!chip_.addresses.accessible(address, bytes)) {
        return failure(DeviceErrc::invalid_value, DeviceCall::copy, bytes);
    }
    chip_.drain();
    if (chip_.profile.host_bytes_per_s > 0) {
        chip_.clock.spend_s(static_cast<double>(bytes) / chip_.profile.host_bytes_per_s);
    }
    return {};
}

DeviceResult<void> SimMemory::copy_to_device(DeviceAddress to, const void* from, u64 bytes) {
    OOMLAB_TRY_VOID(enter_copy(to, bytes));
    if (bytes != 0 && chip_.profile.backed) {
        std::memcpy(chip_.addresses.host(to, bytes), from, bytes);
    }
    return {};
}

DeviceResult<void> SimMemory::copy_to_host(void* to, DeviceAddress from, u64 bytes) {
    OOMLAB_TRY_VOID(enter_copy(from, bytes));
    if (bytes == 0) return {};
    if (chip_.profile.backed) {
        std::memcpy(to, chip_.addresses.host(from, bytes), bytes);
    } else {
        // Nothing was stored: what comes back is zeros, never what the host had there.
        std::memset(to, 0, bytes);
    }
    return {};
}

}  // namespace oomlab::sim
