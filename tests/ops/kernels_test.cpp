// The CUDA kernels against the host ops: both versions of each, at sizes around the edges of their
// tiles. What moves bytes or hashes must agree to the bit; what adds up in another order may differ by
// the rounding of the result and of f32 sums.
//
// Compiled twice, by OOMLAB_KERNEL_SIDE: with the emulator (tests/ops), and on a GPU (tests/gpu). Each
// case makes its tensors once on the host's side and once on the kernels' side, from the same seed.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "kernels/ops/cuda/kernels.hpp"
#include "tests/ops/arena.hpp"
#include "tests/ops/host_side.hpp"
#include OOMLAB_KERNEL_SIDE

using namespace oomlab;
using namespace oomlab::test;
using kernel::Version;
using number::bf16;
using number::f16;
using number::fp8;

namespace {

using Ints = std::vector<std::int32_t>;

const host::Translate kSame{};

template <class T>
void check_close(const std::vector<T>& got, const std::vector<T>& want, double absolute) {
    REQUIRE(got.size() == want.size());
    double worst = -1;
    u64 where = 0;
    for (u64 i = 0; i < got.size(); ++i) {
        const double g = static_cast<double>(number::to_float(got[i]));
        const double w = static_cast<double>(number::to_float(want[i]));
        const double excess = std::abs(g - w) - std::abs(w) * 2 * kHalfStep<T>;
        if (!(excess <= worst)) {   // a NaN is the worst
            worst = excess;
            where = i;
        }
    }
    CAPTURE(where);
    CHECK(worst <= absolute);
}

template <class T>
void check_same(const std::vector<T>& got, const std::vector<T>& want) {
    REQUIRE(got.size() == want.size());
    CHECK(std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0);
}

// Both versions, threads taking turns from the first to the last and from the last to the first: a
// barrier that is missing shows in one of the two.
struct Way {
    Version version;
    bool backwards;
    Version start() const {
        set_backwards(backwards);
        return version;
    }
};
constexpr Way kWays[] = {{Version::readable, false}, {Version::readable, true},
                         {Version::fast, false}, {Version::fast, true}};

}  // namespace

// Makes the op's arguments on a side, with the same values each time.
template <class Side, class Make>
auto make_on(Side& side, Make&& make) {
    Prng prng(31);
    return make(side, prng);
}

TEST_CASE("kernels: fill gives the bytes of the host in every type and alignment") {
    for (const DType type :
         {DType::f32, DType::f16, DType::bf16, DType::i8, DType::fp8, DType::i32}) {
        for (const u64 elements : {1u, 31u, 5000u}) {
            for (const u64 shift : {u64{0}, dtype_bytes(type)}) {
                const u64 bytes = elements * dtype_bytes(type);
                const auto make = [&](auto& side) {
                    return FillArgs{.out = side.reserve(bytes + shift) + shift, .elements = elements,
                                    .seed = 77, .scale = 3.0f, .type = type};
                };
                HostSide h;
                const FillArgs want = make(h);
                host::fill(want, kSame);
                for (const Way& way : kWays) {
                    KernelSide k;
                    const FillArgs got = make(k);
                    REQUIRE(kernel::fill(got, way.start(), nullptr) == 0);
                    check_same(k.template get<char>(got.out, bytes), h.get<char>(want.out, bytes));
                }
            }
        }
    }
}

TEST_CASE("kernels: checksum works out FNV-1a side by side") {
    Prng prng(31);
    KernelSide k;
    const Workspace work{k.reserve(64 * kKiB), 64 * kKiB};
    const std::vector<u64> basis{0xcbf29ce484222325ULL};
    for (const u64 bytes : {1u, 100u, 16384u, 16385u, 50000u}) {
        std::vector<char> data(bytes);
        for (char& c : data) c = static_cast<char>(prng.next());
        const u64 want = host::checksum(reinterpret_cast<u64>(data.data()), bytes, kSame);
        const u64 address = k.put(data);
        for (const Way& way : kWays) {
            k.write(work.address, basis);
            REQUIRE(kernel::checksum(address, bytes, way.start(), work, nullptr) == 0);
            CHECK(k.get<u64>(work.address, 1)[0] == want);
        }
        k.write(work.address, basis);   // in two calls
        const u64 first = bytes / 3;
        if (first != 0) REQUIRE(kernel::checksum(address, first, Version::fast, work, nullptr) == 0);
        REQUIRE(kernel::checksum(address + first, bytes - first, Version::fast, work, nullptr) == 0);
        CHECK(k.get<u64>(work.address, 1)[0] == want);
    }
    CHECK(checksum_bytes_max(work) == 31 * kChecksumPieceBytes);
    CHECK(kernel::checksum(work.address, 32 * kChecksumPieceBytes, Version::fast, work, nullptr) == 1);
}

TEST_CASE("kernels: embed and gather copy rows of any width") {
    for (const u64 width : {1u, 24u, 1027u}) {
        const auto make = [&](auto& side, Prng& prng) {
            return EmbedArgs{.ids = side.put(Ints{10, 0, 3, 3, 7}),
                             .table = side.put(random_values<bf16>(prng, 11 * width, 1)),
                             .out = side.reserve(5 * width * 2), .rows = 5, .width = width,
                             .vocab = 11};
        };
        HostSide h;
        const EmbedArgs want = make_on(h, make);
        host::embed(want, kSame);
        KernelSide k;
        const EmbedArgs got = make_on(k, make);
        REQUIRE(kernel::embed(got, nullptr) == 0);
        check_same(k.get<bf16>(got.out, 5 * width), h.get<bf16>(want.out, 5 * width));
        const u64 gathered = k.reserve(5 * width * 2);
        REQUIRE(kernel::gather({.in = got.table, .index = got.ids, .out = gathered, .rows = 5,
                                .width = width}, nullptr) == 0);
        check_same(k.get<bf16>(gathered, 5 * width), h.get<bf16>(want.out, 5 * width));
    }
}

template <class T>
void check_rms_norm() {
    for (const u64 width : {64u, 100u, 257u, 4096u}) {
        for (const bool with_residual : {false, true}) {
            const u64 n = 3 * width;
            const auto make = [&](auto& side, Prng& prng) {
                RmsNormArgs a{.in = side.put(random_values<T>(prng, n, 2)),
                              .weight = side.put(random_values<T>(prng, width, 1)),
                              .out = side.reserve(n * sizeof(T)), .rows = 3, .width = width,
                              .type = kType<T>};
                if (with_residual) a.residual = side.put(random_values<T>(prng, n, 2));
                return a;
            };
            HostSide h;
            const RmsNormArgs want = make_on(h, make);
            host::rms_norm(want, kSame);
            for (const Way& way : kWays) {
                CAPTURE(width);
                KernelSide k;
                const RmsNormArgs got = make_on(k, make);
                REQUIRE(kernel::rms_norm(got, way.start(), nullptr) == 0);
                check_close(k.template get<T>(got.out, n), h.template get<T>(want.out, n), 4e-6);
                if (!with_residual) continue;
                check_same(k.template get<T>(got.residual, n), h.template get<T>(want.residual, n));
            }
        }
    }
}
TEST_CASE("kernels: rms norm at widths that are vectors and that are not") {
    check_rms_norm<float>();
    check_rms_norm<f16>();
    check_rms_norm<bf16>();
}

template <class T>
void check_rope(u64 head_dim) {
    constexpr u64 kRows = 5, kHeads = 6, kKvHeads = 2;
    const u64 n = kRows * (kHeads + 2 * kKvHeads) * head_dim;
    const auto make = [&](auto& side, Prng& prng) {
        return RopeArgs{.qkv = side.put(random_values<T>(prng, n, 1)),
                        .positions = side.put(Ints{0, 1, 2, 900, 4000}), .rows = kRows,
                        .heads = kHeads, .kv_heads = kKvHeads, .head_dim = head_dim,
                        .type = kType<T>};
    };
    HostSide h;
    const RopeArgs want = make_on(h, make);
    host::rope(want, kSame);
    for (const Way& way : kWays) {
        KernelSide k;
        const RopeArgs got = make_on(k, make);
        REQUIRE(kernel::rope(got, way.start(), nullptr) == 0);
        // A GPU's power differs in its last bits: at position 4000 an angle moves by 4000 * 2^-21.
        check_close(k.template get<T>(got.qkv, n), h.template get<T>(want.qkv, n), kAngleError);
    }
}
TEST_CASE("kernels: rotary embedding") {
    for (const u64 head_dim : {16u, 64u, 128u}) {
        check_rope<float>(head_dim);
        check_rope<f16>(head_dim);
        check_rope<bf16>(head_dim);
    }
}

template <class T>
void check_gated_act(u64 width) {
    const auto make = [&](auto& side, Prng& prng) {
        return GatedActArgs{.gate_up = side.put(random_values<T>(prng, 3 * 2 * width, 6)),
                            .out = side.reserve(3 * width * sizeof(T)), .rows = 3, .width = width,
                            .type = kType<T>};
    };
    HostSide h;
    const GatedActArgs want = make_on(h, make);
    host::gated_act(want, kSame);
    for (const Way& way : kWays) {
        KernelSide k;
        const GatedActArgs got = make_on(k, make);
        REQUIRE(kernel::gated_act(got, way.start(), nullptr) == 0);
        check_close(k.template get<T>(got.out, 3 * width), h.template get<T>(want.out, 3 * width), 1e-5);
    }
}
TEST_CASE("kernels: gated activation") {
    for (const u64 width : {8u, 37u, 1024u}) {
        check_gated_act<float>(width);
        check_gated_act<f16>(width);
        check_gated_act<bf16>(width);
    }
}

template <class T, class C>
void check_kv_append(u64 head_dim) {
    constexpr u64 kHeads = 4, kKvHeads = 2, kBlock = 5, kBlocks = 4;
    const u64 n = kBlocks * 2 * kBlock * kKvHeads * head_dim;
    const auto make = [&](auto& side, Prng& prng) {
        return KvAppendArgs{
            .qkv = side.put(random_values<T>(prng, 6 * (kHeads + 2 * kKvHeads) * head_dim, 2)),
            .cache = side.reserve(n * sizeof(C)), .slots = side.put(Ints{0, 19, 7, -1, 4, 5}),
            .rows = 6, .heads = kHeads, .kv_heads = kKvHeads, .head_dim = head_dim,
            .block_size = kBlock, .type = kType<T>, .cache_type = kType<C>};
    };
    HostSide h;
    const KvAppendArgs want = make_on(h, make);
    host::kv_append(want, kSame);
    for (const Way& way : kWays) {
        KernelSide k;
        const KvAppendArgs got = make_on(k, make);
        REQUIRE(kernel::kv_append(got, way.start(), nullptr) == 0);
        check_same(k.template get<C>(got.cache, n), h.template get<C>(want.cache, n));
    }
}
TEST_CASE("kernels: kv append in every pair of types") {
    for (const u64 head_dim : {3u, 64u}) {
        check_kv_append<float, float>(head_dim);
        check_kv_append<float, fp8>(head_dim);
        check_kv_append<f16, f16>(head_dim);
        check_kv_append<bf16, bf16>(head_dim);
        check_kv_append<bf16, fp8>(head_dim);
    }
}

TEST_CASE("kernels: sampling finds the lowest id of the largest logit in any part of the row") {
    constexpr u64 kRows = 4, kVocab = 9001;
    Prng prng(37);
    auto logits = random_values<float>(prng, kRows * kVocab, 5);
    logits[0 * kVocab + 9000] = logits[0 * kVocab + 4500] = 7;   // equal, in two parts
    logits[1 * kVocab + 0] = 7;
    for (u64 i = 0; i < kVocab; ++i) logits[2 * kVocab + i] = NAN;
    logits[3 * kVocab + 9000] = 7;
    KernelSide k;
    const SampleArgs a{.logits = k.put(logits), .tokens = k.reserve(kRows * 4), .rows = kRows,
                       .vocab = kVocab};
    const u64 work = k.reserve(4096);
    for (const Way& way : kWays) {
        for (const u64 work_bytes : {4096u, 8u}) {
            REQUIRE(kernel::sample(a, way.start(), {work, work_bytes}, nullptr) == 0);
            CHECK(k.get<std::int32_t>(a.tokens, kRows) == Ints{4500, 0, 0, 9000});
        }
    }
}

namespace {

struct AttentionCase {
    u64 heads, kv_heads, head_dim, block_size, window;
    std::vector<std::pair<u64, u64>> seqs;   // rows, context
    u64 work_bytes = 1 << 20;
};

template <class T, class C>
void check_attention(const AttentionCase& c) {
    u64 rows = 0, longest = 0, blocks = 1;   // block 0 is nobody's
    Ints row_begin{0}, context;
    for (const auto& [count, length] : c.seqs) {
        rows += count;
        longest = std::max(longest, length);
        row_begin.push_back(static_cast<std::int32_t>(rows));
        context.push_back(static_cast<std::int32_t>(length));
    }
    const u64 max_blocks = div_ceil(longest, c.block_size) + 1;
    Ints tables(c.seqs.size() * max_blocks, 0);
    for (u64 s = 0; s < c.seqs.size(); ++s) {
        for (u64 b = div_ceil(c.seqs[s].second, c.block_size); b-- > 0;) {   // in reverse order
            tables[s * max_blocks + b] = static_cast<std::int32_t>(blocks++);
        }
    }
    const u64 n = rows * c.heads * c.head_dim;
    const auto make = [&](auto& side, Prng& prng) {
        return AttentionArgs{
            .qkv = side.put(random_values<T>(prng, rows * (c.heads + 2 * c.kv_heads) * c.head_dim, 2)),
            .cache = side.put(
                random_values<C>(prng, blocks * 2 * c.block_size * c.kv_heads * c.head_dim, 1)),
            .out = side.reserve(n * sizeof(T)), .row_begin = side.put(row_begin),
            .context_len = side.put(context), .block_tables = side.put(tables), .rows = rows,
            .seqs = c.seqs.size(), .max_blocks = max_blocks, .heads = c.heads,
            .kv_heads = c.kv_heads, .head_dim = c.head_dim, .block_size = c.block_size,
            .window = c.window, .type = kType<T>, .cache_type = kType<C>};
    };
    HostSide h;
    const AttentionArgs want = make_on(h, make);
    host::attention(want, kSame);
    for (const Way& way : kWays) {
        KernelSide k;
        const AttentionArgs got = make_on(k, make);
        const Workspace work{k.reserve(c.work_bytes), c.work_bytes};
        const Version version = way.start();
        REQUIRE(kernel::attention(got, version, work, nullptr) == 0);
        CAPTURE(static_cast<int>(version));
        // Prefill multiplies weights that were rounded to T: values up to 1, weights off by 2^-9.
        check_close(k.template get<T>(got.out, n), h.template get<T>(want.out, n),
                    sizeof(T) == 4 ? 1e-5 : 0x1p-8);
    }
}

}  // namespace

TEST_CASE("kernels: decode attention splits and joins its context") {
    for (const u64 head_dim : {64u, 128u}) {
        for (const u64 heads : {2u, 8u, 14u, 20u}) {   // 1, 4, 7 and 10 to a kv head
            const AttentionCase c{.heads = heads, .kv_heads = 2, .head_dim = head_dim,
                                  .block_size = 16, .window = 0,
                                  .seqs = {{1, 1}, {1, 130}, {1, 600}}};
            check_attention<bf16, bf16>(c);
        }
    }
    AttentionCase c{.heads = 4, .kv_heads = 2, .head_dim = 64, .block_size = 5, .window = 0,
                    .seqs = {{1, 300}, {1, 128}, {1, 129}}};
    check_attention<f16, f16>(c);
    check_attention<bf16, fp8>(c);
    c.window = 100;
    check_attention<bf16, bf16>(c);
    c.work_bytes = 16;   // no room to split: several tiles in one thread block
    check_attention<bf16, bf16>(c);
    c.window = 0;
    check_attention<bf16, bf16>(c);
    check_attention<f16, fp8>(c);
}

TEST_CASE("kernels: prefill attention on tensor cores with prompts and chunks and decodes mixed") {
    AttentionCase c{.heads = 2, .kv_heads = 1, .head_dim = 64, .block_size = 16, .window = 0,
                    .seqs = {{70, 70}, {1, 40}, {2, 2}, {30, 150}}};
    check_attention<bf16, bf16>(c);
    check_attention<f16, f16>(c);
    check_attention<bf16, fp8>(c);
    c.window = 20;
    check_attention<bf16, bf16>(c);
    const AttentionCase wide{.heads = 2, .kv_heads = 2, .head_dim = 128, .block_size = 3,
                             .window = 0, .seqs = {{65, 100}}};
    check_attention<bf16, bf16>(wide);
}

TEST_CASE("kernels: attention of unusual shapes falls to the readable kernel") {
    const AttentionCase c{.heads = 4, .kv_heads = 4, .head_dim = 24, .block_size = 7, .window = 0,
                          .seqs = {{9, 140}, {1, 5}}};
    check_attention<float, float>(c);
    check_attention<bf16, bf16>(c);
    const AttentionCase wide{.heads = 2, .kv_heads = 1, .head_dim = 256, .block_size = 16,
                             .window = 50, .seqs = {{4, 140}}};
    check_attention<float, float>(wide);
    AttentionArgs odd{.rows = 1, .seqs = 1, .max_blocks = 1, .heads = 1, .kv_heads = 1,
                      .head_dim = 512, .block_size = 1};
    CHECK(kernel::attention(odd, Version::fast, {}, nullptr) == 1);
}
