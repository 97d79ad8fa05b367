#include "labs/trace/checksum.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace oomlab::trace {

namespace {
constexpr std::array<u32, 256> make_table() {
    std::array<u32, 256> table{};
    for (u32 i = 0; i < 256; ++i) {
        u32 c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? 0x82f63b78u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
    return table;
}
constexpr std::array<u32, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) u32 by_instruction(std::span<const std::byte> bytes, u32 crc) {
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    u64 c = ~crc;
    for (; left >= 8; left -= 8, at += 8) {
        u64 word;
        std::memcpy(&word, at, 8);
        c = _mm_crc32_u64(c, word);
    }
    u32 c32 = static_cast<u32>(c);
    for (; left > 0; --left, ++at) c32 = _mm_crc32_u8(c32, static_cast<unsigned char>(*at));
    return ~c32;
}
const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
#endif
}  // namespace

u32 crc32c_by_table(std::span<const std::byte> bytes, u32 crc) {
    u32 c = ~crc;
    for (const std::byte b : bytes) c = kTable[(c ^ static_cast<u32>(b)) & 0xff] ^ (c >> 8);
    return ~c;
}

u32 crc32c(std::span<const std::byte> bytes, u32 crc) {
#if defined(__x86_64__)
    if (kHasInstruction) return by_instruction(bytes, crc);
#endif
    return crc32c_by_table(bytes, crc);
}

}  // namespace oomlab::trace
