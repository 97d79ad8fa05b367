// A range of device addresses that grows and shrinks page by page.
//
// It reserves 9/8 of the device's memory in addresses, which cost nothing, and maps physical pages
// of one size into it: 2 MiB for the small pool, the large segment's size for the large one. Every
// page is a physical handle of its own. Owns its pages; close() gives everything back.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/device/device.hpp"

namespace oomlab::memory {

struct AddressRange {
    u64 address = 0;
    u64 bytes = 0;
};

struct ExpandableSegment {
    // On failure: the driver refused the addresses.
    static DeviceResult<std::unique_ptr<ExpandableSegment>> open(Device& device, u64 page_bytes);

    // Maps the pages that cover the range. REQUIRES: none of them is mapped, the range begins at a
    // page. Returns what is mapped now. On failure nothing is: pages made for it are given back.
    DeviceResult<AddressRange> map(AddressRange range);
    // Unmaps the pages that lie wholly inside. Returns what was unmapped; less than possible, down
    // to nothing, when the driver refuses.
    AddressRange unmap(AddressRange range);
    // Tries once more what the driver refused to take back.
    void reclaim();
    // Gives back pages and addresses. Returns whether the driver took all; what it refused is tried
    // again by the next call.
    bool close();

    u64 end() const { return address + bytes; }

    Device& device;
    const u64 page_bytes;
    const u64 address;
    const u64 bytes;

    ExpandableSegment(Device& chip, u64 page, u64 first, u64 size)
        : device(chip), page_bytes(page), address(first), bytes(size) {}

  private:
    bool unmap_page(u64 page);

    bool reserved_ = true;
    std::vector<PhysicalHandle> pages_;     // 0: not mapped
    std::vector<PhysicalHandle> stranded_;  // unmapped, but the driver would not take them back
};

}  // namespace oomlab::memory
