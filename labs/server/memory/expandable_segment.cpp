#include "labs/server/memory/detail/expandable_segment.hpp"

#include <utility>

namespace oomlab::memory {

DeviceResult<std::unique_ptr<ExpandableSegment>> ExpandableSegment::open(Device& device,
                                                                         u64 page_bytes) {
    // One eighth more than there is: room to move pages from the front to the end.
    const u64 total_bytes = device.props().total_bytes;
    const u64 bytes = round_up(total_bytes + total_bytes / 8, page_bytes);
    OOMLAB_TRY(address, device.memory().reserve(bytes));
    return std::make_unique<ExpandableSegment>(device, page_bytes, address, bytes);
}

DeviceResult<AddressRange> ExpandableSegment::map(AddressRange range) {
    OOMLAB_CHECK((range.address - address) % page_bytes == 0);
    const u64 first = (range.address - address) / page_bytes;
    const u64 last = div_ceil(range.address + range.bytes - address, page_bytes);
    if (pages_.size() < last) pages_.resize(last, 0);
    // All pages are created before the first is mapped, as the original does. One that is there
    // already could not be unmapped after an earlier failure: it serves again.
    std::vector<std::pair<u64, PhysicalHandle>> made;
    std::optional<DeviceError> error;
    for (u64 page = first; page < last && !error; ++page) {
        if (pages_[page] != 0) continue;
        if (auto handle = device.memory().create(page_bytes)) {
            made.emplace_back(page, *handle);
        } else {
            error = std::move(handle.error());
        }
    }
    for (const auto& [page, handle] : made) {
        if (error) break;
        auto mapped = device.memory().map(address + page * page_bytes, page_bytes, handle);
        if (mapped) {
            pages_[page] = handle;
        } else {
            error = std::move(mapped.error());
        }
    }
    if (!error) return AddressRange{range.address, (last - first) * page_bytes};
    for (const auto& [page, handle] : made) {
        if (pages_[page] != 0) {
            (void)unmap_page(page);  // where that fails too, the page waits to serve again
        } else if (!device.memory().destroy(handle)) {
            stranded_.push_back(handle);
        }
    }
    return fail(*std::move(error));
}

bool ExpandableSegment::unmap_page(u64 page) {
    if (!device.memory().unmap(address + page * page_bytes, page_bytes)) return false;
    const PhysicalHandle handle = std::exchange(pages_[page], 0);
    if (!device.memory().destroy(handle)) stranded_.push_back(handle);
    return true;
}

AddressRange ExpandableSegment::unmap(AddressRange range) {
    const u64 first = div_ceil(range.address - address, page_bytes);
    const u64 last = (range.address + range.bytes - address) / page_bytes;
    u64 page = first;
    while (page < last && unmap_page(page)) ++page;
    return {address + first * page_bytes, page > first ? (page - first) * page_bytes : 0};
}

void ExpandableSegment::reclaim() {
    std::erase_if(stranded_, [&](PhysicalHandle handle) {
        return device.memory().destroy(handle).has_value();
    });
}

bool ExpandableSegment::close() {
    bool all = true;
    for (u64 page = 0; page < pages_.size(); ++page) {
        if (pages_[page] != 0) all = unmap_page(page) && all;
    }
    reclaim();
    if (all && reserved_) reserved_ = !device.memory().release(address, bytes);
    return all && !reserved_ && stranded_.empty();
}

}  // namespace oomlab::memory
