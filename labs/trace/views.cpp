#include "labs/trace/views.hpp"

#include <algorithm>

namespace oomlab::trace {

namespace {
// Tails are not aligned, so they are copied out.
template <class Item>
std::vector<Item> copy_items(std::span<const std::byte> bytes, std::size_t count) {
    std::vector<Item> items(count);
    if (count > 0) std::memcpy(items.data(), bytes.data(), count * sizeof(Item));
    return items;
}

void widen(Envelope& into, const Envelope& next) {
    into = {next.now, std::min(into.low, next.low), std::max(into.high, next.high)};
}
void merge(SampleSeries::Point& into, const SampleSeries::Point& next) {
    SampleRecord merged = next.sample;
    for (std::size_t i = 0; i < kOwners; ++i) {
        merged.owner[i] = into.sample.owner[i];
        widen(merged.owner[i], next.sample.owner[i]);
    }
    merged.allocated = into.sample.allocated;
    merged.reserved = into.sample.reserved;
    merged.device_used = into.sample.device_used;
    widen(merged.allocated, next.sample.allocated);
    widen(merged.reserved, next.sample.reserved);
    widen(merged.device_used, next.sample.device_used);
    into = {next.time_us, merged};
}
}  // namespace

std::optional<BlockMap> block_map(const RecordView& view) {
    const auto record = record_of<BlockMapRecord>(view, RecordType::block_map);
    if (!record) return std::nullopt;
    const auto tail = view.tail_after<BlockMapRecord>();
    const u64 segments_bytes = u64{record->segments} * sizeof(MapSegment);
    const u64 blocks_bytes = u64{record->blocks} * sizeof(MapBlock);
    if (tail.size() != segments_bytes + blocks_bytes) return std::nullopt;
    BlockMap map{*record, copy_items<MapSegment>(tail, record->segments),
                 copy_items<MapBlock>(tail.subspan(segments_bytes), record->blocks)};
    for (const MapSegment& s : map.segments) {
        if (u64{s.first_block} + s.blocks > map.blocks.size()) return std::nullopt;
    }
    for (const MapBlock& b : map.blocks) {
        if (b.owner >= Owner::count_ || b.state > BlockState::pending_free) return std::nullopt;
    }
    return map;
}

std::optional<KvMap> kv_map(const RecordView& view) {
    const auto record = record_of<KvMapRecord>(view, RecordType::kv_map);
    if (!record) return std::nullopt;
    const auto tail = view.tail_after<KvMapRecord>();
    if (tail.size() != u64{record->owners} * sizeof(KvOwner)) return std::nullopt;
    return KvMap{*record, copy_items<KvOwner>(tail, record->owners)};
}

std::optional<FailureView> failure(const RecordView& view) {
    const auto record = record_of<FailureRecord>(view, RecordType::failure);
    if (!record || record->owner >= Owner::count_) return std::nullopt;
    const auto tail = view.tail_after<FailureRecord>();
    return FailureView{*record, {reinterpret_cast<const char*>(tail.data()), tail.size()}};
}

void SampleSeries::add(i64 time_us, const SampleRecord& sample) {
    const Point point{time_us, sample};
    if (!points_.empty() && in_last_ < per_point_) {
        merge(points_.back(), point);
        ++in_last_;
        return;
    }
    points_.push_back(point);
    in_last_ = 1;
    if (points_.size() <= limit_) return;
    // Full: every two neighbours become one, and each point stands for twice as many samples.
    if (points_.size() % 2 == 0) in_last_ += per_point_;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points_.size(); i += 2, ++kept) {
        points_[kept] = points_[i];
        if (i + 1 < points_.size()) merge(points_[kept], points_[i + 1]);
    }
    points_.resize(kept);
    per_point_ *= 2;
}

}  // namespace oomlab::trace
