// Records with a tail, taken apart and checked: what a map's counts promise must be there.
// Views borrow the record's bytes, so they live as long as the Reader.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "labs/trace/reader.hpp"

namespace oomlab::trace {

struct BlockMap {
    BlockMapRecord record;
    std::vector<MapSegment> segments;   // each one's first_block and blocks lie within `blocks`
    std::vector<MapBlock> blocks;
};
// Empty when the record is no block map or its counts do not fit its bytes.
std::optional<BlockMap> block_map(const RecordView& view);

struct KvMap {
    KvMapRecord record;
    std::vector<KvOwner> owners;
};
std::optional<KvMap> kv_map(const RecordView& view);

struct FailureView {
    FailureRecord record;
    std::string_view message;   // not yet made safe for a terminal
};
std::optional<FailureView> failure(const RecordView& view);

// A record without a tail, or whose tail does not matter: its struct if the type is right.
template <class Record>
std::optional<Record> record_of(const RecordView& view, RecordType type) {
    return view.type == type ? view.as<Record>() : std::nullopt;
}

// Samples thinned to at most `points`, so that an hour fits a screen: neighbours are merged, `now`
// is the later one's, low and high span both, so no peak is ever lost.
// REQUIRES: points > 0.
class SampleSeries {
  public:
    explicit SampleSeries(std::size_t points) : limit_(points) {}
    struct Point {
        i64 time_us;
        SampleRecord sample;
    };
    void add(i64 time_us, const SampleRecord& sample);
    const std::vector<Point>& points() const { return points_; }

  private:
    std::size_t limit_, per_point_ = 1, in_last_ = 0;
    std::vector<Point> points_;
};

}  // namespace oomlab::trace
