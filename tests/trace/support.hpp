// Small traces for tests: made, written and read back in a line.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "labs/trace/reader.hpp"
#include "labs/trace/writer.hpp"
#include "tests/support/temp_dir.hpp"

namespace oomlab::trace::test {

inline constexpr FileSizes kSmall{64 * kKiB, 16 * kKiB};

inline std::unique_ptr<Writer> make_writer(const std::string& path, FileSizes sizes = kSmall) {
    REQUIRE(create_trace_file(path, sizes).has_value());
    auto writer = Writer::open(path);
    REQUIRE(writer.has_value());
    return std::move(*writer);
}

inline std::unique_ptr<Reader> open_reader(const std::string& path) {
    auto reader = Reader::open(path);
    if (!reader) FAIL(reader.error().message);
    return std::move(*reader);
}

inline RequestRecord request_record(u32 number) {
    RequestRecord record{};
    record.request = number;
    return record;
}

// A record with its bytes, so that it outlives the reader.
struct Kept {
    RecordType type;
    u64 seq;
    i64 time_us;
    std::string payload;
    bool operator==(const Kept&) const = default;
};
inline std::vector<Kept> read_all(Reader& reader) {
    std::vector<Kept> all;
    reader.poll([&](const RecordView& r) {
        all.push_back({r.type, r.seq, r.time_us, std::string(r.text())});
    });
    return all;
}

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace oomlab::trace::test
