// Finds any of a few hundred short literals in a large buffer, ignoring ASCII case.
//
// The scan hashes the four bytes at every second position (folded by one OR) and asks a bitmap,
// which stays in the first-level cache; only where the bit is set are literals compared. Each
// literal has two neighbouring grams in the bitmap, one of which every second position meets; they
// are the literal's rarest pair. No state runs from byte to byte, so the loop is not bound by
// latency as an Aho-Corasick automaton is, and no input makes it slower than the literals that
// share one hash. Immutable after construction: threads may share one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oomlab::triage {

class LiteralSet {
  public:
    static constexpr std::size_t kGram = 4;
    static constexpr std::size_t kStride = 2;
    static constexpr std::size_t kLiteralMin = kGram + kStride - 1;

    // REQUIRES: every literal has kLiteralMin bytes or more. Ids are positions in `literals`.
    explicit LiteralSet(const std::vector<std::string_view>& literals);

    struct Hit {
        std::size_t position = std::string_view::npos;  // where the gram stands, not the literal
        bool found() const { return position != std::string_view::npos; }
    };
    // The first position at or after `from` where some literal stands. The literal's first byte is
    // at or after `from`; the literal lies wholly in `text`.
    Hit find_first(std::string_view text, std::size_t from) const;

    // Ids of all literals in `text`, ascending, each once.
    void find_all(std::string_view text, std::vector<std::uint16_t>& ids) const;

    std::size_t size() const { return folded_.size(); }

  private:
    static constexpr unsigned kHashBits = 17;
    struct Entry {
        std::uint16_t literal;
        std::uint16_t offset;  // of the gram in the literal
    };

    static std::uint32_t hash(std::uint32_t gram) {
        return ((gram | 0x20202020U) * 0x9E3779B1U) >> (32 - kHashBits);
    }
    bool equals(const char* at, std::uint16_t literal) const;

    std::vector<std::string> folded_;
    std::vector<std::uint64_t> bitmap_;
    std::vector<std::uint32_t> bucket_begin_;
    std::vector<Entry> entries_;
};

}  // namespace oomlab::triage
