// The index of free blocks against std::set, which is what PyTorch uses.
#include <doctest/doctest.h>

#include <set>
#include <tuple>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/server/memory/detail/address_map.hpp"
#include "labs/server/memory/detail/allocator_impl.hpp"

using namespace oomlab;
using namespace oomlab::memory;

namespace {

struct Order {
    bool operator()(const Block* a, const Block* b) const {
        return std::tie(a->bytes, a->address) < std::tie(b->bytes, b->address);
    }
};
using Reference = std::set<Block*, Order>;

Block* reference_bound(const Reference& reference, u64 bytes) {
    Block key;
    key.bytes = bytes;
    const auto it = reference.lower_bound(&key);
    return it == reference.end() ? nullptr : *it;
}

void compare(const SizeIndex& index, const Reference& reference) {
    REQUIRE(index.check() == nullptr);
    REQUIRE(index.size() == reference.size());
    Block* at = index.first();
    for (Block* expected : reference) {
        REQUIRE(at == expected);
        at = index.next(at);
    }
    REQUIRE(at == nullptr);
    at = index.last();
    for (auto it = reference.rbegin(); it != reference.rend(); ++it) {
        REQUIRE(at == *it);
        at = index.previous(at);
    }
    REQUIRE(at == nullptr);
}

// Few sizes make deep trees, many make many buckets.
void drive(u64 seed, u64 sizes, int steps) {
    CAPTURE(seed);
    Prng prng(seed);
    BlockArena arena;
    Pool pool;
    SizeIndex index(arena.all(), pool, 0, 0);
    Reference reference;
    std::vector<Block*> inside;
    u64 address = 512;
    for (int i = 0; i < steps; ++i) {
        // Grows to some hundreds of blocks, then shrinks, again and again.
        const bool growing = i / 700 % 2 == 0;
        if (inside.empty() || prng.chance(growing ? 0.7 : 0.3)) {
            Block* block = arena.take();
            block->state = BlockState::free;
            block->bytes = 512 * (1 + (prng.below(sizes) << prng.below(20)));
            block->address = address;
            address += 512 * prng.between(1, 9);
            index.insert(block);
            reference.insert(block);
            inside.push_back(block);
        } else {
            const std::size_t at = prng.below(inside.size());
            index.erase(inside[at]);
            reference.erase(inside[at]);
            arena.give_back(inside[at]);
            inside[at] = inside.back();
            inside.pop_back();
        }
        const u64 wanted = 512 * (1 + (prng.below(sizes) << prng.below(21)));
        REQUIRE(index.lower_bound(wanted) == reference_bound(reference, wanted));
        if (i % 50 == 0) compare(index, reference);
    }
    compare(index, reference);
}

}  // namespace

TEST_SUITE("size index") {
    TEST_CASE("size index: finds, walks and forgets as an ordered set does") {
        drive(1, 3, 6000);
        drive(2, 40, 6000);
        drive(3, 100'000, 6000);
    }

    TEST_CASE("size index: the largest and smallest sizes have their place") {
        BlockArena arena;
        Pool pool;
        SizeIndex index(arena.all(), pool, 0, 0);
        Block* tiny = arena.take();
        Block* huge = arena.take();
        tiny->state = huge->state = BlockState::free;
        tiny->bytes = 512;
        huge->bytes = (u64{1} << 61) - 512;
        index.insert(huge);
        CHECK(index.lower_bound(512) == huge);
        index.insert(tiny);
        CHECK(index.lower_bound(512) == tiny);
        CHECK(index.lower_bound(1024) == huge);
        CHECK(index.lower_bound(u64{1} << 60) == huge);
        CHECK(index.previous(huge) == tiny);
        index.erase(huge);
        CHECK(index.lower_bound(1024) == nullptr);
        CHECK(index.last() == tiny);
    }

    TEST_CASE("address map: finds what was put in, also after removals around it") {
        Prng prng(5);
        BlockArena arena;
        AddressMap map(arena.all());
        std::vector<Block*> inside;
        for (int i = 0; i < 20'000; ++i) {
            if (inside.empty() || prng.chance(i < 10'000 ? 0.7 : 0.4)) {
                Block* block = arena.take();
                block->state = BlockState::allocated;
                block->address = 512 * static_cast<u64>(i + 1);
                map.insert(block);
                inside.push_back(block);
            } else {
                const std::size_t at = prng.below(inside.size());
                REQUIRE(map.take(inside[at]->address) == inside[at]);
                REQUIRE(map.find(inside[at]->address) == nullptr);
                arena.give_back(inside[at]);
                inside[at] = inside.back();
                inside.pop_back();
            }
        }
        CHECK(map.size() == inside.size());
        for (const Block* block : inside) REQUIRE(map.find(block->address) == block);
        CHECK(map.take(1) == nullptr);
    }
}
