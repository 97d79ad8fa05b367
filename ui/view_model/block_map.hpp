// One picture of the allocator's segments and blocks, and of the KV pool, as a trace holds them.
//
// A map is parsed when it is looked at and never kept: the trace's file holds the bytes. Anything
// that does not add up (a block outside its segment, a count beyond the tail) makes the map empty
// with a reason, never a guess.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "labs/trace/reader.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::view {

struct BlockMap {
    i64 time_us = 0;
    std::vector<trace::MapSegment> segments;   // by address
    std::vector<trace::MapBlock> blocks;       // in order; a segment names its first and how many
    u32 truncated_blocks = 0;                  // the writer left these out
    std::string problem;                       // why it is empty, else ""
};
BlockMap parse_block_map(i64 time_us, std::span<const std::byte> payload);

// What of the free bytes is of use to a request of `asked_bytes`, in the pool that would serve it.
struct MapFigures {
    u64 reserved_bytes = 0, in_use_bytes = 0, pending_bytes = 0;
    u64 free_bytes = 0;          // in the cache, all holes together
    u64 largest_hole_bytes = 0;
    u64 lost_bytes = 0;          // free, yet in holes smaller than what was asked
    u64 holes = 0;
    std::array<u64, kOwners> owner_bytes{};
};
MapFigures map_figures(const BlockMap& map, u64 asked_bytes);

struct KvMap {
    i64 time_us = 0;
    u32 blocks_total = 0, blocks_used = 0, blocks_cached = 0;
    std::vector<trace::KvOwner> owners;   // by first block
    std::string problem;
};
KvMap parse_kv_map(i64 time_us, std::span<const std::byte> payload);

}  // namespace oomlab::view
