// The CUDA kernels, run by the emulator, against the host ops: both versions of each, at sizes around
// the edges of their tiles. What moves bytes or hashes must agree to the bit; what adds up in another
// order may differ by the rounding of the result and of f32 sums.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "kernels/ops/cuda/kernels.hpp"
#include "tests/ops/arena.hpp"
#include "tests/ops/emulator/order.hpp"

using namespace oomlab;
using namespace oomlab::test;
using kernel::Version;
using number::bf16;
using number::f16;
using number::fp8;

namespace {

using Ints = std::vector<std::int32_t>;

// Allocations at their own host addresses, so that kernels can use them; freed together.
class Memory {
  public:
    u64 reserve(u64 bytes) {
        // Exactly as large as asked, so that AddressSanitizer sees the first byte beyond.
        blocks_.emplace_back(static_cast<char*>(std::aligned_alloc(64, round_up(bytes + 1, 64))),
                             &std::free);
        std::memset(blocks_.back().get(), 0, bytes);
        return reinterpret_cast<u64>(blocks_.back().get());
    }
    template <class T>
    u64 put(const std::vector<T>& values) {
        const u64 address = reserve(values.size() * sizeof(T));
        std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
        return address;
    }
    template <class T>
    std::vector<T> get(u64 address, u64 n) const {
        std::vector<T> values(n);
        std::memcpy(static_cast<void*>(values.data()), reinterpret_cast<const void*>(address),
                    n * sizeof(T));
        return values;
    }

  private:
    std::vector<std::unique_ptr<char, void (*)(void*)>> blocks_;
};

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
        emulator::set_backwards(backwards);
        return version;
    }
};
constexpr Way kWays[] = {{Version::readable, false}, {Version::readable, true},
                         {Version::fast, false}, {Version::fast, true}};

}  // namespace

TEST_CASE("kernels: fill gives the host's bytes in every type, aligned or not") {
    for (const DType type :
         {DType::f32, DType::f16, DType::bf16, DType::i8, DType::fp8, DType::i32}) {
        for (const u64 elements : {1u, 31u, 5000u}) {
            for (const u64 shift : {u64{0}, dtype_bytes(type)}) {
                Memory m;
                FillArgs a{.elements = elements, .seed = 77, .scale = 3.0f, .type = type};
                const u64 bytes = elements * dtype_bytes(type);
                const u64 want = m.reserve(bytes + shift), got = m.reserve(bytes + shift);
                a.out = want + shift;
                host::fill(a, kSame);
                a.out = got + shift;
                for (const Way& way : kWays) {
                    const Version v = way.start();
                    std::memset(reinterpret_cast<void*>(got), 0, bytes + shift);
                    REQUIRE(kernel::fill(a, v, nullptr) == 0);
                    check_same(m.get<char>(got + shift, bytes), m.get<char>(want + shift, bytes));
                }
            }
        }
    }
}

TEST_CASE("kernels: checksum works out FNV-1a side by side") {
    Prng prng(31);
    Memory m;
    const Workspace work{m.reserve(64 * kKiB), 64 * kKiB};
    for (const u64 bytes : {1u, 100u, 16384u, 16385u, 50000u}) {
        std::vector<char> data(bytes);
        for (char& c : data) c = static_cast<char>(prng.next());
        const u64 address = m.put(data);
        const u64 want = host::checksum(address, bytes, kSame);
        for (const Way& way : kWays) {
            const Version v = way.start();
            u64* hash = reinterpret_cast<u64*>(work.address);
            *hash = 0xcbf29ce484222325ULL;
            REQUIRE(kernel::checksum(address, bytes, v, work, nullptr) == 0);
            CHECK(*hash == want);
        }
        // in two calls
        u64* hash = reinterpret_cast<u64*>(work.address);
        *hash = 0xcbf29ce484222325ULL;
        const u64 first = bytes / 3;
        if (first != 0) REQUIRE(kernel::checksum(address, first, Version::fast, work, nullptr) == 0);
        REQUIRE(kernel::checksum(address + first, bytes - first, Version::fast, work, nullptr) == 0);
        CHECK(*hash == want);
    }
    CHECK(checksum_bytes_max(work) == 31 * kChecksumPieceBytes);
    CHECK(kernel::checksum(work.address, 32 * kChecksumPieceBytes, Version::fast, work, nullptr) == 1);
}

TEST_CASE("kernels: embed and gather copy rows of any width") {
    for (const u64 width : {1u, 24u, 1027u}) {
        Prng prng(32);
        Memory m;
        const u64 table = m.put(random_values<bf16>(prng, 11 * width, 1));
        const u64 index = m.put(Ints{10, 0, 3, 3, 7});
        const u64 want = m.reserve(5 * width * 2), got = m.reserve(5 * width * 2);
        EmbedArgs e{.ids = index, .table = table, .out = want, .rows = 5, .width = width, .vocab = 11};
        host::embed(e, kSame);
        e.out = got;
        REQUIRE(kernel::embed(e, nullptr) == 0);
        check_same(m.get<bf16>(got, 5 * width), m.get<bf16>(want, 5 * width));
        const u64 gathered = m.reserve(5 * width * 2);
        REQUIRE(kernel::gather({.in = table, .index = index, .out = gathered, .rows = 5,
                                .width = width}, nullptr) == 0);
        check_same(m.get<bf16>(gathered, 5 * width), m.get<bf16>(want, 5 * width));
    }
}

template <class T>
void check_rms_norm() {
    for (const u64 width : {64u, 100u, 257u, 4096u}) {
        for (const bool with_residual : {false, true}) {
            Prng prng(33);
            Memory m;
            const u64 n = 3 * width;
            const auto before = random_values<T>(prng, n, 2);
            RmsNormArgs a{.in = m.put(random_values<T>(prng, n, 2)),
                          .weight = m.put(random_values<T>(prng, width, 1)), .rows = 3,
                          .width = width, .type = kType<T>};
            a.out = m.reserve(n * sizeof(T));
            a.residual = with_residual ? m.put(before) : 0;
            host::rms_norm(a, kSame);
            const auto want = m.get<T>(a.out, n);
            for (const Way& way : kWays) {
                const Version v = way.start();
                CAPTURE(width);
                RmsNormArgs b = a;
                b.out = m.reserve(n * sizeof(T));
                b.residual = with_residual ? m.put(before) : 0;
                REQUIRE(kernel::rms_norm(b, v, nullptr) == 0);
                check_close(m.get<T>(b.out, n), want, 4e-6);
                if (with_residual) check_same(m.get<T>(b.residual, n), m.get<T>(a.residual, n));
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
    Prng prng(34);
    Memory m;
    const auto qkv = random_values<T>(prng, kRows * (kHeads + 2 * kKvHeads) * head_dim, 1);
    RopeArgs a{.qkv = m.put(qkv), .positions = m.put(Ints{0, 1, 2, 900, 4000}), .rows = kRows,
               .heads = kHeads, .kv_heads = kKvHeads, .head_dim = head_dim, .type = kType<T>};
    host::rope(a, kSame);
    for (const Way& way : kWays) {
        const Version v = way.start();
        RopeArgs b = a;
        b.qkv = m.put(qkv);
        REQUIRE(kernel::rope(b, v, nullptr) == 0);
        check_close(m.get<T>(b.qkv, qkv.size()), m.get<T>(a.qkv, qkv.size()), 1e-6);
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
    Prng prng(35);
    Memory m;
    GatedActArgs a{.gate_up = m.put(random_values<T>(prng, 3 * 2 * width, 6)), .rows = 3,
                   .width = width, .type = kType<T>};
    a.out = m.reserve(3 * width * sizeof(T));
    host::gated_act(a, kSame);
    for (const Way& way : kWays) {
        const Version v = way.start();
        GatedActArgs b = a;
        b.out = m.reserve(3 * width * sizeof(T));
        REQUIRE(kernel::gated_act(b, v, nullptr) == 0);
        check_close(m.get<T>(b.out, 3 * width), m.get<T>(a.out, 3 * width), 1e-6);
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
    Prng prng(36);
    Memory m;
    const u64 cache_elements = kBlocks * 2 * kBlock * kKvHeads * head_dim;
    KvAppendArgs a{.qkv = m.put(random_values<T>(prng, 6 * (kHeads + 2 * kKvHeads) * head_dim, 2)),
                   .slots = m.put(Ints{0, 19, 7, -1, 4, 5}), .rows = 6, .heads = kHeads,
                   .kv_heads = kKvHeads, .head_dim = head_dim, .block_size = kBlock,
                   .type = kType<T>, .cache_type = kType<C>};
    a.cache = m.reserve(cache_elements * sizeof(C));
    host::kv_append(a, kSame);
    for (const Way& way : kWays) {
        const Version v = way.start();
        KvAppendArgs b = a;
        b.cache = m.reserve(cache_elements * sizeof(C));
        REQUIRE(kernel::kv_append(b, v, nullptr) == 0);
        check_same(m.get<C>(b.cache, cache_elements), m.get<C>(a.cache, cache_elements));
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
    Prng prng(37);
    Memory m;
    constexpr u64 kRows = 4, kVocab = 9001;
    auto logits = random_values<float>(prng, kRows * kVocab, 5);
    logits[0 * kVocab + 9000] = logits[0 * kVocab + 4500] = 7;   // equal, in two parts
    logits[1 * kVocab + 0] = 7;
    for (u64 i = 0; i < kVocab; ++i) logits[2 * kVocab + i] = NAN;
    logits[3 * kVocab + 9000] = 7;
    SampleArgs a{.logits = m.put(logits), .tokens = m.reserve(kRows * 4), .rows = kRows,
                 .vocab = kVocab};
    const u64 work = m.reserve(4096);
    for (const Way& way : kWays) {
        const Version v = way.start();
        for (const u64 work_bytes : {4096u, 8u}) {
            REQUIRE(kernel::sample(a, v, {work, work_bytes}, nullptr) == 0);
            CHECK(m.get<std::int32_t>(a.tokens, kRows) == Ints{4500, 0, 0, 9000});
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
    Prng prng(38);
    Memory m;
    u64 rows = 0, longest = 0, blocks = 1;   // block 0 is nobody's
    Ints row_begin{0}, context;
    for (const auto& [n, length] : c.seqs) {
        rows += n;
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
    AttentionArgs a{.qkv = m.put(random_values<T>(
                        prng, rows * (c.heads + 2 * c.kv_heads) * c.head_dim, 2)),
                    .cache = m.put(random_values<C>(
                        prng, blocks * 2 * c.block_size * c.kv_heads * c.head_dim, 1)),
                    .row_begin = m.put(row_begin), .context_len = m.put(context),
                    .block_tables = m.put(tables), .rows = rows, .seqs = c.seqs.size(),
                    .max_blocks = max_blocks, .heads = c.heads, .kv_heads = c.kv_heads,
                    .head_dim = c.head_dim, .block_size = c.block_size, .window = c.window,
                    .type = kType<T>, .cache_type = kType<C>};
    const u64 n = rows * c.heads * c.head_dim;
    a.out = m.reserve(n * sizeof(T));
    host::attention(a, kSame);
    const Workspace work{m.reserve(c.work_bytes), c.work_bytes};
    for (const Way& way : kWays) {
        const Version v = way.start();
        AttentionArgs b = a;
        b.out = m.reserve(n * sizeof(T));
        REQUIRE(kernel::attention(b, v, work, nullptr) == 0);
        CAPTURE(static_cast<int>(v));
        // Prefill multiplies weights that were rounded to T: values up to 1, weights off by 2^-9.
        check_close(m.get<T>(b.out, n), m.get<T>(a.out, n), sizeof(T) == 4 ? 1e-5 : 0x1p-8);
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

TEST_CASE("kernels: prefill attention on tensor cores, whole prompts, chunks and decodes mixed") {
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
