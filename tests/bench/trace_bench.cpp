// What recording costs: an operation in the ring, a record, a sample; and the file itself.
#include <benchmark/benchmark.h>

#include <unistd.h>

#include <string>

#include "labs/trace/reader.hpp"
#include "labs/trace/writer.hpp"

using namespace oomlab;
using namespace oomlab::trace;

namespace {
std::string path() { return "/tmp/oomlab-bench-" + std::to_string(::getpid()) + ".trace"; }

std::unique_ptr<Writer> make_writer() {
    OOMLAB_CHECK(create_trace_file(path()).has_value());
    auto writer = Writer::open(path());
    OOMLAB_CHECK(writer.has_value());
    return std::move(*writer);
}

void ring_op(benchmark::State& state) {
    const auto writer = make_writer();
    u64 i = 0;
    for (auto _ : state) {
        RingOp op{};
        op.time_us = static_cast<i64>(i);
        op.address = i * 512;
        op.bytes = i & 4095;
        op.request = static_cast<u32>(i);
        op.op = static_cast<std::uint16_t>(i);
        op.owner = Owner::kv;
        op.kind = (i & 1) != 0 ? OpKind::alloc : OpKind::free;
        writer->ring(op);
        ++i;
    }
    ::unlink(path().c_str());
}
BENCHMARK(ring_op);

template <class Record>
void append(benchmark::State& state, RecordType type) {
    auto writer = make_writer();
    const Record record{};
    for (auto _ : state) {
        if (writer->append(type, 1, record)) continue;
        state.PauseTiming();
        writer = make_writer();
        state.ResumeTiming();
    }
    ::unlink(path().c_str());
}
void append_request(benchmark::State& state) { append<RequestRecord>(state, RecordType::request); }
void append_sample(benchmark::State& state) { append<SampleRecord>(state, RecordType::sample); }
BENCHMARK(append_request);
BENCHMARK(append_sample);

void create_file(benchmark::State& state) {
    for (auto _ : state) OOMLAB_CHECK(create_trace_file(path()).has_value());
    ::unlink(path().c_str());
}
BENCHMARK(create_file)->Unit(benchmark::kMillisecond);

// A full log of 56 MiB, every checksum taken.
void read_full_log(benchmark::State& state) {
    {
        const auto writer = make_writer();
        while (writer->append(RecordType::request, 1, RequestRecord{})) {}
    }
    for (auto _ : state) {
        auto reader = Reader::open(path());
        OOMLAB_CHECK(reader.has_value());
        benchmark::DoNotOptimize((*reader)->poll([](const RecordView&) {}));
    }
    ::unlink(path().c_str());
}
BENCHMARK(read_full_log)->Unit(benchmark::kMillisecond);
}  // namespace

BENCHMARK_MAIN();
