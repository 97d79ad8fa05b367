// From the address of an allocation to its block: open addressing, linear probing, removal by
// shifting back, at most half full. A slot is eight bytes, the top of the hash and the block's id:
// the address itself is in the block, which the caller touches anyway. Never allocates while the
// number of live blocks stays below its highest. Not thread safe.
#pragma once

#include <memory>
#include <utility>

#include "labs/server/memory/detail/block.hpp"

namespace oomlab::memory {

class AddressMap {
  public:
    explicit AddressMap(Block* all) : all_(all), slots_(std::make_unique<Slot[]>(kFirstSlots)) {}

    // REQUIRES: its address is not here yet.
    void insert(const Block* block) {
        if (2 * (size_ + 1) > mask_ + 1) grow();
        place({tag_of(block->address), static_cast<BlockId>(block - all_)});
        ++size_;
    }
    // Null when it is not here.
    Block* find(u64 address) const {
        const u64 at = locate(address);
        return slots_[at].id == 0 ? nullptr : &all_[slots_[at].id];
    }
    // Removes and returns it; null when it is not here.
    Block* take(u64 address) {
        const u64 at = locate(address);
        if (slots_[at].id == 0) return nullptr;
        Block* const block = &all_[slots_[at].id];
        close_gap(at);
        --size_;
        return block;
    }
    u64 size() const { return size_; }

  private:
    static constexpr u32 kFirstLog2 = 10;
    static constexpr u64 kFirstSlots = u64{1} << kFirstLog2;

    struct Slot {
        u32 tag = 0;
        BlockId id = 0;  // 0: empty
    };

    static u32 tag_of(u64 address) {
        return static_cast<u32>((address >> 9) * 0x9e3779b97f4a7c15ULL >> 32);
    }
    u64 home_of(u32 tag) const { return tag >> shift_; }
    // Where it is, or the empty slot that shows it is not here.
    u64 locate(u64 address) const {
        const u32 tag = tag_of(address);
        u64 at = home_of(tag);
        while (slots_[at].id != 0) {
            if (slots_[at].tag == tag && all_[slots_[at].id].address == address) break;
            at = (at + 1) & mask_;
        }
        return at;
    }
    void place(Slot slot) {
        u64 at = home_of(slot.tag);
        while (slots_[at].id != 0) at = (at + 1) & mask_;
        slots_[at] = slot;
    }
    // Entries behind the gap move up as far as their home allows.
    void close_gap(u64 gap) {
        for (u64 at = (gap + 1) & mask_; slots_[at].id != 0; at = (at + 1) & mask_) {
            const u64 from_home = (at - home_of(slots_[at].tag)) & mask_;
            const u64 from_gap = (at - gap) & mask_;
            if (from_home < from_gap) continue;
            slots_[gap] = slots_[at];
            gap = at;
        }
        slots_[gap] = {};
    }
    void grow() {
        const u64 before = mask_ + 1;
        auto old = std::move(slots_);
        slots_ = std::make_unique<Slot[]>(2 * before);
        mask_ = 2 * before - 1;
        --shift_;
        for (u64 at = 0; at < before; ++at) {
            if (old[at].id != 0) place(old[at]);
        }
    }

    Block* all_;
    std::unique_ptr<Slot[]> slots_;
    u64 mask_ = kFirstSlots - 1;
    u32 shift_ = 32 - kFirstLog2;
    u64 size_ = 0;
};

}  // namespace oomlab::memory
