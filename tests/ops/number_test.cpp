// Conversions are held against the definition: the nearest of all values that the format has, the
// even code among two equally near ones, found by looking at every code.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernels/base/prng.hpp"
#include "kernels/ops/bodies/number.hpp"

using namespace oomlab;
using number::bf16;
using number::f16;
using number::fp8;
using number::from_float;
using number::to_float;

namespace {

// value of a code, from sign, exponent and mantissa alone
double by_definition(unsigned code, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const unsigned mantissa = code & ((1u << mantissa_bits) - 1);
    const int exponent = static_cast<int>((code >> mantissa_bits) & ((1u << exponent_bits) - 1));
    const double sign = (code >> (mantissa_bits + exponent_bits)) != 0 ? -1 : 1;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1u << mantissa_bits), exponent - bias - mantissa_bits);
}

template <class T>
void check_nearest(int exponent_bits, int mantissa_bits, unsigned largest_code) {
    Prng prng(7);
    const double largest = by_definition(largest_code, exponent_bits, mantissa_bits);
    const double smallest = by_definition(1, exponent_bits, mantissa_bits);
    for (int i = 0; i < 20000; ++i) {
        const double spread = std::log2(largest) - std::log2(smallest) + 2;
        double x = std::exp2(std::log2(smallest) - 2 + prng.uniform() * spread);
        if (i % 4 == 0) {   // exactly between two neighbours
            const unsigned code = static_cast<unsigned>(prng.below(largest_code));
            x = (by_definition(code, exponent_bits, mantissa_bits) +
                 by_definition(code + 1, exponent_bits, mantissa_bits)) / 2;
        }
        x = static_cast<double>(static_cast<float>(x));
        if (x >= largest) continue;
        unsigned low = 0, high = largest_code;
        while (high - low > 1) {
            const unsigned middle = (low + high) / 2;
            (by_definition(middle, exponent_bits, mantissa_bits) <= x ? low : high) = middle;
        }
        const double below = x - by_definition(low, exponent_bits, mantissa_bits);
        const double above = by_definition(high, exponent_bits, mantissa_bits) - x;
        const unsigned want = below < above || (below == above && low % 2 == 0) ? low : high;
        INFO("x = ", x);
        REQUIRE(from_float<T>(static_cast<float>(x)).bits == want);
        const unsigned sign = 1u << (exponent_bits + mantissa_bits);
        REQUIRE(from_float<T>(static_cast<float>(-x)).bits == (want | sign));
    }
}

}  // namespace

TEST_CASE("numbers: every code of a format has the value of its definition and survives a round trip") {
    for (unsigned code = 0; code < 0x10000; ++code) {
        const f16 h{static_cast<std::uint16_t>(code)};
        if ((code & 0x7c00) != 0x7c00) {
            REQUIRE(static_cast<double>(to_float(h)) == by_definition(code, 5, 10));
            REQUIRE(from_float<f16>(to_float(h)).bits == code);
        }
        const bf16 b{static_cast<std::uint16_t>(code)};
        if ((code & 0x7f80) != 0x7f80) {
            REQUIRE(static_cast<double>(to_float(b)) == by_definition(code, 8, 7));
            REQUIRE(from_float<bf16>(to_float(b)).bits == code);
        }
    }
    for (unsigned code = 0; code < 0x100; ++code) {
        if ((code & 0x7f) == 0x7f) continue;
        const fp8 q{static_cast<std::uint8_t>(code)};
        REQUIRE(static_cast<double>(to_float(q)) == by_definition(code, 4, 3));
        REQUIRE(from_float<fp8>(to_float(q)).bits == code);
    }
}

TEST_CASE("numbers: rounding goes to the nearest value and among two to the even code") {
    check_nearest<f16>(5, 10, 0x7bff);
    check_nearest<bf16>(8, 7, 0x7f7f);
    check_nearest<fp8>(4, 3, 0x7e);
}

TEST_CASE("numbers: golden codes") {
    CHECK(from_float<bf16>(1.0f).bits == 0x3f80);
    CHECK(from_float<bf16>(1.00390625f).bits == 0x3f80);   // 1 + 2^-8, a tie, down to even
    CHECK(from_float<bf16>(1.01171875f).bits == 0x3f82);   // 1 + 3 * 2^-8, a tie, up to even
    CHECK(from_float<f16>(65504.0f).bits == 0x7bff);
    CHECK(from_float<f16>(65519.996f).bits == 0x7bff);
    CHECK(from_float<f16>(65520.0f).bits == 0x7c00);       // infinity
    CHECK(from_float<f16>(0x1p-25f).bits == 0);            // half the smallest, down to even
    CHECK(from_float<f16>(0x1.8p-24f).bits == 2);
    CHECK(from_float<fp8>(1.0f).bits == 0x38);
    CHECK(from_float<fp8>(17.0f).bits == 0x58);            // between 16 and 18
    CHECK(from_float<fp8>(19.0f).bits == 0x5a);            // between 18 and 20
    CHECK(from_float<fp8>(1e9f).bits == 0x7e);             // 448: saturates
    CHECK(from_float<fp8>(-INFINITY).bits == 0xfe);
    CHECK(std::isnan(to_float(from_float<fp8>(NAN))));
    CHECK(std::isnan(to_float(from_float<bf16>(NAN))));
    CHECK(std::isnan(to_float(from_float<f16>(NAN))));
    CHECK(from_float<std::int8_t>(300.0f) == 127);
    CHECK(from_float<std::int8_t>(-2.5f) == -3);
}
