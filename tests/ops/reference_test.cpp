// Every op against the formula written down naively in double precision. The bound of a comparison
// is the rounding of the result to its type plus what f32 arithmetic of that length may lose.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/ops/arena.hpp"

using namespace oomlab;
using namespace oomlab::test;
using number::bf16;
using number::f16;
using number::fp8;

namespace {

using Ints = std::vector<std::int32_t>;

// |got - want| <= half a step of T at want + `absolute`
template <class T>
void check_close(const std::vector<T>& got, const std::vector<double>& want, double absolute) {
    REQUIRE(got.size() == want.size());
    double worst = 0;
    for (u64 i = 0; i < got.size(); ++i) {
        const double error = std::abs(static_cast<double>(number::to_float(got[i])) - want[i]);
        worst = std::max(worst, error - std::abs(want[i]) * kHalfStep<T>);
    }
    CHECK(worst <= absolute);
}

template <class In, class Out>
void check_matmul(u64 rows, u64 k, u64 n) {
    Prng prng(11);
    Arena m;
    const auto in = random_values<In>(prng, rows * k, 1);
    const auto weight = random_values<In>(prng, n * k, 1);
    MatmulArgs a{.in = m.put(in), .weight = m.put(weight), .out = m.reserve(rows * n * sizeof(Out)),
                 .rows = rows, .k = k, .n = n, .in_type = kType<In>, .out_type = kType<Out>};
    host::matmul(a, m.at());
    const auto x = as_double(in), w = as_double(weight);
    std::vector<double> want(rows * n);
    for (u64 r = 0; r < rows; ++r) {
        for (u64 j = 0; j < n; ++j) {
            for (u64 i = 0; i < k; ++i) want[r * n + j] += x[r * k + i] * w[j * k + i];
        }
    }
    // k products of at most 1, each sum rounded: k * k/8 * 2^-24 at the very most
    check_close(m.get<Out>(a.out, rows * n), want, static_cast<double>(k * k) / 8 * 0x1p-24 + 1e-6);
}

template <class T>
void check_rms_norm(bool with_residual) {
    constexpr u64 kRows = 5, kWidth = 96;
    Prng prng(12);
    Arena m;
    const auto in = random_values<T>(prng, kRows * kWidth, 2);
    const auto before = random_values<T>(prng, kRows * kWidth, 2);
    const auto weight = random_values<T>(prng, kWidth, 1);
    RmsNormArgs a{.in = m.put(in), .residual = with_residual ? m.put(before) : 0,
                  .weight = m.put(weight), .out = m.reserve(kRows * kWidth * sizeof(T)),
                  .rows = kRows, .width = kWidth, .epsilon = 1e-5f, .type = kType<T>};
    host::rms_norm(a, m.at());
    auto x = as_double(in);
    if (with_residual) {
        const auto sums = m.get<T>(a.residual, kRows * kWidth);
        std::vector<double> want(x.size());
        for (u64 i = 0; i < x.size(); ++i) {
            want[i] = x[i] + static_cast<double>(number::to_float(before[i]));
        }
        check_close(sums, want, 1e-6);
        x = as_double(sums);   // the norm sees what was stored
    }
    const auto w = as_double(weight);
    std::vector<double> want(x.size());
    for (u64 r = 0; r < kRows; ++r) {
        double squares = 0;
        for (u64 i = 0; i < kWidth; ++i) squares += x[r * kWidth + i] * x[r * kWidth + i];
        for (u64 i = 0; i < kWidth; ++i) {
            want[r * kWidth + i] =
                x[r * kWidth + i] / std::sqrt(squares / static_cast<double>(kWidth) + 1e-5) * w[i];
        }
    }
    check_close(m.get<T>(a.out, x.size()), want, 4e-6);
}

template <class T>
void check_rope() {
    constexpr u64 kRows = 4, kHeads = 3, kKvHeads = 1, kDim = 64;
    constexpr u64 kRowWidth = (kHeads + 2 * kKvHeads) * kDim;
    const Ints positions{0, 1, 17, 8191};
    Prng prng(13);
    Arena m;
    const auto qkv = random_values<T>(prng, kRows * kRowWidth, 1);
    RopeArgs a{.qkv = m.put(qkv), .positions = m.put(positions), .rows = kRows, .heads = kHeads,
               .kv_heads = kKvHeads, .head_dim = kDim, .theta = 500000.0f, .type = kType<T>};
    host::rope(a, m.at());
    const auto x = as_double(qkv);
    auto want = x;
    for (u64 r = 0; r < kRows; ++r) {
        for (u64 h = 0; h < kHeads + kKvHeads; ++h) {
            for (u64 i = 0; i < kDim / 2; ++i) {
                const u64 at = r * kRowWidth + h * kDim + i;
                const double angle =
                    positions[r] * std::pow(500000.0, -2.0 * static_cast<double>(i) / kDim);
                want[at] = x[at] * std::cos(angle) - x[at + kDim / 2] * std::sin(angle);
                want[at + kDim / 2] = x[at + kDim / 2] * std::cos(angle) + x[at] * std::sin(angle);
            }
        }
    }
    // The angle is an f32: at position 8191 it is off by up to 8191 * 4 * 2^-24 = 0.002 rad.
    check_close(m.get<T>(a.qkv, x.size()), want, 8191 * 4 * 0x1p-24 * 1.5);
}

template <class T, class C>
void check_attention(u64 window) {
    constexpr u64 kHeads = 4, kKvHeads = 2, kDim = 24, kBlock = 5, kBlocks = 16, kMaxBlocks = 8;
    constexpr u64 kRowWidth = (kHeads + 2 * kKvHeads) * kDim;
    // three sequences: a whole prompt of 7, a chunk of 4 ending at 31, one decode at 12
    const Ints row_begin{0, 7, 11, 12}, context{7, 31, 12};
    const Ints tables{3, 9, 0, 0, 0, 0, 0, 0,  1, 4, 6, 15, 2, 8, 11, 0,  5, 7, 10, 0, 0, 0, 0, 0};
    Prng prng(14);
    Arena m;
    const auto qkv = random_values<T>(prng, 12 * kRowWidth, 2);
    const auto cache = random_values<C>(prng, kBlocks * 2 * kBlock * kKvHeads * kDim, 2);
    AttentionArgs a{.qkv = m.put(qkv), .cache = m.put(cache),
                    .out = m.reserve(12 * kHeads * kDim * sizeof(T)), .row_begin = m.put(row_begin),
                    .context_len = m.put(context), .block_tables = m.put(tables), .rows = 12,
                    .seqs = 3, .max_blocks = kMaxBlocks, .heads = kHeads, .kv_heads = kKvHeads,
                    .head_dim = kDim, .block_size = kBlock, .window = window, .type = kType<T>,
                    .cache_type = kType<C>};
    host::attention(a, m.at());
    const auto x = as_double(qkv), kv = as_double(cache);
    const auto element = [&](u64 seq, i64 position, u64 part, u64 head, u64 i) {
        const u64 p = static_cast<u64>(position);
        const u64 kv_block = static_cast<u64>(tables[seq * kMaxBlocks + p / kBlock]);
        return kv[(((kv_block * 2 + part) * kBlock + p % kBlock) * kKvHeads + head) * kDim + i];
    };
    std::vector<double> want(12 * kHeads * kDim);
    for (u64 seq = 0; seq < 3; ++seq) {
        for (i32 row = row_begin[seq]; row < row_begin[seq + 1]; ++row) {
            const i64 last = context[seq] - row_begin[seq + 1] + row;
            const i64 first =
                window == 0 ? 0 : std::max<i64>(0, last - static_cast<i64>(window) + 1);
            for (u64 h = 0; h < kHeads; ++h) {
                std::vector<double> p;
                double total = 0;
                for (i64 t = first; t <= last; ++t) {
                    double score = 0;
                    for (u64 i = 0; i < kDim; ++i) {
                        score += x[static_cast<u64>(row) * kRowWidth + h * kDim + i] *
                                 element(seq, t, 0, h / 2, i);
                    }
                    p.push_back(std::exp(score / std::sqrt(static_cast<double>(kDim))));
                    total += p.back();
                }
                for (u64 i = 0; i < kDim; ++i) {
                    double& out = want[(static_cast<u64>(row) * kHeads + h) * kDim + i];
                    for (i64 t = first; t <= last; ++t) {
                        out += p[static_cast<u64>(t - first)] / total * element(seq, t, 1, h / 2, i);
                    }
                }
            }
        }
    }
    // scores up to 4 * 24 / 4.9 = 20, off by 20 * 2^-22: so are weights, and sums of values up to 2
    check_close(m.get<T>(a.out, want.size()), want, 2e-5);
}

}  // namespace

TEST_CASE("reference: matmul in every pair of types") {
    check_matmul<float, float>(3, 33, 7);
    check_matmul<bf16, bf16>(70, 64, 9);
    check_matmul<bf16, float>(2, 100, 5);
    check_matmul<f16, f16>(4, 31, 6);
    check_matmul<fp8, bf16>(3, 40, 4);
}

TEST_CASE("reference: rms norm with and without a residual") {
    for (const bool with_residual : {false, true}) {
        check_rms_norm<float>(with_residual);
        check_rms_norm<bf16>(with_residual);
        check_rms_norm<f16>(with_residual);
    }
}

TEST_CASE("reference: rotary embedding") {
    check_rope<float>();
    check_rope<bf16>();
    check_rope<f16>();
}

TEST_CASE("reference: paged attention over mixed prompts and chunks and decodes") {
    for (const u64 window : {0u, 1u, 6u, 1000u}) {
        check_attention<float, float>(window);
        check_attention<bf16, bf16>(window);
        check_attention<bf16, fp8>(window);
        check_attention<f16, f16>(window);
    }
}

TEST_CASE("reference: gated activation") {
    Prng prng(15);
    Arena m;
    const auto gate_up = random_values<bf16>(prng, 3 * 2 * 40, 8);
    GatedActArgs a{.gate_up = m.put(gate_up), .out = m.reserve(3 * 40 * 2), .rows = 3, .width = 40};
    host::gated_act(a, m.at());
    const auto x = as_double(gate_up);
    std::vector<double> want;
    for (u64 r = 0; r < 3; ++r) {
        for (u64 i = 0; i < 40; ++i) {
            const double gate = x[r * 80 + i];
            want.push_back(gate / (1 + std::exp(-gate)) * x[r * 80 + 40 + i]);
        }
    }
    check_close(m.get<bf16>(a.out, 120), want, 1e-5);
}

TEST_CASE("reference: fill is uniform in its range and depends on the seed") {
    constexpr u64 kCount = 20000;
    Arena m;
    FillArgs a{.out = m.reserve(kCount * 4), .elements = kCount, .seed = 5, .scale = 0.5f,
               .type = DType::f32};
    host::fill(a, m.at());
    double sum = 0, squares = 0;
    for (const float x : m.get<float>(a.out, kCount)) {
        REQUIRE(std::abs(x) <= 0.5f);
        sum += static_cast<double>(x);
        squares += static_cast<double>(x) * static_cast<double>(x);
    }
    // mean 0 with deviation 0.289 / sqrt(20000) = 0.002; mean square 0.25 / 3
    CHECK(std::abs(sum / kCount) < 0.01);
    CHECK(squares / kCount == doctest::Approx(0.25 / 3).epsilon(0.05));
    const u64 first = host::checksum(a.out, kCount * 4, m.at());
    a.seed = 6;
    host::fill(a, m.at());
    CHECK(host::checksum(a.out, kCount * 4, m.at()) != first);
}
