#include "ui/view_model/tiers.hpp"

#include <algorithm>

namespace oomlab::view {
namespace {

void merge(Bucket& into, const Bucket& from) {
    into.end_us = from.end_us;
    for (std::size_t c = 0; c < kChannels; ++c) {
        trace::Envelope& a = into.value[c];
        const trace::Envelope& b = from.value[c];
        a.now = b.now;
        a.low = std::min(a.low, b.low);
        a.high = std::max(a.high, b.high);
    }
}

}  // namespace

const Bucket& Tiers::Tier::get(std::size_t i) const {
    if (i >= ring.size()) return open;
    const std::size_t at = oldest + i;
    return ring[at < ring.size() ? at : at - ring.size()];
}

std::size_t Tiers::Tier::first_ending_at_or_after(i64 time_us) const {
    std::size_t low = 0, high = size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (get(middle).end_us < time_us) low = middle + 1;
        else high = middle;
    }
    return low;
}

void Tiers::add(const Bucket& sample) {
    if (samples_++ == 0) first_us_ = sample.begin_us;
    last_us_ = std::max(last_us_, sample.end_us);
    u64 full = 1;
    for (Tier& tier : tiers_) {
        if (tier.open_samples++ == 0) tier.open = sample;
        else merge(tier.open, sample);
        if (tier.open_samples == full) {
            if (tier.ring.size() < kBuckets) {
                tier.ring.push_back(tier.open);
            } else {
                tier.ring[tier.oldest] = tier.open;
                tier.oldest = (tier.oldest + 1) % kBuckets;
            }
            tier.open_samples = 0;
        }
        full *= kMerge;
    }
}

Tiers::Slice Tiers::slice(i64 from_us, i64 to_us, std::size_t most) const {
    Slice result;
    u64 samples_per_bucket = 1;
    for (std::size_t k = 0; k < kTiers; ++k, samples_per_bucket *= kMerge) {
        const Tier& tier = tiers_[k];
        if (tier.size() == 0) continue;
        const bool last = k + 1 == kTiers;
        const bool reaches = tier.get(0).begin_us <= std::max(from_us, first_us_);
        if (!reaches && !last) continue;
        const std::size_t begin = tier.first_ending_at_or_after(from_us);
        std::size_t end = begin;
        while (end < tier.size() && tier.get(end).begin_us <= to_us && end - begin <= most) ++end;
        if (end - begin > most && !last) continue;
        result.samples_per_bucket = samples_per_bucket;
        result.buckets.reserve(end - begin);
        for (std::size_t i = begin; i < end; ++i) result.buckets.push_back(tier.get(i));
        break;
    }
    return result;
}

std::optional<Bucket> Tiers::at(i64 time_us) const {
    for (const Tier& tier : tiers_) {
        if (tier.size() == 0 || tier.get(0).begin_us > time_us) continue;
        std::size_t i = tier.first_ending_at_or_after(time_us);
        if (i == tier.size() || tier.get(i).begin_us > time_us) --i;
        return tier.get(i);
    }
    return std::nullopt;
}

std::size_t Tiers::bytes_held() const {
    std::size_t buckets = 0;
    for (const Tier& tier : tiers_) buckets += tier.ring.capacity() + 1;
    return buckets * sizeof(Bucket);
}

}  // namespace oomlab::view
