#include <doctest/doctest.h>

#include <cstring>

#include "ui/view_model/block_map.hpp"

using namespace oomlab;
using namespace oomlab::view;
using trace::BlockState;

namespace {
// One segment of 20 MiB: 8 in use, a hole of 4, 2 in use, a hole of 6.
struct Map {
    trace::BlockMapRecord head{1, 4, 0, 0};
    trace::MapSegment segment{4096, 20 * kMiB, 0, 4, 0, 0, 0, 0};
    trace::MapBlock blocks[4] = {
        {4096, 8 * kMiB, 3, Owner::activations, BlockState::active, 0},
        {4096 + 8 * kMiB, 4 * kMiB, trace::kNoRequest, Owner::cached, BlockState::free, 0},
        {4096 + 12 * kMiB, 2 * kMiB, 5, Owner::kv, BlockState::active, 0},
        {4096 + 14 * kMiB, 6 * kMiB, trace::kNoRequest, Owner::cached, BlockState::free, 0}};
    std::vector<std::byte> bytes() const {
        std::vector<std::byte> out(sizeof(head) + sizeof(segment) + sizeof(blocks));
        std::memcpy(out.data(), &head, sizeof(head));
        std::memcpy(out.data() + sizeof(head), &segment, sizeof(segment));
        std::memcpy(out.data() + sizeof(head) + sizeof(segment), blocks, sizeof(blocks));
        return out;
    }
};
}  // namespace

TEST_CASE("map: largest hole, and what is lost to a request of 5 MiB") {
    const auto bytes = Map().bytes();
    const BlockMap map = parse_block_map(1, bytes);
    CHECK(map.problem.empty());
    const MapFigures f = map_figures(map, 5 * kMiB);
    CHECK(f.reserved_bytes == 20 * kMiB);
    CHECK(f.in_use_bytes == 10 * kMiB);
    CHECK(f.free_bytes == 10 * kMiB);
    CHECK(f.largest_hole_bytes == 6 * kMiB);
    CHECK(f.lost_bytes == 4 * kMiB);
    CHECK(f.holes == 2);
    CHECK(f.owner_bytes[static_cast<std::size_t>(Owner::kv)] == 2 * kMiB);
}

TEST_CASE("map: every cut of the bytes is refused with a reason and nothing is read past the end") {
    const auto bytes = Map().bytes();
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        const BlockMap map = parse_block_map(1, std::span(bytes).first(n));
        CHECK_FALSE(map.problem.empty());
        CHECK(map.blocks.empty());
    }
}

TEST_CASE("map: blocks outside their segment and unknown states are refused") {
    Map outside;
    outside.blocks[2].address = 1;
    CHECK_FALSE(parse_block_map(1, outside.bytes()).problem.empty());
    Map too_long;
    too_long.blocks[3].bytes = UINT64_MAX;
    CHECK_FALSE(parse_block_map(1, too_long.bytes()).problem.empty());
    Map counts;
    counts.segment.first_block = 3;
    CHECK_FALSE(parse_block_map(1, counts.bytes()).problem.empty());
    Map state;
    state.blocks[0].state = static_cast<BlockState>(9);
    CHECK_FALSE(parse_block_map(1, state.bytes()).problem.empty());
}

TEST_CASE("kv map: owners come in the order of their blocks") {
    const trace::KvMapRecord head{2, 100, 30, 4};
    const trace::KvOwner owners[2] = {{9, 10, 20, 0}, {8, 20, 0, 0}};
    std::vector<std::byte> bytes(sizeof(head) + sizeof(owners));
    std::memcpy(bytes.data(), &head, sizeof(head));
    std::memcpy(bytes.data() + sizeof(head), owners, sizeof(owners));
    const KvMap map = parse_kv_map(5, bytes);
    REQUIRE(map.owners.size() == 2);
    CHECK(map.owners[0].request == 8);
    CHECK(map.blocks_total == 100);
    CHECK_FALSE(parse_kv_map(5, std::span(bytes).first(bytes.size() - 1)).problem.empty());
}
