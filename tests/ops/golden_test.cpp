// Vectors worked out by hand, a third witness beside the host ops and the GPU's kernels, which share
// their bodies and so would share a mistake.
#include <doctest/doctest.h>

#include <cmath>

#include "kernels/ops/bodies/elementwise.hpp"
#include "tests/ops/arena.hpp"

using namespace oomlab;
using namespace oomlab::test;

namespace {
using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;

void check_close(const Floats& got, const Floats& want) {
    REQUIRE(got.size() == want.size());
    for (u64 i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-6));
}
}  // namespace

TEST_CASE("golden: matmul multiplies by the transposed weight") {
    Arena m;
    MatmulArgs a{.in = m.put(Floats{1, 2, 3, 4, 5, 6}), .weight = m.put(Floats{1, 0, -1, 2, 1, 0}),
                 .out = m.reserve(16), .rows = 2, .k = 3, .n = 2,
                 .in_type = DType::f32, .out_type = DType::f32};
    host::matmul(a, m.at());
    check_close(m.get<float>(a.out, 4), {-2, 4, -2, 13});
}

TEST_CASE("golden: an int8 product is exact in i32") {
    Arena m;
    MatmulArgs a{.in = m.put(std::vector<std::int8_t>{127, -127, 3}),
                 .weight = m.put(std::vector<std::int8_t>{127, 127, -1}), .out = m.reserve(4),
                 .rows = 1, .k = 3, .n = 1, .in_type = DType::i8, .out_type = DType::i32};
    host::matmul(a, m.at());
    CHECK(m.get<std::int32_t>(a.out, 1)[0] == -3);
}

TEST_CASE("golden: rms norm of 3 and 4 divides by the root of 12.5") {
    Arena m;
    RmsNormArgs a{.in = m.put(Floats{1, 1}), .residual = m.put(Floats{2, 3}),
                  .weight = m.put(Floats{1, 2}), .out = m.reserve(8), .rows = 1, .width = 2,
                  .epsilon = 0, .type = DType::f32};
    host::rms_norm(a, m.at());
    check_close(m.get<float>(a.residual, 2), {3, 4});
    check_close(m.get<float>(a.out, 2), {0.848528137f, 2.262741700f});
    a.residual = 0;
    host::rms_norm(a, m.at());
    check_close(m.get<float>(a.out, 2), {1, 2});
}

TEST_CASE("golden: rope turns element i with its half-split partner and leaves v and position 0 alone") {
    Arena m;
    // one head, one kv head, head_dim 4, theta 10000: frequencies 1 and 0.01
    const Floats row{1, 1, 0, 0, 0, 0, 1, 1, 7, 7, 7, 7};
    Floats rows = row;
    rows.insert(rows.end(), row.begin(), row.end());
    RopeArgs a{.qkv = m.put(rows), .positions = m.put(Ints{1, 0}), .rows = 2, .heads = 1,
               .kv_heads = 1, .head_dim = 4, .theta = 10000.0f, .type = DType::f32};
    host::rope(a, m.at());
    Floats want{0.540302306f,  0.999950000f,  0.841470985f, 0.009999833f,
                -0.841470985f, -0.009999833f, 0.540302306f, 0.999950000f, 7, 7, 7, 7};
    want.insert(want.end(), row.begin(), row.end());
    check_close(m.get<float>(a.qkv, 24), want);
}

TEST_CASE("golden: kv append writes k and v of a token into its slot of the cache") {
    Arena m;
    // heads 1, kv_heads 1, head_dim 2, block_size 2: slot 3 is block 1, offset 1
    KvAppendArgs a{.qkv = m.put(Floats{9, 9, 1, 2, 3, 4, 9, 9, 5, 6, 7, 8}),
                   .cache = m.put(Floats(16, 0.0f)), .slots = m.put(Ints{3, -1}), .rows = 2,
                   .heads = 1, .kv_heads = 1, .head_dim = 2, .block_size = 2, .type = DType::f32,
                   .cache_type = DType::f32};
    host::kv_append(a, m.at());
    check_close(m.get<float>(a.cache, 16), {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4});
}

TEST_CASE("golden: attention weights are the softmax of scores over the root of head_dim") {
    Arena m;
    // head_dim 4, so scores are halved: q.k = 2 ln 3 and 0 give weights 3/4 and 1/4
    const float ln3 = 1.098612289f;
    const Floats cache{2 * ln3, 0, 0, 0, 0, 0, 0, 0, /* v */ 4, 8, 0, 1, 8, 4, 0, 1};
    AttentionArgs a{.qkv = m.put(Floats{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), .cache = m.put(cache),
                    .out = m.reserve(16), .row_begin = m.put(Ints{0, 1}),
                    .context_len = m.put(Ints{2}), .block_tables = m.put(Ints{0}), .rows = 1,
                    .seqs = 1, .max_blocks = 1, .heads = 1, .kv_heads = 1, .head_dim = 4,
                    .block_size = 2, .type = DType::f32, .cache_type = DType::f32};
    host::attention(a, m.at());
    check_close(m.get<float>(a.out, 4), {5, 7, 0, 1});
    a.window = 1;   // the token sees itself alone
    host::attention(a, m.at());
    check_close(m.get<float>(a.out, 4), {8, 4, 0, 1});
}

TEST_CASE("golden: gated activation") {
    Arena m;
    GatedActArgs a{.gate_up = m.put(Floats{0, 1, 5, 2}), .out = m.reserve(8), .rows = 1, .width = 2,
                   .type = DType::f32};
    host::gated_act(a, m.at());
    check_close(m.get<float>(a.out, 2), {0, 1.462117157f});   // 2 / (1 + 1/e)
}

TEST_CASE("golden: embed and gather copy rows") {
    Arena m;
    const u64 table = m.put(Floats{1, 2, 3, 4, 5, 6});
    EmbedArgs e{.ids = m.put(Ints{2, 0}), .table = table, .out = m.reserve(16), .rows = 2,
                .width = 2, .vocab = 3, .type = DType::f32};
    host::embed(e, m.at());
    check_close(m.get<float>(e.out, 4), {5, 6, 1, 2});
    GatherArgs g{.in = table, .index = m.put(Ints{1}), .out = m.reserve(8), .rows = 1, .width = 2,
                 .type = DType::f32};
    host::gather(g, m.at());
    check_close(m.get<float>(g.out, 2), {3, 4});
}

TEST_CASE("golden: sampling takes the lowest id among equals and never a NaN") {
    Arena m;
    SampleArgs a{.logits = m.put(Floats{1, 5, 5, 2, NAN, -1, -2, -1, NAN, NAN, NAN, NAN}),
                 .tokens = m.reserve(12), .rows = 3, .vocab = 4, .type = DType::f32};
    host::sample(a, m.at());
    CHECK(m.get<std::int32_t>(a.tokens, 3) == Ints{1, 1, 0});
}

TEST_CASE("golden: fill is SplitMix64") {
    // its published first outputs for seed 0: e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f
    CHECK(body::fill_unit(0, 0) == 0xe220a8 * 0x1p-23f - 1);
    CHECK(body::fill_unit(0, 1) == 0x6e789e * 0x1p-23f - 1);
    CHECK(body::fill_unit(0, 2) == 0x06c45d * 0x1p-23f - 1);
    Arena m;
    FillArgs a{.out = m.reserve(16), .elements = 3, .seed = 0, .scale = 2.0f, .type = DType::f32};
    host::fill(a, m.at());
    CHECK(m.get<float>(a.out, 3)[1] == 2 * body::fill_unit(0, 1));
    a.type = DType::i8;
    host::fill(a, m.at());   // 0.7666 * 127 = 97.36
    CHECK(static_cast<int>(m.get<std::int8_t>(a.out, 1)[0]) == 97);
}

TEST_CASE("golden: checksum is FNV-1a") {
    Arena m;
    const u64 address = m.put(std::vector<char>{'f', 'o', 'o', 'b', 'a', 'r'});
    CHECK(host::checksum(address, 0, m.at()) == 0xcbf29ce484222325ULL);
    CHECK(host::checksum(address, 6, m.at()) == 0x85944171f73967e8ULL);
}

TEST_CASE("golden: an op with a null tensor computes nothing") {
    Arena m;
    const u64 out = m.put(Floats{7});
    host::matmul({.in = 0, .weight = out, .out = out, .rows = 1, .k = 1, .n = 1}, m.at());
    host::rms_norm({.in = out, .weight = 0, .out = out, .rows = 1, .width = 1}, m.at());
    host::sample({.logits = 0, .tokens = out, .rows = 1, .vocab = 1}, m.at());
    CHECK(m.get<float>(out, 1)[0] == 7);
}
