#include <doctest/doctest.h>

#include <algorithm>

#include "kernels/base/prng.hpp"
#include "tests/trace/support.hpp"

using namespace oomlab;
using namespace oomlab::trace;
using namespace oomlab::trace::test;
using oomlab::test::TempDir;

namespace {
// A compacted trace is small enough to be damaged at each of its bytes.
struct Whole {
    std::string bytes;
    std::vector<Kept> records;
    u64 virtual_end;
};
Whole make_whole(const TempDir& dir) {
    const std::string path = dir.file("whole.trace");
    {
        auto writer = make_writer(path);
        for (u32 i = 0; i < 12; ++i) {
            writer->append(RecordType::request, i, request_record(i));
            writer->append_text(RecordType::log, i, std::string(i, 'x'));
        }
        writer->ring(RingOp{});
        const std::byte one{1};
        writer->append_wall(RecordType::control, 1, std::span(&one, 1));
    }
    REQUIRE(compact_trace_file(path).has_value());
    auto reader = open_reader(path);
    Whole whole{read_file(path), read_all(*reader), 0};
    whole.virtual_end = 4096 + reader->bytes_read();
    return whole;
}
void exercise(Reader& reader) {
    reader.wall([](const RecordView&) {});
    (void)reader.ring();       // must not crash; what it holds is checked elsewhere
    (void)reader.damage();
    (void)reader.dropped();
}
bool is_prefix(const std::vector<Kept>& part, const std::vector<Kept>& whole) {
    return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}
}  // namespace

TEST_CASE("damage: a trace cut at any byte shows its whole records or is refused in one line") {
    const TempDir dir;
    const Whole whole = make_whole(dir);
    REQUIRE(whole.records.size() == 24);
    std::size_t before = 0;
    const std::string path = dir.file("cut.trace");
    const std::size_t last = std::min<std::size_t>(whole.virtual_end + 200, whole.bytes.size());
    for (std::size_t size = 0; size < last; ++size) {
        write_file(path, whole.bytes.substr(0, size));
        auto reader = Reader::open(path);
        if (size < 4096) {
            REQUIRE_FALSE(reader.has_value());
            REQUIRE(reader.error().kind == Error::Kind::parse);
            continue;
        }
        REQUIRE(reader.has_value());
        const auto part = read_all(**reader);
        exercise(**reader);
        REQUIRE(is_prefix(part, whole.records));
        REQUIRE(part.size() >= before);
        REQUIRE_FALSE((*reader)->damage().empty());
        before = part.size();
    }
    CHECK(before == whole.records.size());
}

TEST_CASE("damage: one flipped bit anywhere never shows a record that was not written") {
    const TempDir dir;
    const Whole whole = make_whole(dir);
    const std::string path = dir.file("flipped.trace");
    Prng prng(7);
    u64 refused = 0, ended = 0;
    for (std::size_t at = 0; at < whole.virtual_end; ++at) {
        // Between the header's fields and the log there are unused bytes; a few of them will do.
        if (at >= 128 && at < 4096 && at % 97 != 0) continue;
        std::string bytes = whole.bytes;
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << prng.below(8)));
        write_file(path, bytes);
        auto reader = Reader::open(path);
        if (!reader) {
            REQUIRE(at < 80);
            ++refused;
            continue;
        }
        const auto part = read_all(**reader);
        exercise(**reader);
        REQUIRE(is_prefix(part, whole.records));
        if (part.size() < whole.records.size()) ++ended;
    }
    CHECK(refused >= 72);
    // Padding behind a payload is not covered; all else is.
    CHECK(ended >= (whole.virtual_end - 4096) * 9 / 10);
}

TEST_CASE("damage: the file is cut while a reader has it open") {
    const TempDir dir;
    const std::string path = dir.file("a.trace");
    {
        auto writer = make_writer(path);
        for (u32 i = 0; i < 400; ++i) writer->append(RecordType::request, i, request_record(i));
    }
    auto reader = open_reader(path);
    std::filesystem::resize_file(path, 8192);
    const auto part = read_all(*reader);
    exercise(*reader);
    CHECK(part.size() == 4096 / 64);   // frame 32, payload 32
    CHECK_FALSE(reader->damage().empty());
    std::filesystem::resize_file(path, 0);
    exercise(*reader);
}

TEST_CASE("damage: foreign files are refused with the reason") {
    const TempDir dir;
    const auto message = [&](const std::string& bytes) {
        write_file(dir.file("f"), bytes);
        const auto reader = Reader::open(dir.file("f"));
        REQUIRE_FALSE(reader.has_value());
        CHECK(reader.error().message.find('\n') == std::string::npos);
        return reader.error().message;
    };
    CHECK(message("").find("too short") != std::string::npos);
    CHECK(message(std::string(5000, '\0')).find("begins differently") != std::string::npos);
    CHECK(message(std::string(5000, 'A')).find("begins differently") != std::string::npos);
    std::string newer = make_whole(dir).bytes;
    newer[8] = 9;
    CHECK(message(newer).find("format 9") != std::string::npos);
    CHECK(Reader::open(dir.file("absent")).error().kind == Error::Kind::io);
    CHECK(Reader::open(dir.path().string()).error().kind == Error::Kind::parse);
    CHECK(Reader::open("/dev/zero").error().kind == Error::Kind::parse);
    CHECK_FALSE(Writer::open(dir.file("f")).has_value());
    CHECK_FALSE(compact_trace_file(dir.file("f")).has_value());
    CHECK_FALSE(append_evidence(dir.file("f"), 1, "{}").has_value());
}

TEST_CASE("damage: bytes of a record that was never committed do not disturb the next writer") {
    const TempDir dir;
    const std::string path = dir.file("a.trace");
    u64 end = 0;
    {
        auto writer = make_writer(path);
        writer->append_text(RecordType::log, 1, "first");
        end = 4096 + writer->virtual_bytes_used();
    }
    // A long record was under way: everything but its commit word is there.
    std::string bytes = read_file(path);
    for (u64 i = end + 8; i < end + 1000; ++i) bytes[i] = '\x55';
    write_file(path, bytes);
    auto reader = open_reader(path);
    CHECK(read_all(*reader).size() == 1);
    auto writer = Writer::open(path);
    REQUIRE(writer.has_value());
    for (int i = 0; i < 5; ++i) {
        (*writer)->append_text(RecordType::log, 2, "next");
        CHECK(read_all(*reader).size() == 1);
    }
    CHECK(reader->damage().empty());
}
