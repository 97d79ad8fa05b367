// Who has which device addresses, and how much physical memory that takes.
//
// Addresses only ever grow, and two allocations never touch: a stale address is never taken for a
// new one, and two runs hand out the same ones. The driver's grain is counted: an allocation costs
// its size rounded up to the granularity, because cudaMalloc takes physical memory in such pages
// (a real driver also packs several small allocations into one page; nothing here asks for small
// ones often enough to matter).
//
// With `backed`, every range has host memory behind it. Not thread safe.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "kernels/device/device.hpp"

namespace oomlab::sim {

// Anonymous host memory. Move-only; gives the memory back in its destructor.
class HostRange {
  public:
    enum class Access { none, read_write };

    HostRange() = default;
    // On failure (no address space): data() is null.
    HostRange(u64 bytes, Access access);
    ~HostRange();
    HostRange(HostRange&& other) noexcept;
    HostRange& operator=(HostRange&& other) noexcept;

    char* data() const { return data_; }
    bool open(u64 offset, u64 bytes);
    // The pages go back to the host; a later open() finds zeros.
    void close(u64 offset, u64 bytes);

  private:
    char* data_ = nullptr;
    u64 bytes_ = 0;
};

class AddressSpace {
  public:
    AddressSpace(u64 granularity_bytes, bool backed);

    // Physical memory taken: allocations, and handles that still exist or are mapped.
    u64 used_bytes() const { return used_bytes_; }
    // What malloc(bytes) or create(bytes) would take.
    u64 charge_for(u64 bytes) const { return round_up(bytes, granularity_bytes_); }

    // The callers have checked that the memory is there. nullopt: the host has no memory for it.
    std::optional<DeviceAddress> malloc(u64 bytes);
    DeviceErrc free(DeviceAddress address);

    std::optional<DeviceAddress> reserve(u64 bytes);
    DeviceErrc release(DeviceAddress address, u64 bytes);
    PhysicalHandle create(u64 bytes);
    DeviceErrc destroy(PhysicalHandle handle);
    DeviceErrc map(DeviceAddress address, u64 bytes, PhysicalHandle handle);
    DeviceErrc unmap(DeviceAddress address, u64 bytes);

    // Whether all of [address, address + bytes) is memory that may be touched.
    bool accessible(DeviceAddress address, u64 bytes) const;
    // Its place on the host, null when there is none. REQUIRES: backed.
    char* host(DeviceAddress address, u64 bytes) const;

  private:
    struct Allocation {
        u64 bytes = 0;
        HostRange host;
    };
    struct Mapping {
        u64 bytes = 0;
        PhysicalHandle handle = 0;
    };
    struct Reservation {
        u64 bytes = 0;
        HostRange host;
        std::map<DeviceAddress, Mapping> mappings;
    };
    struct Handle {
        u64 bytes = 0;
        u64 mappings = 0;
        bool destroyed = false;
    };

    DeviceAddress take_addresses(u64 bytes);
    void drop_if_unused(PhysicalHandle handle);
    Reservation* reservation_of(DeviceAddress address, u64 bytes);
    static bool covered(const Reservation& r, DeviceAddress address, u64 bytes);

    u64 granularity_bytes_;
    bool backed_;
    u64 used_bytes_ = 0;
    DeviceAddress next_address_;
    PhysicalHandle next_handle_ = 1;
    std::map<DeviceAddress, Allocation> allocations_;
    std::map<DeviceAddress, Reservation> reservations_;
    std::unordered_map<PhysicalHandle, Handle> handles_;
};

}  // namespace oomlab::sim
