// Sizes in bytes: literals, named rounding, checked arithmetic, reading and printing.
//
// Sizes are std::uint64_t and carry their unit in the name (`pool_bytes`). Rounding is always
// named, never a bare `/`. Binary units only; "GB" is read as 10^9 because vendors mean that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "kernels/base/result.hpp"

namespace oomlab {

using u64 = std::uint64_t;
using i64 = std::int64_t;
using u32 = std::uint32_t;
using u16 = std::uint16_t;
using i32 = std::int32_t;

inline constexpr u64 kKiB = 1024;
inline constexpr u64 kMiB = 1024 * kKiB;
inline constexpr u64 kGiB = 1024 * kMiB;

namespace literals {
constexpr u64 operator""_B(unsigned long long n) { return n; }
constexpr u64 operator""_KiB(unsigned long long n) { return n * kKiB; }
constexpr u64 operator""_MiB(unsigned long long n) { return n * kMiB; }
constexpr u64 operator""_GiB(unsigned long long n) { return n * kGiB; }
}  // namespace literals

// REQUIRES: step > 0.
constexpr u64 div_ceil(u64 n, u64 step) { return n / step + (n % step != 0 ? 1 : 0); }
constexpr u64 round_up(u64 n, u64 step) { return div_ceil(n, step) * step; }
constexpr u64 round_down(u64 n, u64 step) { return n / step * step; }

// Overflow and underflow of a size are bugs of ours: they abort, they never wrap.
inline u64 checked_add(u64 a, u64 b) {
    u64 r = 0;
    OOMLAB_CHECK(!__builtin_add_overflow(a, b, &r));
    return r;
}
inline u64 checked_sub(u64 a, u64 b) {
    OOMLAB_CHECK(a >= b);
    return a - b;
}
inline u64 checked_mul(u64 a, u64 b) {
    u64 r = 0;
    OOMLAB_CHECK(!__builtin_mul_overflow(a, b, &r));
    return r;
}

// "1.50 GiB", as PyTorch's OOM message prints sizes: two decimals, upper bounds inclusive
// (exactly 1 MiB prints "1024.00 KiB"), "N bytes" up to 1024, nothing above GiB.
std::string format_size(u64 bytes);

// For people: "1.50 GiB", "512 B", "20 MiB"; no trailing ".00".
std::string human_bytes(u64 bytes);
// The same with a sign, for differences.
std::string human_bytes_signed(i64 bytes);

// Reads "512MiB", "24 GiB", "1.5GiB", "1e9", "80GB" (10^9), "1048576" (bytes).
// On failure: Error::parse with what was wrong and the forms that are accepted.
Result<u64> parse_bytes(std::string_view text);

}  // namespace oomlab
