#include "ui/view_model/block_map.hpp"

#include <algorithm>
#include <cstring>

namespace oomlab::view {
namespace {

// Copies `count` structs from the front of `bytes`; false when they are not all there.
template <class T>
bool take(std::span<const std::byte>& bytes, std::size_t count, std::vector<T>& into) {
    if (count > bytes.size() / sizeof(T)) return false;
    into.resize(count);
    if (count > 0) std::memcpy(into.data(), bytes.data(), count * sizeof(T));
    bytes = bytes.subspan(count * sizeof(T));
    return true;
}

BlockMap broken(i64 time_us, const char* why) {
    BlockMap map;
    map.time_us = time_us;
    map.problem = why;
    return map;
}

}  // namespace

BlockMap parse_block_map(i64 time_us, std::span<const std::byte> payload) {
    const trace::RecordView view{trace::RecordType::block_map, 0, time_us, payload};
    const auto head = view.as<trace::BlockMapRecord>();
    if (!head) return broken(time_us, "the map is cut short");
    BlockMap map;
    map.time_us = time_us;
    map.truncated_blocks = head->truncated_blocks;
    std::span<const std::byte> tail = view.tail_after<trace::BlockMapRecord>();
    if (!take(tail, head->segments, map.segments) || !take(tail, head->blocks, map.blocks))
        return broken(time_us, "the map is cut short");
    for (const trace::MapSegment& s : map.segments) {
        if (s.first_block > map.blocks.size() || s.blocks > map.blocks.size() - s.first_block)
            return broken(time_us, "a segment names blocks that are not in the map");
        for (u32 b = s.first_block; b < s.first_block + s.blocks; ++b) {
            const trace::MapBlock& block = map.blocks[b];
            if (block.address < s.address || block.address - s.address > s.bytes ||
                block.bytes > s.bytes - (block.address - s.address))
                return broken(time_us, "a block lies outside its segment");
            if (static_cast<std::size_t>(block.owner) >= kOwners ||
                block.state > trace::BlockState::pending_free)
                return broken(time_us, "a block has an owner or state that this version does not know");
        }
    }
    return map;
}

MapFigures map_figures(const BlockMap& map, u64 asked_bytes) {
    MapFigures f;
    for (const trace::MapSegment& s : map.segments) {
        f.reserved_bytes += s.bytes;
        for (u32 b = s.first_block; b < s.first_block + s.blocks; ++b) {
            const trace::MapBlock& block = map.blocks[b];
            switch (block.state) {
                case trace::BlockState::active:
                    f.in_use_bytes += block.bytes;
                    f.owner_bytes[static_cast<std::size_t>(block.owner)] += block.bytes;
                    break;
                case trace::BlockState::pending_free: f.pending_bytes += block.bytes; break;
                case trace::BlockState::free:
                    ++f.holes;
                    f.free_bytes += block.bytes;
                    f.largest_hole_bytes = std::max(f.largest_hole_bytes, block.bytes);
                    if (block.bytes < asked_bytes) f.lost_bytes += block.bytes;
                    break;
            }
        }
    }
    return f;
}

KvMap parse_kv_map(i64 time_us, std::span<const std::byte> payload) {
    const trace::RecordView view{trace::RecordType::kv_map, 0, time_us, payload};
    KvMap map;
    map.time_us = time_us;
    const auto head = view.as<trace::KvMapRecord>();
    std::span<const std::byte> tail = view.tail_after<trace::KvMapRecord>();
    if (!head || !take(tail, head->owners, map.owners)) {
        map.problem = "the map of the KV pool is cut short";
        map.owners.clear();
        return map;
    }
    map.blocks_total = head->blocks_total;
    map.blocks_used = head->blocks_used;
    map.blocks_cached = head->blocks_cached;
    std::sort(map.owners.begin(), map.owners.end(), [](const auto& a, const auto& b) {
        return a.first_block != b.first_block ? a.first_block < b.first_block
                                              : a.request < b.request;
    });
    return map;
}

}  // namespace oomlab::view
