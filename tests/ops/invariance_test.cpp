// One layer's attention part, run over the same 37 tokens in different ways: the bytes that come
// out are the same however the prompt is cut, whichever sequences share its batch, whatever size a
// KV block has and wherever the blocks lie. Flipping one byte of KV changes them.
#include <doctest/doctest.h>

#include "tests/ops/arena.hpp"

using namespace oomlab;
using namespace oomlab::test;
using number::bf16;
using number::fp8;

namespace {

using Ints = std::vector<std::int32_t>;

constexpr u64 kTokens = 37, kWidth = 48, kHeads = 4, kKvHeads = 2, kDim = 16;
constexpr u64 kQkvWidth = (kHeads + 2 * kKvHeads) * kDim;

struct Way {
    std::vector<u64> chunks{kTokens};
    u64 block_size = 16;
    u64 first_block = 0;        // the sequence takes every second block from here
    u64 neighbours = 0;         // sequences of one token that share every batch
    u64 flip_byte = UINT64_MAX; // of the cache, before the last chunk's attention
};

// Projection, rotation, append and attention of all tokens, chunk by chunk.
std::vector<std::uint16_t> run(const Way& way) {
    Arena m;
    Prng prng(21);
    const auto hidden = random_values<bf16>(prng, kTokens * kWidth, 1);
    const u64 weight = m.put(random_values<bf16>(prng, kQkvWidth * kWidth, 0.5));
    const u64 max_blocks = div_ceil(kTokens, way.block_size);
    const u64 blocks = way.first_block + 2 * max_blocks + way.neighbours;
    const u64 cache_bytes = blocks * 2 * way.block_size * kKvHeads * kDim;
    const u64 cache = m.put(std::vector<char>(cache_bytes, 0));
    std::vector<std::uint16_t> out;
    u64 done = 0;
    for (u64 chunk = 0; chunk < way.chunks.size(); ++chunk) {
        const u64 count = way.chunks[chunk];
        const u64 rows = way.neighbours + count;
        std::vector<bf16> in;
        Ints positions, slots, row_begin{0}, context, tables;
        for (u64 s = 0; s < way.neighbours; ++s) {   // they come first
            const auto other = random_values<bf16>(prng, kWidth, 1);
            in.insert(in.end(), other.begin(), other.end());
            positions.push_back(0);
            const u64 block = way.first_block + 2 * max_blocks + s;
            slots.push_back(static_cast<std::int32_t>(block * way.block_size));
            row_begin.push_back(static_cast<std::int32_t>(s + 1));
            context.push_back(1);
            tables.insert(tables.end(), max_blocks, static_cast<std::int32_t>(block));
        }
        for (u64 t = done; t < done + count; ++t) {
            in.insert(in.end(), &hidden[t * kWidth], &hidden[t * kWidth] + kWidth);
            positions.push_back(static_cast<std::int32_t>(t));
            const u64 block = way.first_block + 2 * (t / way.block_size);
            slots.push_back(static_cast<std::int32_t>(block * way.block_size + t % way.block_size));
        }
        for (u64 b = 0; b < max_blocks; ++b) {
            tables.push_back(static_cast<std::int32_t>(way.first_block + 2 * b));
        }
        row_begin.push_back(static_cast<std::int32_t>(rows));
        done += count;
        context.push_back(static_cast<std::int32_t>(done));

        const u64 qkv = m.reserve(rows * kQkvWidth * 2), result = m.reserve(rows * kHeads * kDim * 2);
        host::matmul({.in = m.put(in), .weight = weight, .out = qkv, .rows = rows, .k = kWidth,
                      .n = kQkvWidth}, m.at());
        host::rope({.qkv = qkv, .positions = m.put(positions), .rows = rows, .heads = kHeads,
                    .kv_heads = kKvHeads, .head_dim = kDim}, m.at());
        host::kv_append({.qkv = qkv, .cache = cache, .slots = m.put(slots), .rows = rows,
                         .heads = kHeads, .kv_heads = kKvHeads, .head_dim = kDim,
                         .block_size = way.block_size, .cache_type = DType::fp8}, m.at());
        if (way.flip_byte < cache_bytes && chunk + 1 == way.chunks.size()) {
            m.at()(cache)[way.flip_byte] ^= 0x20;
        }
        host::attention({.qkv = qkv, .cache = cache, .out = result,
                         .row_begin = m.put(row_begin), .context_len = m.put(context),
                         .block_tables = m.put(tables), .rows = rows, .seqs = way.neighbours + 1,
                         .max_blocks = max_blocks, .heads = kHeads, .kv_heads = kKvHeads,
                         .head_dim = kDim, .block_size = way.block_size,
                         .cache_type = DType::fp8}, m.at());
        const auto all = m.get<std::uint16_t>(result, rows * kHeads * kDim);
        out.insert(out.end(), all.begin() + static_cast<i64>(way.neighbours * kHeads * kDim), all.end());
    }
    return out;
}

}  // namespace

TEST_CASE("invariance: neither chunks nor batches nor block sizes nor places change a byte") {
    const auto whole = run({});
    CHECK(run({.chunks = {5, 16, 1, 15}}) == whole);
    CHECK(run({.chunks = std::vector<u64>(kTokens, 1)}) == whole);
    for (const u64 block_size : {1u, 3u, 8u, 32u, 64u}) {
        CHECK(run({.chunks = {20, 17}, .block_size = block_size}) == whole);
    }
    CHECK(run({.first_block = 5}) == whole);
    CHECK(run({.chunks = {30, 7}, .neighbours = 6}) == whole);
}

TEST_CASE("invariance: one flipped byte of kv is seen") {
    CHECK(run({.flip_byte = 0}) != run({}));
}
