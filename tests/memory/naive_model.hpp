// A second allocator, written from the rules alone and as plainly as possible: vectors, linear
// scans, recounts. One stream, default pools, no expandable segments. It shares no line with the
// one under test; figures and arrangement of both must agree after every call.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::naive {

struct Settings {
    u64 capacity = 0;        // of the device
    std::optional<u64> cap;  // of the process
    u64 max_split = UINT64_MAX;
    u64 non_split_rounding = 20 * kMiB;
    u64 divisions = 0;  // the same for every size
};

struct Piece {
    u64 bytes = 0, requested = 0;
    bool used = false;
    u64 key = 0;  // the caller's name for it
};

struct Segment {
    bool small = false;
    std::vector<Piece> pieces;
    u64 bytes() const {
        u64 sum = 0;
        for (const Piece& p : pieces) sum += p.bytes;
        return sum;
    }
    bool whole_and_free() const { return pieces.size() == 1 && !pieces[0].used; }
};

struct Figures {
    u64 allocated = 0, reserved = 0, requested = 0, split_bytes = 0;
    u64 segments = 0, splits = 0, allocations = 0;
    bool operator==(const Figures&) const = default;
};

class Model {
  public:
    explicit Model(const Settings& settings) : set_(settings) {}

    u64 retries = 0, ooms = 0;
    // In the order they were taken from the driver, which is the order of their addresses.
    std::vector<Segment> segments;

    u64 rounded(u64 n) const {
        if (n < 512) return 512;
        if (set_.divisions > 1 && n > 512 * set_.divisions) {
            u64 power = 1;
            while (power * 2 <= n) power *= 2;
            if (power == n) return n;
            const u64 step = power / set_.divisions;
            return (n + step - 1) / step * step;
        }
        return (n + 511) / 512 * 512;
    }

    bool malloc(u64 key, u64 requested) {
        const u64 n = rounded(requested);
        const bool small = n <= kMiB;
        u64 segment_bytes = 2 * kMiB;
        if (!small) {
            segment_bytes =
                n < 10 * kMiB ? 20 * kMiB : (n + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
        }
        Place at = find(n, small);
        if (!at.found) at = take(segment_bytes, small);
        if (!at.found && release_oversize(n, small)) at = take(segment_bytes, small);
        if (!at.found) {
            release_all();
            ++retries;
            at = take(segment_bytes, small);
        }
        if (!at.found) {
            ++ooms;
            return false;
        }
        auto& pieces = segments[at.segment].pieces;
        const u64 rest = pieces[at.piece].bytes - n;
        if (small ? rest >= 512 : (n < set_.max_split && rest > kMiB)) {
            pieces[at.piece].bytes = n;
            pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at.piece) + 1,
                          Piece{.bytes = rest});
        }
        Piece& piece = pieces[at.piece];
        piece.used = true;
        piece.requested = requested;
        piece.key = key;
        return true;
    }

    void free(u64 key) {
        for (Segment& segment : segments) {
            auto& pieces = segment.pieces;
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                if (!pieces[i].used || pieces[i].key != key) continue;
                pieces[i].used = false;
                join(pieces);
                return;
            }
        }
    }

    void release_all() {
        std::erase_if(segments, [](const Segment& s) { return s.whole_and_free(); });
    }

    Figures figures() const {
        Figures f;
        for (const Segment& segment : segments) {
            ++f.segments;
            f.reserved += segment.bytes();
            for (const Piece& piece : segment.pieces) {
                if (piece.used) {
                    ++f.allocations;
                    f.allocated += piece.bytes;
                    f.requested += piece.requested;
                } else if (segment.pieces.size() > 1) {
                    ++f.splits;
                    f.split_bytes += piece.bytes;
                }
            }
        }
        return f;
    }

  private:
    struct Place {
        bool found = false;
        std::size_t segment = 0, piece = 0;
    };

    static void join(std::vector<Piece>& pieces) {
        for (std::size_t i = 0; i + 1 < pieces.size();) {
            if (pieces[i].used || pieces[i + 1].used) {
                ++i;
                continue;
            }
            pieces[i].bytes += pieces[i + 1].bytes;
            pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
    }

    // The smallest free piece that is large enough, the lowest address among equals.
    Place find(u64 n, bool small) const {
        Place best;
        u64 best_bytes = UINT64_MAX;
        for (std::size_t s = 0; s < segments.size(); ++s) {
            if (segments[s].small != small) continue;
            for (std::size_t p = 0; p < segments[s].pieces.size(); ++p) {
                const Piece& piece = segments[s].pieces[p];
                if (piece.used || piece.bytes < n || piece.bytes >= best_bytes) continue;
                best = {true, s, p};
                best_bytes = piece.bytes;
            }
        }
        if (!best.found) return best;
        if (n < set_.max_split && best_bytes >= set_.max_split) return {};
        if (n >= set_.max_split && best_bytes >= n + set_.non_split_rounding) return {};
        return best;
    }

    Place take(u64 bytes, bool small) {
        const u64 reserved = figures().reserved;
        if (set_.cap && reserved + bytes > *set_.cap) return {};
        if (reserved + bytes > set_.capacity) return {};
        segments.push_back({.small = small, .pieces = {Piece{.bytes = bytes}}});
        return {true, segments.size() - 1, 0};
    }

    bool release_oversize(u64 n, bool small) {
        if (set_.max_split == UINT64_MAX) return false;
        const u64 wanted = std::max(n, set_.max_split);
        // Free pieces of this pool by size; such large ones are whole segments.
        const Place one = [&] {
            Place best;
            u64 best_bytes = UINT64_MAX;
            for (std::size_t s = 0; s < segments.size(); ++s) {
                if (segments[s].small != small || !segments[s].whole_and_free()) continue;
                const u64 bytes = segments[s].bytes();
                if (bytes < wanted || bytes >= best_bytes) continue;
                best = {true, s, 0};
                best_bytes = bytes;
            }
            return best;
        }();
        if (one.found) {
            segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(one.segment));
            return true;
        }
        u64 released = 0;
        while (released < wanted) {
            std::size_t largest = segments.size();
            for (std::size_t s = 0; s < segments.size(); ++s) {
                if (segments[s].small != small || !segments[s].whole_and_free()) continue;
                if (segments[s].bytes() < set_.max_split) continue;
                // Equal sizes: the highest address first.
                if (largest == segments.size() ||
                    segments[s].bytes() >= segments[largest].bytes()) {
                    largest = s;
                }
            }
            if (largest == segments.size()) break;
            released += segments[largest].bytes();
            segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(largest));
        }
        return released >= wanted;
    }

    Settings set_;
};

}  // namespace oomlab::naive
