#include <doctest/doctest.h>

#include <map>
#include <set>

#include "kernels/base/prng.hpp"
#include "labs/server/kv/kv_pool.hpp"

using namespace oomlab;
using namespace oomlab::server;

TEST_CASE("kv pool: block 0 is never handed out") {
    KvPool pool(4, 16, true);
    std::vector<u32> blocks;
    CHECK(pool.usable() == 3);
    REQUIRE(pool.allocate(3, blocks));
    for (const u32 b : blocks) CHECK(b != 0);
    CHECK_FALSE(pool.allocate(1, blocks));
    CHECK(pool.usage() == 1.0);
}

TEST_CASE("kv pool: a finished sequence's beginning is found again, its tail is evicted first") {
    KvPool pool(5, 16, true);
    const ContentKey key{7, 0, 0};
    std::vector<u32> blocks;
    REQUIRE(pool.allocate(4, blocks));
    const std::vector<u32> held = blocks;
    for (u64 i = 0; i < 4; ++i) pool.publish(key, i, blocks[i]);
    pool.release(blocks);
    CHECK(pool.used_blocks() == 0);
    CHECK(pool.cached_blocks() == 4);
    // 64 tokens are cached; of 64 known ones at most 63 may be found, so three blocks.
    CHECK(pool.find_prefix(key, 64).blocks.size() == 3);
    CHECK(pool.find_prefix(key, 65).blocks.size() == 4);
    // One fresh block takes the tail's, not the beginning's.
    std::vector<u32> other;
    REQUIRE(pool.allocate(1, other));
    CHECK(other[0] == held[3]);
    const auto hit = pool.find_prefix(key, 65);
    CHECK(hit.blocks.size() == 3);
    CHECK(hit.evictable == 3);
    pool.take_hit(hit);
    CHECK(pool.used_blocks() == 4);
    CHECK(std::string(pool.check_invariants()).empty());
}

TEST_CASE("kv pool: a shared prefix is one set of blocks with several users") {
    KvPool pool(10, 16, true);
    const ContentKey a{1, 9, 32}, b{2, 9, 32};
    std::vector<u32> mine;
    REQUIRE(pool.allocate(3, mine));
    for (u64 i = 0; i < 3; ++i) pool.publish(a, i, mine[i]);
    const auto hit = pool.find_prefix(b, 100);
    CHECK(hit.blocks.size() == 2);   // the third block is a's own
    CHECK(hit.evictable == 0);
    pool.take_hit(hit);
    std::vector<u32> theirs = hit.blocks;
    pool.release(mine);
    CHECK(pool.used_blocks() == 2);
    pool.release(theirs);
    CHECK(pool.used_blocks() == 0);
}

// Long random sequences against a naive model: a map from block to the number of its users.
TEST_CASE("kv pool: random use keeps counts, lists and contents true") {
    for (u64 seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        Prng prng(seed);
        KvPool pool(1 + prng.between(4, 60), prng.between(1, 32), prng.chance(0.8));
        std::map<u32, std::vector<u32>> sequences;
        std::map<u32, u32> users;
        u32 next = 0;
        for (int i = 0; i < 2000; ++i) {
            if (prng.chance(0.5) || sequences.empty()) {
                const ContentKey key{prng.below(6), 3, static_cast<u32>(prng.below(64))};
                auto hit = pool.find_prefix(key, prng.between(1, 200));
                const u64 fresh = prng.below(6);
                if (fresh + hit.evictable > pool.free_blocks()) continue;
                pool.take_hit(hit);
                std::vector<u32> blocks = hit.blocks;
                REQUIRE(pool.allocate(fresh, blocks));
                for (u64 k = hit.blocks.size(); k < blocks.size(); ++k) pool.publish(key, k, blocks[k]);
                for (const u32 b : blocks) ++users[b];
                sequences[next++] = blocks;
            } else {
                auto it = sequences.begin();
                std::advance(it, static_cast<long>(prng.below(sequences.size())));
                for (const u32 b : it->second) {
                    if (--users[b] == 0) users.erase(b);
                }
                pool.release(it->second);
                sequences.erase(it);
            }
            REQUIRE(std::string(pool.check_invariants()) == "");
            REQUIRE(pool.used_blocks() == users.size());
            REQUIRE(users.count(0) == 0);
        }
    }
}
