#include "kernels/sim/detail/address_space.hpp"

#include <sys/mman.h>

#include <utility>

namespace oomlab::sim {
namespace {

// Where device addresses begin: looks like a CUDA address, is never a host one of ours.
constexpr DeviceAddress kFirstAddress = 0x7000'0000'0000;

template <class Map>
auto find_at_or_before(Map& map, DeviceAddress address) {
    auto it = map.upper_bound(address);
    return it == map.begin() ? map.end() : std::prev(it);
}

}  // namespace

HostRange::HostRange(u64 bytes, Access access) : bytes_(bytes) {
    const int protection = access == Access::none ? PROT_NONE : PROT_READ | PROT_WRITE;
    void* p =
        ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) data_ = static_cast<char*>(p);
}
HostRange::~HostRange() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
}
HostRange::HostRange(HostRange&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
HostRange& HostRange::operator=(HostRange&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}
bool HostRange::open(u64 offset, u64 bytes) {
    return ::mprotect(data_ + offset, bytes, PROT_READ | PROT_WRITE) == 0;
}
void HostRange::close(u64 offset, u64 bytes) {
    OOMLAB_CHECK(::madvise(data_ + offset, bytes, MADV_DONTNEED) == 0);
    OOMLAB_CHECK(::mprotect(data_ + offset, bytes, PROT_NONE) == 0);
}

AddressSpace::AddressSpace(u64 granularity_bytes, bool backed)
    : granularity_bytes_(granularity_bytes), backed_(backed), next_address_(kFirstAddress) {
    OOMLAB_CHECK(granularity_bytes != 0 && (granularity_bytes & (granularity_bytes - 1)) == 0);
}

DeviceAddress AddressSpace::take_addresses(u64 bytes) {
    const DeviceAddress address = next_address_;
    // One empty page behind each range keeps neighbours apart.
    next_address_ = checked_add(next_address_, charge_for(bytes) + granularity_bytes_);
    return address;
}

std::optional<DeviceAddress> AddressSpace::malloc(u64 bytes) {
    Allocation allocation{.bytes = bytes, .host = {}};
    if (backed_) {
        allocation.host = HostRange(bytes, HostRange::Access::read_write);
        if (allocation.host.data() == nullptr) return std::nullopt;
    }
    const DeviceAddress address = take_addresses(bytes);
    used_bytes_ += charge_for(bytes);
    allocations_.emplace(address, std::move(allocation));
    return address;
}

DeviceErrc AddressSpace::free(DeviceAddress address) {
    const auto it = allocations_.find(address);
    if (it == allocations_.end()) return DeviceErrc::invalid_value;
    used_bytes_ = checked_sub(used_bytes_, charge_for(it->second.bytes));
    allocations_.erase(it);
    return DeviceErrc::success;
}

std::optional<DeviceAddress> AddressSpace::reserve(u64 bytes) {
    Reservation reservation{.bytes = bytes, .host = {}, .mappings = {}};
    if (backed_) {
        reservation.host = HostRange(bytes, HostRange::Access::none);
        if (reservation.host.data() == nullptr) return std::nullopt;
    }
    const DeviceAddress address = take_addresses(bytes);
    reservations_.emplace(address, std::move(reservation));
    return address;
}

DeviceErrc AddressSpace::release(DeviceAddress address, u64 bytes) {
    const auto it = reservations_.find(address);
    if (it == reservations_.end() || it->second.bytes != bytes) return DeviceErrc::invalid_value;
    if (!it->second.mappings.empty()) return DeviceErrc::invalid_value;
    reservations_.erase(it);
    return DeviceErrc::success;
}

PhysicalHandle AddressSpace::create(u64 bytes) {
    const PhysicalHandle handle = next_handle_++;
    handles_.emplace(handle, Handle{.bytes = bytes});
    used_bytes_ += charge_for(bytes);
    return handle;
}

DeviceErrc AddressSpace::destroy(PhysicalHandle handle) {
    const auto it = handles_.find(handle);
    if (it == handles_.end() || it->second.destroyed) return DeviceErrc::invalid_value;
    it->second.destroyed = true;
    drop_if_unused(handle);
    return DeviceErrc::success;
}

// Memory lives as long as its handle or a mapping of it does.
void AddressSpace::drop_if_unused(PhysicalHandle handle) {
    const auto it = handles_.find(handle);
    OOMLAB_CHECK(it != handles_.end());
    if (!it->second.destroyed || it->second.mappings != 0) return;
    used_bytes_ = checked_sub(used_bytes_, charge_for(it->second.bytes));
    handles_.erase(it);
}

AddressSpace::Reservation* AddressSpace::reservation_of(DeviceAddress address, u64 bytes) {
    const auto it = find_at_or_before(reservations_, address);
    if (it == reservations_.end()) return nullptr;
    const u64 offset = address - it->first;
    if (offset > it->second.bytes || bytes > it->second.bytes - offset) return nullptr;
    return &it->second;
}

DeviceErrc AddressSpace::map(DeviceAddress address, u64 bytes, PhysicalHandle handle) {
    const auto physical = handles_.find(handle);
    if (physical == handles_.end() || physical->second.destroyed) return DeviceErrc::invalid_value;
    if (bytes == 0 || bytes != physical->second.bytes) return DeviceErrc::invalid_value;
    if (address % granularity_bytes_ != 0) return DeviceErrc::invalid_value;
    Reservation* reservation = reservation_of(address, bytes);
    if (reservation == nullptr) return DeviceErrc::invalid_value;
    auto& mappings = reservation->mappings;
    const auto next = mappings.lower_bound(address);
    if (next != mappings.end() && next->first < address + bytes) return DeviceErrc::invalid_value;
    if (next != mappings.begin()) {
        const auto& [start, previous] = *std::prev(next);
        if (start + previous.bytes > address) return DeviceErrc::invalid_value;
    }
    if (backed_) {
        // One place in host memory for each address: a handle mapped twice would need two.
        if (physical->second.mappings != 0) return DeviceErrc::not_supported;
        const auto start = find_at_or_before(reservations_, address)->first;
        if (!reservation->host.open(address - start, bytes)) return DeviceErrc::operating_system;
    }
    mappings.emplace(address, Mapping{.bytes = bytes, .handle = handle});
    ++physical->second.mappings;
    return DeviceErrc::success;
}

DeviceErrc AddressSpace::unmap(DeviceAddress address, u64 bytes) {
    Reservation* reservation = reservation_of(address, bytes);
    if (reservation == nullptr || bytes == 0) return DeviceErrc::invalid_value;
    // Whole mappings only, and no gap between them.
    auto& mappings = reservation->mappings;
    const auto first = mappings.find(address);
    auto last = first;
    DeviceAddress end = address;
    while (last != mappings.end() && last->first == end && end < address + bytes) {
        end += last->second.bytes;
        ++last;
    }
    if (end != address + bytes) return DeviceErrc::invalid_value;
    for (auto it = first; it != last; ++it) {
        Handle& physical = handles_.at(it->second.handle);
        --physical.mappings;
        drop_if_unused(it->second.handle);
    }
    mappings.erase(first, last);
    if (backed_) {
        const auto start = find_at_or_before(reservations_, address)->first;
        reservation->host.close(address - start, bytes);
    }
    return DeviceErrc::success;
}

bool AddressSpace::covered(const Reservation& r, DeviceAddress address, u64 bytes) {
    DeviceAddress reached = address;
    auto it = find_at_or_before(r.mappings, address);
    for (; it != r.mappings.end() && it->first <= reached; ++it) {
        const DeviceAddress end = it->first + it->second.bytes;
        if (end <= reached) return false;
        reached = end;
        if (reached - address >= bytes) return true;
    }
    return false;
}

bool AddressSpace::accessible(DeviceAddress address, u64 bytes) const {
    if (bytes == 0) return true;
    const auto it = find_at_or_before(allocations_, address);
    if (it != allocations_.end()) {
        const u64 offset = address - it->first;
        if (offset < it->second.bytes && bytes <= it->second.bytes - offset) return true;
    }
    const auto r = find_at_or_before(reservations_, address);
    return r != reservations_.end() && covered(r->second, address, bytes);
}

char* AddressSpace::host(DeviceAddress address, u64 bytes) const {
    OOMLAB_CHECK(backed_);
    if (!accessible(address, bytes)) return nullptr;
    const auto it = find_at_or_before(allocations_, address);
    if (it != allocations_.end() && address - it->first < it->second.bytes) {
        return it->second.host.data() + (address - it->first);
    }
    const auto r = find_at_or_before(reservations_, address);
    return r == reservations_.end() ? nullptr : r->second.host.data() + (address - r->first);
}

}  // namespace oomlab::sim
