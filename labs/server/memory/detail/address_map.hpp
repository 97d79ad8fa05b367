// From the address of an allocation to its block: open addressing, linear probing, removal by
// shifting back, at most half full. Never allocates while the number of live blocks stays below its
// highest. Not thread safe.
#pragma once

#include <vector>

#include "labs/server/memory/detail/block.hpp"

namespace oomlab::memory {

class AddressMap {
  public:
    AddressMap() : slots_(kFirstSlots), shift_(64 - kFirstLog2) {}

    // REQUIRES: the address is not here yet, and not 0.
    void insert(u64 address, Block* block) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        u64 i = home_of(address);
        while (slots_[i].address != 0) i = (i + 1) & mask();
        slots_[i] = {address, block};
        ++size_;
    }
    // Null when it is not here.
    Block* find(u64 address) const {
        for (u64 i = home_of(address); slots_[i].address != 0; i = (i + 1) & mask()) {
            if (slots_[i].address == address) return slots_[i].block;
        }
        return nullptr;
    }
    // Removes and returns it; null when it is not here.
    Block* take(u64 address) {
        u64 i = home_of(address);
        while (slots_[i].address != address) {
            if (slots_[i].address == 0) return nullptr;
            i = (i + 1) & mask();
        }
        Block* const block = slots_[i].block;
        close_gap(i);
        --size_;
        return block;
    }
    u64 size() const { return size_; }

  private:
    static constexpr u64 kFirstLog2 = 10;
    static constexpr u64 kFirstSlots = u64{1} << kFirstLog2;

    struct Slot {
        u64 address = 0;
        Block* block = nullptr;
    };

    u64 mask() const { return slots_.size() - 1; }
    u64 home_of(u64 address) const { return (address >> 9) * 0x9e3779b97f4a7c15ULL >> shift_; }
    // Entries behind the gap move up as far as their home allows.
    void close_gap(u64 gap) {
        for (u64 i = (gap + 1) & mask(); slots_[i].address != 0; i = (i + 1) & mask()) {
            const u64 distance_home = (i - home_of(slots_[i].address)) & mask();
            const u64 distance_gap = (i - gap) & mask();
            if (distance_home < distance_gap) continue;
            slots_[gap] = slots_[i];
            gap = i;
        }
        slots_[gap] = {};
    }
    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        --shift_;
        size_ = 0;
        for (const Slot& slot : old) {
            if (slot.address != 0) insert(slot.address, slot.block);
        }
    }

    std::vector<Slot> slots_;
    u64 shift_;
    u64 size_ = 0;
};

}  // namespace oomlab::memory
