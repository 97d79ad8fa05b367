#include <doctest/doctest.h>

#include <fstream>

#include "labs/trace/views.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/trace/support.hpp"

using namespace oomlab;
using namespace oomlab::trace;
using oomlab::test::TempDir;

namespace {
// A small trace with one record of each kind that has a tail, and its logs not full.
std::string seed_trace() {
    const TempDir dir;
    const std::string path = dir.file("seed.trace");
    {
        auto writer = trace::test::make_writer(path, {4 * kKiB, 4 * kKiB});
        writer->append_text(RecordType::run_info, 0, "{}");
        writer->append(RecordType::phase, 1, PhaseRecord{Phase::serving});
        writer->append(RecordType::request, 2, trace::test::request_record(1));
        struct {
            BlockMapRecord record;
            MapSegment segment;
            MapBlock block;
        } map{};
        map.record = {1, 1, 0, 0};
        map.segment.blocks = 1;
        writer->append(RecordType::block_map, 3, map);
        const std::array<u32, 8> kv = {1, 4, 4, 0, 1, 4, 0, 0};
        writer->append(RecordType::kv_map, 3, kv);
        writer->append(RecordType::sample, 4, SampleRecord{});
        writer->append(RecordType::failure, 5, FailureRecord{}, "CUDA out of memory");
        writer->ring(RingOp{});
    }
    REQUIRE(append_evidence(path, 6, "{}").has_value());
    REQUIRE(compact_trace_file(path).has_value());
    return trace::test::read_file(path).substr(0, 16 * kKiB);
}

// A file that a writer still accepts: not compacted, all of its ring there.
std::string open_trace() {
    const TempDir dir;
    const std::string path = dir.file("open.trace");
    {
        auto writer = trace::test::make_writer(path, {4 * kKiB, 4 * kKiB});
        writer->append_text(RecordType::log, 1, "hello");
        writer->append(RecordType::request, 2, trace::test::request_record(1));
    }
    return trace::test::read_file(path);
}

void run(const std::string& seed, u64 rounds, u64 number) {
    Prng prng(number);
    std::string bytes = seed;
    for (u64 i = 0; i < rounds; ++i) {
        // Mutations build on each other for a while, then start afresh.
        if (i % 20 == 0) bytes = seed;
        // The logs lie within the first pages: that is where the mutations belong.
        const std::size_t front = std::min<std::size_t>(bytes.size(), 6 * kKiB);
        bytes = oomlab::test::mutate(prng, bytes.substr(0, front)) + bytes.substr(front);
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
}
}  // namespace

TEST_CASE("fuzz trace: 3000 mutations of a finished trace") { run(seed_trace(), 3000, 11); }
TEST_CASE("fuzz trace: 100 mutations of a trace that is still written") { run(open_trace(), 100, 12); }
TEST_CASE("fuzz trace: short and empty inputs") {
    for (std::size_t size = 0; size < 5000; size += 97) {
        const std::string bytes(size, 'o');
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
}
