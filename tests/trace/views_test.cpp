#include <doctest/doctest.h>

#include <string>

#include "labs/trace/views.hpp"

using namespace oomlab;
using namespace oomlab::trace;

namespace {
template <class T>
void put(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
RecordView view_of(RecordType type, const std::string& bytes) {
    return {type, 1, 0, std::as_bytes(std::span(bytes.data(), bytes.size()))};
}
std::string map_bytes(u32 blocks_of_segment) {
    std::string bytes;
    put(bytes, BlockMapRecord{1, 2, 0, 0});
    put(bytes, MapSegment{0x1000, 2048, 0, blocks_of_segment, 0, 0, 0, 0});
    put(bytes, MapBlock{0x1000, 512, 3, Owner::kv, BlockState::active, 0});
    put(bytes, MapBlock{0x1200, 1536, kNoRequest, Owner::cached, BlockState::free, 0});
    return bytes;
}
}  // namespace

TEST_CASE("views: a block map is taken apart") {
    const std::string bytes = map_bytes(2);
    const auto map = block_map(view_of(RecordType::block_map, bytes));
    REQUIRE(map.has_value());
    CHECK(map->segments[0].bytes == 2048);
    CHECK(map->blocks[1].state == BlockState::free);
}

TEST_CASE("views: a map whose counts do not fit its bytes is refused") {
    CHECK_FALSE(block_map(view_of(RecordType::block_map, map_bytes(3))));
    CHECK_FALSE(block_map(view_of(RecordType::block_map, map_bytes(2) + "x")));
    CHECK_FALSE(block_map(view_of(RecordType::block_map, map_bytes(2).substr(0, 40))));
    CHECK_FALSE(block_map(view_of(RecordType::block_map, "")));
    CHECK_FALSE(block_map(view_of(RecordType::sample, map_bytes(2))));
    std::string huge;
    put(huge, BlockMapRecord{0xffffffff, 0xffffffff, 0, 0});
    CHECK_FALSE(block_map(view_of(RecordType::block_map, huge)));
    std::string kv;
    put(kv, KvMapRecord{2, 10, 5, 0});
    put(kv, KvOwner{1, 5, 0, 0});
    CHECK_FALSE(kv_map(view_of(RecordType::kv_map, kv)));
    put(kv, KvOwner{2, 5, 5, 0});
    CHECK(kv_map(view_of(RecordType::kv_map, kv))->owners.size() == 2);
}

TEST_CASE("views: a failure's message is its tail") {
    std::string bytes;
    FailureRecord record{};
    record.requested_bytes = 77;
    put(bytes, record);
    bytes += "out of memory";
    const auto f = failure(view_of(RecordType::failure, bytes));
    REQUIRE(f.has_value());
    CHECK(f->message == "out of memory");
    CHECK(f->record.requested_bytes == 77);
}

TEST_CASE("series: thinning keeps the last figure and every extreme") {
    for (const std::size_t points : {1, 2, 3, 7, 100}) {
        for (const u64 samples : {1, 2, 5, 8, 99, 1000}) {
            SampleSeries series(points);
            for (u64 i = 0; i < samples; ++i) {
                SampleRecord s{};
                const u64 peak = i == samples / 2 ? 5000 : 100 + i % 3;
                s.allocated = {50, i == samples / 3 ? u64{1} : u64{50}, peak};
                s.steps = i + 1;
                series.add(static_cast<i64>(i), s);
            }
            REQUIRE(series.points().size() <= points);
            if (samples <= points) CHECK(series.points().size() == samples);
            CHECK(series.points().back().time_us == static_cast<i64>(samples - 1));
            CHECK(series.points().back().sample.steps == samples);
            u64 high = 0, low = 1000;
            i64 before = -1;
            for (const auto& p : series.points()) {
                high = std::max(high, p.sample.allocated.high);
                low = std::min(low, p.sample.allocated.low);
                CHECK(p.time_us > before);
                before = p.time_us;
            }
            CHECK(high == 5000);
            CHECK(low == 1);
        }
    }
}
