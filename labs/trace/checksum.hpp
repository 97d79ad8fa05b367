// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78): with the processor's instruction where there
// is one, by table elsewhere; the same value either way.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/base/bytes.hpp"

namespace oomlab::trace {

// Continues from `crc` (0 to begin): crc32c(b, crc32c(a)) is the checksum of a followed by b.
u32 crc32c(std::span<const std::byte> bytes, u32 crc = 0);
// The one by table, so that a test can hold the two against each other.
u32 crc32c_by_table(std::span<const std::byte> bytes, u32 crc = 0);

}  // namespace oomlab::trace
