// Contiguous reservations, as engines made them before paging: a buddy system over the KV slots of
// the pool. A teaching mode of the KV pool ([server] kv_reservation = max | pow2 | oracle): what
// such a reservation wastes is the reason for paging.
//
// A pool that is no power of two is a row of powers of two. A request takes the smallest power that
// holds it; what is rounded up, and what is left in holes too small, is waste outside any request.
// Invariant: blocks of one size never overlap, and two free buddies are always one block.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::server {

class BuddyPool {
  public:
    explicit BuddyPool(u64 slots);
    // First slot of a block of at least `slots`, or nothing.
    std::optional<u64> allocate(u64 slots);
    // REQUIRES: a slot from allocate(), not freed since.
    void free(u64 slot);
    u64 slots() const { return slots_; }
    u64 taken() const { return taken_; }   // rounded up

  private:
    u64 slots_, taken_ = 0;
    std::vector<std::set<u64>> free_;      // by power of two
    std::map<u64, unsigned> used_;         // first slot -> power
    std::map<u64, unsigned> roots_;        // the row of powers
};

}  // namespace oomlab::server
