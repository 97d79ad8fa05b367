// From the address of an allocation to its block: open addressing, linear probing, removal by
// shifting back, at most half full. A slot is eight bytes, the top of the hash and the block's id:
// the address itself is in the block, which the caller touches anyway. Never allocates while the
// number of live blocks stays below its highest. Not thread safe.
#pragma once

#include <vector>

#include "labs/server/memory/detail/block.hpp"

namespace oomlab::memory {

class AddressMap {
  public:
    explicit AddressMap(Block* all) : all_(all), slots_(u64{1} << kFirstLog2) {}

    // REQUIRES: its address is not here yet.
    void insert(const Block* block) {
        if (2 * (size_ + 1) > slots_.size()) grow();
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

    struct Slot {
        u32 tag = 0;
        BlockId id = 0;  // 0: empty
    };

    static u32 tag_of(u64 address) {
        return static_cast<u32>((address >> 9) * 0x9e3779b97f4a7c15ULL >> 32);
    }
    u64 mask() const { return slots_.size() - 1; }
    u64 home_of(u32 tag) const { return tag >> shift_; }
    // Where it is, or the empty slot that shows it is not here.
    u64 locate(u64 address) const {
        const u32 tag = tag_of(address);
        u64 at = home_of(tag);
        while (slots_[at].id != 0) {
            if (slots_[at].tag == tag && all_[slots_[at].id].address == address) break;
            at = (at + 1) & mask();
        }
        return at;
    }
    void place(Slot slot) {
        u64 at = home_of(slot.tag);
        while (slots_[at].id != 0) at = (at + 1) & mask();
        slots_[at] = slot;
    }
    // Entries behind the gap move up as far as their home allows.
    void close_gap(u64 gap) {
        for (u64 at = (gap + 1) & mask(); slots_[at].id != 0; at = (at + 1) & mask()) {
            const u64 from_home = (at - home_of(slots_[at].tag)) & mask();
            const u64 from_gap = (at - gap) & mask();
            if (from_home < from_gap) continue;
            slots_[gap] = slots_[at];
            gap = at;
        }
        slots_[gap] = {};
    }
    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        --shift_;
        for (const Slot& slot : old) {
            if (slot.id != 0) place(slot);
        }
    }

    Block* all_;
    std::vector<Slot> slots_;
    u32 shift_ = 32 - kFirstLog2;
    u64 size_ = 0;
};

}  // namespace oomlab::memory
