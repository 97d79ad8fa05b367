#include "labs/server/kv/buddy.hpp"

#include <bit>

namespace oomlab::server {

BuddyPool::BuddyPool(u64 slots) : slots_(slots), free_(64) {
    u64 at = 0;
    for (unsigned power = 63; power-- > 0;) {
        if ((slots >> power & 1) == 0) continue;
        free_[power].insert(at);
        roots_[at] = power;
        at += u64{1} << power;
    }
}

std::optional<u64> BuddyPool::allocate(u64 slots) {
    const unsigned want = static_cast<unsigned>(std::countr_zero(std::bit_ceil(std::max<u64>(1, slots))));
    unsigned power = want;
    while (power < free_.size() && free_[power].empty()) ++power;
    if (power >= free_.size()) return std::nullopt;
    const u64 slot = *free_[power].begin();
    free_[power].erase(free_[power].begin());
    while (power > want) {
        --power;
        free_[power].insert(slot + (u64{1} << power));
    }
    used_[slot] = want;
    taken_ += u64{1} << want;
    return slot;
}

void BuddyPool::free(u64 slot) {
    const auto found = used_.find(slot);
    OOMLAB_CHECK(found != used_.end());
    unsigned power = found->second;
    used_.erase(found);
    taken_ -= u64{1} << power;
    const auto root = std::prev(roots_.upper_bound(slot));
    while (power < root->second) {
        const u64 buddy = root->first + ((slot - root->first) ^ (u64{1} << power));
        const auto twin = free_[power].find(buddy);
        if (twin == free_[power].end()) break;
        free_[power].erase(twin);
        slot = std::min(slot, buddy);
        ++power;
    }
    free_[power].insert(slot);
}

}  // namespace oomlab::server
