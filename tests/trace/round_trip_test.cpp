#include <doctest/doctest.h>

#include <filesystem>

#include "tests/trace/support.hpp"

using namespace oomlab;
using namespace oomlab::trace;
using namespace oomlab::trace::test;
using oomlab::test::TempDir;

namespace {
// Every kind of append once, as a server would.
void write_little_run(Writer& w) {
    w.append_text(RecordType::run_info, 0, R"({"model":"tiny"})");
    w.append(RecordType::phase, 5, PhaseRecord{Phase::weights});
    SampleRecord sample{};
    sample.allocated = {10, 5, 20};
    w.append(RecordType::sample, 10, sample);
    for (u32 i = 0; i < 5; ++i) {
        RingOp op{};
        op.time_us = 10 + i;
        op.address = 0x7000 + i;
        op.bytes = 512;
        op.request = i;
        op.op = 0xffff;
        op.owner = Owner::kv;
        op.kind = OpKind::free;
        op.repeat = 7;
        w.ring(op);
    }
    FailureRecord failure{};
    failure.kind = FailureKind::device_oom;
    failure.requested_bytes = 1234;
    w.append(RecordType::failure, 20, failure, "CUDA error: out of memory");
    w.append(RecordType::finish, 21, FinishRecord{});
}
}  // namespace

TEST_CASE("trace: what was written is read, in order and to the byte") {
    const TempDir dir;
    auto writer = make_writer(dir.file("a.trace"));
    write_little_run(*writer);
    auto reader = open_reader(dir.file("a.trace"));
    CHECK_FALSE(reader->finished());
    const auto all = read_all(*reader);
    REQUIRE(all.size() == 5);
    CHECK(all[0].payload == R"({"model":"tiny"})");
    CHECK(all[1].type == RecordType::phase);
    CHECK(all[3].seq == 4);
    CHECK(all[3].time_us == 20);
    CHECK(all[3].payload.substr(sizeof(FailureRecord)) == "CUDA error: out of memory");
    CHECK(reader->finished());
    CHECK(reader->dropped() == 0);
    CHECK(reader->lost() == 0);
    CHECK(reader->damage().empty());
    CHECK(reader->bytes_read() == writer->virtual_bytes_used());
}

TEST_CASE("trace: ring operations come back oldest first with every field") {
    const TempDir dir;
    auto writer = make_writer(dir.file("a.trace"));
    write_little_run(*writer);
    const auto ops = open_reader(dir.file("a.trace"))->ring();
    REQUIRE(ops.size() == 5);
    CHECK(ops[4].seq == 5);
    CHECK(ops[4].time_us == 14);
    CHECK(ops[4].address == 0x7004);
    CHECK(ops[4].bytes == 512);
    CHECK(ops[4].request == 4);
    CHECK(ops[4].op == 0xffff);
    CHECK(ops[4].owner == Owner::kv);
    CHECK(ops[4].kind == OpKind::free);
    CHECK(ops[4].repeat == 7);
}

TEST_CASE("trace: the ring holds the last 65536 operations and no more") {
    const TempDir dir;
    auto writer = make_writer(dir.file("a.trace"));
    for (u64 i = 1; i <= kRingOps + 1000; ++i) {
        RingOp op{};
        op.address = i;
        writer->ring(op);
    }
    const auto ops = open_reader(dir.file("a.trace"))->ring();
    REQUIRE(ops.size() == kRingOps);
    CHECK(ops.front().address == 1001);
    CHECK(ops.back().address == kRingOps + 1000);
}

TEST_CASE("trace: a ring slot that was cut short is left out, its neighbours stay") {
    const TempDir dir;
    { auto writer = make_writer(dir.file("a.trace")); write_little_run(*writer); }
    std::string bytes = read_file(dir.file("a.trace"));
    const std::size_t ring = 4096 + kSmall.virtual_log_bytes + kSmall.wall_log_bytes;
    // Slot 2 was to be overwritten one round later: the lower half went in, the rest did not.
    const u32 next_round = 3 + kRingOps;
    bytes.replace(ring + 2 * sizeof(RingOp) + 44, 4, reinterpret_cast<const char*>(&next_round), 4);
    write_file(dir.file("a.trace"), bytes);
    const auto ops = open_reader(dir.file("a.trace"))->ring();
    REQUIRE(ops.size() == 4);
    CHECK(ops[1].seq == 2);
    CHECK(ops[2].seq == 4);
}

TEST_CASE("trace: a live reader gets only what is new") {
    const TempDir dir;
    auto writer = make_writer(dir.file("a.trace"));
    auto reader = open_reader(dir.file("a.trace"));
    CHECK(read_all(*reader).empty());
    writer->append(RecordType::phase, 1, PhaseRecord{});
    CHECK(read_all(*reader).size() == 1);
    CHECK(read_all(*reader).empty());
    writer->append(RecordType::phase, 2, PhaseRecord{});
    writer->append(RecordType::phase, 3, PhaseRecord{});
    CHECK(read_all(*reader).size() == 2);
}

TEST_CASE("trace: two runs with the same input are the same to the byte, wall log apart") {
    const TempDir dir;
    auto a = make_writer(dir.file("a.trace"));
    auto b = make_writer(dir.file("b.trace"));
    write_little_run(*a);
    write_little_run(*b);
    const std::byte pid{42};
    b->append_wall(RecordType::process, 99, std::span(&pid, 1));
    const auto used = kSmall.virtual_log_bytes + 4096;
    CHECK(read_file(dir.file("a.trace")).substr(0, used) ==
          read_file(dir.file("b.trace")).substr(0, used));
}

TEST_CASE("trace: the wall log stands apart, and evidence closes the file") {
    const TempDir dir;
    auto writer = make_writer(dir.file("a.trace"));
    const HostSampleRecord host{5, 1, 1, 0, 0};
    writer->append_wall(RecordType::host_sample, 5, std::as_bytes(std::span(&host, 1)));
    auto reader = open_reader(dir.file("a.trace"));
    CHECK_FALSE(reader->finished());
    REQUIRE(append_evidence(dir.file("a.trace"), 6, R"({"outcome":"killed"})").has_value());
    CHECK(reader->finished());
    std::vector<std::string> texts;
    reader->wall([&](const RecordView& r) {
        if (r.type == RecordType::evidence) texts.emplace_back(r.text());
    });
    REQUIRE(texts.size() == 1);
    CHECK(texts[0] == R"({"outcome":"killed"})");
    CHECK(read_all(*reader).empty());
}

TEST_CASE("trace: compacting changes the size and nothing else, and there is room for evidence") {
    const TempDir dir;
    const std::string path = dir.file("a.trace");
    {
        auto writer = make_writer(path, {});
        write_little_run(*writer);
    }
    auto old_reader = open_reader(path);
    const auto before = read_all(*open_reader(path));
    CHECK(std::filesystem::file_size(path) < 64'000'000);
    REQUIRE(compact_trace_file(path).has_value());
    CHECK(std::filesystem::file_size(path) < 256 * kKiB);
    CHECK(read_all(*old_reader) == before);
    REQUIRE(append_evidence(path, 1, std::string(60000, 'x')).has_value());
    auto reader = open_reader(path);
    CHECK(read_all(*reader) == before);
    CHECK(reader->ring().size() == 5);
    CHECK(reader->damage().empty());
    CHECK_FALSE(Writer::open(path).has_value());
    REQUIRE(compact_trace_file(path).has_value());
    CHECK(read_all(*open_reader(path)) == before);
}

TEST_CASE("trace: a server that is started again goes on behind what stands there") {
    const TempDir dir;
    const std::string path = dir.file("a.trace");
    {
        auto writer = make_writer(path);
        write_little_run(*writer);
    }
    {
        auto writer = Writer::open(path);
        REQUIRE(writer.has_value());
        write_little_run(**writer);
    }
    auto reader = open_reader(path);
    const auto all = read_all(*reader);
    CHECK(all.size() == 10);
    CHECK(all.back().seq == 10);
    CHECK(reader->ring().back().seq == 10);
}

TEST_CASE("trace: a full log drops samples and maps, counts them, and keeps all the rest") {
    const TempDir dir;
    auto writer = make_writer(dir.file("a.trace"));
    const std::string map(1000, 'm');
    while (writer->append_text(RecordType::block_map, 1, map)) {}
    while (writer->append(RecordType::sample, 1, SampleRecord{})) {}
    CHECK_FALSE(writer->append_text(RecordType::log, 2, std::string(2000, 'l')));
    const u64 dropped = writer->dropped();
    CHECK(dropped == 3);
    // A quarter of the log is kept back, which is room for 100 of these.
    for (u32 i = 0; i < 100; ++i) CHECK(writer->append(RecordType::request, 3, request_record(i)));
    FailureRecord failure{};
    CHECK(writer->append(RecordType::failure, 4, failure, "no"));
    CHECK(writer->append_text(RecordType::block_map, 4, map));        // the failure's own map
    CHECK_FALSE(writer->append_text(RecordType::block_map, 5, map));  // an ordinary one
    while (writer->append(RecordType::segment, 6, SegmentRecord{})) {}
    CHECK(writer->append(RecordType::failure, 7, failure, "no"));     // the last reserve
    CHECK(writer->append(RecordType::phase, 8, PhaseRecord{Phase::shutdown}));
    CHECK(writer->append(RecordType::finish, 9, FinishRecord{}));
    auto reader = open_reader(dir.file("a.trace"));
    const auto all = read_all(*reader);
    CHECK(all.back().type == RecordType::finish);
    CHECK(reader->dropped() == dropped + 1);
    CHECK(reader->lost() == 1);   // the segment that ended the loop
    CHECK(reader->damage().empty());
}

TEST_CASE("trace: a record larger than any record is dropped, not cut") {
    const TempDir dir;
    auto writer = make_writer(dir.file("a.trace"), {20 * kMiB, 16 * kKiB});
    CHECK_FALSE(writer->append_text(RecordType::log, 1, std::string(9 * kMiB, 'x')));
    CHECK(writer->append_text(RecordType::log, 1, std::string(8 * kMiB, 'x')));
    CHECK(writer->dropped() == 1);
}

TEST_CASE("trace: another's file is not overwritten, an old trace is") {
    const TempDir dir;
    write_file(dir.file("letter.txt"), "dear all");
    const auto refused = create_trace_file(dir.file("letter.txt"), kSmall);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == Error::Kind::io);
    CHECK(read_file(dir.file("letter.txt")) == "dear all");
    { auto writer = make_writer(dir.file("a.trace")); write_little_run(*writer); }
    auto old_reader = open_reader(dir.file("a.trace"));
    REQUIRE(create_trace_file(dir.file("a.trace"), kSmall).has_value());
    CHECK(read_all(*open_reader(dir.file("a.trace"))).empty());
    CHECK(read_all(*old_reader).size() == 5);
    CHECK_FALSE(create_trace_file(dir.path().string(), kSmall).has_value());
    CHECK_FALSE(create_trace_file(dir.file("no/such/folder"), kSmall).has_value());
}

TEST_CASE("trace: no room for the file is an error, and leaves no file") {
    const TempDir dir("/dev/shm");
    const auto full = std::filesystem::space(dir.path());
    if (full.capacity == 0 || full.capacity > 3 * kGiB) {
        // A tmpfs with a bound of its own would be needed; the size cap shows the other half.
        CHECK_FALSE(create_trace_file(dir.file("a.trace"), {8 * kGiB, kMiB}).has_value());
    } else {
        CHECK_FALSE(create_trace_file(dir.file("a.trace"), {full.available + kMiB, kMiB}).has_value());
    }
    CHECK_FALSE(std::filesystem::exists(dir.file("a.trace")));
}
