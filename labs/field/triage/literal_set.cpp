#include "labs/field/triage/literal_set.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/check.hpp"

namespace oomlab::triage {
namespace {

char fold(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

std::uint32_t load(const char* p) {
    std::uint32_t gram = 0;
    std::memcpy(&gram, p, sizeof gram);
    return gram;
}

// How often letters stand in ordinary log text, very roughly: the rarest gram of a literal wakes
// the comparison least often.
int commonness(char c) {
    static constexpr std::string_view kCommon = " etaoinsrhldcumfpgwybv";
    const auto at = kCommon.find(c);
    if (c >= '0' && c <= '9') return 16;
    return at == std::string_view::npos ? 1 : static_cast<int>(24 - at);
}

}  // namespace

LiteralSet::LiteralSet(const std::vector<std::string_view>& literals)
    : bitmap_((1U << kHashBits) / 64, 0) {
    OOMLAB_CHECK(literals.size() < 65535);
    std::vector<std::vector<Entry>> buckets(1U << kHashBits);
    for (std::size_t id = 0; id < literals.size(); ++id) {
        std::string folded(literals[id]);
        std::transform(folded.begin(), folded.end(), folded.begin(), fold);
        OOMLAB_CHECK(folded.size() >= kLiteralMin);
        const auto cost = [&](std::size_t o) {
            int product = 1;
            for (std::size_t k = 0; k < kGram; ++k) product *= commonness(folded[o + k]);
            return product;
        };
        std::size_t best = 0;
        int best_cost = 1 << 30;
        for (std::size_t o = 0; o + kLiteralMin <= folded.size(); ++o) {
            const int both = cost(o) + cost(o + 1);
            if (both < best_cost) best_cost = both, best = o;
        }
        for (std::size_t o = best; o < best + kStride; ++o) {
            const std::uint32_t h = hash(load(folded.data() + o));
            bitmap_[h / 64] |= std::uint64_t{1} << (h % 64);
            buckets[h].push_back({static_cast<std::uint16_t>(id), static_cast<std::uint16_t>(o)});
        }
        folded_.push_back(std::move(folded));
    }
    bucket_begin_.reserve(buckets.size() + 1);
    for (const auto& bucket : buckets) {
        bucket_begin_.push_back(static_cast<std::uint32_t>(entries_.size()));
        entries_.insert(entries_.end(), bucket.begin(), bucket.end());
    }
    bucket_begin_.push_back(static_cast<std::uint32_t>(entries_.size()));
}

bool LiteralSet::equals(const char* at, std::uint16_t literal) const {
    const std::string& want = folded_[literal];
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (fold(at[i]) != want[i]) return false;
    }
    return true;
}

LiteralSet::Hit LiteralSet::find_first(std::string_view text, std::size_t from) const {
    if (text.size() < kGram) return {};
    const char* const base = text.data();
    const std::size_t last = text.size() - kGram;
    const std::uint64_t* const bits = bitmap_.data();
    const auto maybe = [&](std::size_t at) {
        const std::uint32_t h = hash(load(base + at));
        return (bits[h / 64] >> (h % 64)) & 1U;
    };
    const auto verify = [&](std::size_t at) {
        const std::uint32_t h = hash(load(base + at));
        for (std::uint32_t e = bucket_begin_[h]; e < bucket_begin_[h + 1]; ++e) {
            const Entry entry = entries_[e];
            if (at < from + entry.offset) continue;
            const std::size_t start = at - entry.offset;
            if (start + folded_[entry.literal].size() > text.size()) continue;
            if (equals(base + start, entry.literal)) return true;
        }
        return false;
    };
    std::size_t i = from;
    while (i + 3 * kStride <= last) {
        const std::uint64_t any =
            maybe(i) | maybe(i + kStride) | maybe(i + 2 * kStride) | maybe(i + 3 * kStride);
        if (any != 0) [[unlikely]] {
            for (std::size_t k = i; k < i + 4 * kStride; k += kStride) {
                if (maybe(k) && verify(k)) return {k};
            }
        }
        i += 4 * kStride;
    }
    for (; i <= last; i += kStride) {
        if (maybe(i) && verify(i)) return {i};
    }
    return {};
}

void LiteralSet::find_all(std::string_view text, std::vector<std::uint16_t>& ids) const {
    ids.clear();
    if (text.size() < kGram) return;
    for (std::size_t i = 0; i + kGram <= text.size(); i += kStride) {
        const std::uint32_t h = hash(load(text.data() + i));
        if (((bitmap_[h / 64] >> (h % 64)) & 1U) == 0) continue;
        for (std::uint32_t e = bucket_begin_[h]; e < bucket_begin_[h + 1]; ++e) {
            const Entry entry = entries_[e];
            if (i < entry.offset) continue;
            const std::size_t start = i - entry.offset;
            if (start + folded_[entry.literal].size() > text.size()) continue;
            if (equals(text.data() + start, entry.literal)) ids.push_back(entry.literal);
        }
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace oomlab::triage
