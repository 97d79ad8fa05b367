// Mutations without libFuzzer: the same for the same seed, on any compiler.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/base/prng.hpp"

namespace oomlab::test {

// Changes, cuts, repeats or inserts a few bytes; 1 to 8 such changes.
inline std::string mutate(Prng& prng, std::string bytes) {
    static constexpr char kEdges[] = {'\0', '\1', '\x7f', '\x80', '\xff', '"', '[', '{', '=', '\n'};
    for (std::uint64_t changes = prng.between(1, 8); changes > 0; --changes) {
        const std::size_t at = prng.below(bytes.size() + 1);
        const std::size_t length = std::min<std::size_t>(prng.between(1, 16), bytes.size() - at);
        switch (prng.below(6)) {
            case 0:
                if (at < bytes.size()) bytes[at] = static_cast<char>(prng.below(256));
                break;
            case 1:
                if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << prng.below(8)));
                break;
            case 2: bytes.erase(at, length); break;
            case 3: bytes.insert(at, bytes.substr(at, length)); break;
            case 4: bytes.insert(at, 1, kEdges[prng.below(sizeof(kEdges))]); break;
            default:
                for (std::size_t i = at; i < at + length; ++i) bytes[i] = kEdges[prng.below(sizeof(kEdges))];
        }
        if (prng.chance(0.02)) bytes.resize(prng.below(bytes.size() + 1));
    }
    return bytes;
}

}  // namespace oomlab::test
