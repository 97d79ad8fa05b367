#include "tests/support/synthetic_trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/trace/writer.hpp"

namespace oomlab::testing {
namespace {

using namespace trace;

constexpr u64 kTotal = 23'676'387'328;   // an L4, as its driver reports it: 22.05 GiB
constexpr u64 kContext = 452 * kMiB;
constexpr u64 kWeights = 16'060'522'496;
constexpr u64 kProfiledPeak = 676 * kMiB;
constexpr u64 kGraphs = 180 * kMiB;
constexpr u64 kKvBlock = 2 * kMiB;
constexpr u64 kKvBlocks = 2296;
constexpr u64 kKvPool = kKvBlock * kKvBlocks;
constexpr u64 kWorkspace = 72 * kMiB;

std::size_t at(Owner o) { return static_cast<std::size_t>(o); }

class Run {
  public:
    Run(Writer& writer, const SyntheticRun& options)
        : writer_(writer), options_(options), prng_(options.seed) {}

    void begin(i64 from_us) {
        now_us_ = from_us;
        writer_.append_text(RecordType::run_info, now_us_,
                            R"({"device_name":"sim:l4","simulated":true,"model":"llama-3.1-8b"})");
        phase(Phase::start);
        phase(Phase::host_load);
        now_us_ += 1'200'000;
        phase(Phase::context);
        owner_[at(Owner::context)] = {kContext, 0, kContext};
        sample();
        phase(Phase::weights);
        for (u64 part = 1; part <= 24; ++part) {
            now_us_ += 120'000;
            const u64 held = kWeights / 24 * part;
            owner_[at(Owner::weights)] = {held, held - kWeights / 24, held};
            segment(kWeights / 24);
            sample();
        }
        owner_[at(Owner::weights)] = {kWeights, kWeights, kWeights};
        phase(Phase::profile);
        now_us_ += 400'000;
        owner_[at(Owner::workspace)] = {kWorkspace, 0, kWorkspace};
        owner_[at(Owner::activations)] = {0, 0, kProfiledPeak};
        cached_ = kProfiledPeak;
        segment(kProfiledPeak);
        sample();
        phase(Phase::kv_pool);
        budget();
        owner_[at(Owner::kv)] = {kKvPool, 0, kKvPool};
        segment(kKvPool);
        now_us_ += 200'000;
        owner_[at(Owner::activations)] = {0, 0, 0};
        sample();
        phase(Phase::graph_capture);
        now_us_ += 800'000;
        owner_[at(Owner::graphs)] = {kGraphs, 0, kGraphs};
        sample();
        phase(Phase::warmup);
        now_us_ += 200'000;
        phase(Phase::serving);
        text("INFO server: listening on 127.0.0.1:8000, chunked prefill off");
        serving_from_us_ = now_us_;
    }

    void serve() {
        const i64 length_us = static_cast<i64>(options_.seconds * 1e6);
        const i64 sample_us = std::max<i64>(1000, static_cast<i64>(options_.sample_every_s * 1e6));
        const double between_us = static_cast<double>(length_us) / static_cast<double>(options_.requests + 1);
        i64 next_sample = now_us_ + sample_us, next_map = now_us_;
        const i64 map_every = std::max<i64>(length_us / 24, 1);
        double next_request = static_cast<double>(now_us_) + between_us;
        u32 request = 0;
        while (now_us_ < serving_from_us_ + length_us) {
            const i64 step = std::min(next_sample, static_cast<i64>(next_request));
            now_us_ = std::max(now_us_, step);
            if (now_us_ >= next_sample) {
                swing();
                sample();
                next_sample += sample_us;
                if (now_us_ >= next_map) {
                    maps();
                    next_map += map_every;
                }
            } else if (request < options_.requests) {
                one_request(request++);
                next_request += between_us;
            } else {
                next_request = static_cast<double>(serving_from_us_ + length_us) + 1;
            }
        }
        if (options_.ends_in_oom) fail_with_oom(request);
    }

    void finish() {
        FinishRecord f{};
        f.exit_status = options_.ends_in_oom ? 1 : 0;
        f.makespan_s = static_cast<double>(now_us_) / 1e6;
        f.completed = completed_;
        f.received = received_;
        writer_.append(RecordType::finish, now_us_, f);
    }
    i64 now_us() const { return now_us_; }

  private:
    void phase(Phase p) { writer_.append(RecordType::phase, now_us_, PhaseRecord{p, {}}); }
    void text(std::string_view line) { writer_.append_text(RecordType::log, now_us_, line); }

    void budget() {
        BudgetRecord b{};
        b.total_bytes = kTotal;
        b.requested_bytes = kTotal / 10 * 9;
        b.weights_bytes = kWeights;
        b.activation_peak_bytes = kProfiledPeak;
        b.non_torch_bytes = kContext;
        b.graph_estimate_bytes = kGraphs;
        b.available_kv_bytes = static_cast<i64>(kKvPool);
        b.kv_block_bytes = kKvBlock;
        b.num_gpu_blocks = kKvBlocks;
        b.block_size = 16;
        b.max_num_seqs = 64;
        b.max_num_batched_tokens = 2048;
        b.gpu_memory_utilization = 0.9;
        writer_.append(RecordType::budget, now_us_, b);
    }

    void segment(u64 bytes) {
        reserved_ += bytes;
        SegmentRecord s{};
        s.event = SegmentEvent::alloc;
        s.address = address_;
        s.bytes = bytes;
        s.reserved_after_bytes = reserved_;
        address_ += round_up(bytes, 2 * kMiB);
        writer_.append(RecordType::segment, now_us_, s);
    }

    // The ups and downs of a serving step between two samples.
    void swing() {
        const double t = static_cast<double>(now_us_ - serving_from_us_) / 1e6;
        const double load = 0.55 + 0.4 * std::sin(t / options_.seconds * 9.0) + 0.05 * prng_.normal();
        running_ = static_cast<u32>(std::clamp(load, 0.05, 1.0) * 64);
        waiting_ = load > 0.85 ? static_cast<u32>((load - 0.85) * 120) : 0;
        kv_used_ = std::min<u64>(kKvBlocks, static_cast<u64>(std::clamp(load * 1.15, 0.0, 1.0) * kKvBlocks));
        const u64 high = std::min(kProfiledPeak, static_cast<u64>(prng_.uniform() * 0.9 * kProfiledPeak) + 40 * kMiB);
        if (options_.leaks) retained_ = static_cast<u64>(t / 60.0 * 40.0 * static_cast<double>(kMiB));
        owner_[at(Owner::activations)] = {retained_, retained_, retained_ + high};
        cached_ = retained_ > kProfiledPeak ? 24 * kMiB : kProfiledPeak - retained_;
    }

    void sample() {
        SampleRecord s{};
        Envelope allocated{}, used{};
        for (std::size_t o = 0; o < kOwners; ++o) {
            if (o == at(Owner::cached) || o == at(Owner::unattributed)) continue;
            s.owner[o] = owner_[o];
            used.now += owner_[o].now;
            if (o == at(Owner::context) || o == at(Owner::graphs)) continue;
            allocated.now += owner_[o].now;
            allocated.low += owner_[o].low;
            allocated.high += owner_[o].high;
        }
        s.owner[at(Owner::cached)] = {cached_, cached_ / 8, cached_};
        s.owner[at(Owner::unattributed)] = {18 * kMiB, 18 * kMiB, 18 * kMiB};
        used.now += cached_ + 18 * kMiB;
        used.low = used.high = used.now;
        s.allocated = allocated;
        s.reserved = {allocated.now + cached_, allocated.now, allocated.now + cached_};
        s.device_used = used;
        s.total_bytes = kTotal;
        s.inactive_split_bytes = cached_ / 5;
        s.num_ooms = ooms_;
        s.kv_blocks_used = kv_used_;
        s.kv_blocks_total = kKvBlocks;
        s.kv_blocks_cached = kKvBlocks / 40;
        s.running = running_;
        s.waiting = waiting_;
        s.received = received_;
        s.completed = completed_;
        s.preempted = preempted_;
        writer_.append(RecordType::sample, now_us_, s);
    }

    void one_request(u32 number) {
        RequestRecord r{};
        r.request = number;
        r.prompt_tokens = static_cast<u32>(std::clamp(prng_.lognormal(900, 1.2), 16.0, 12000.0));
        r.output_tokens = static_cast<u32>(std::clamp(prng_.lognormal(180, 0.8), 1.0, 2000.0));
        r.kv_blocks = (r.prompt_tokens + r.output_tokens) / 16 + 1;
        const auto say = [&](RequestEvent event) {
            r.event = event;
            writer_.append(RecordType::request, now_us_, r);
        };
        ++received_;
        say(RequestEvent::arrival);
        if (number % 61 == 60) {
            r.http_status = 400;
            say(RequestEvent::rejection);
            return;
        }
        say(RequestEvent::admission);
        if (waiting_ > 0 && number % 5 == 0) {
            ++preempted_;
            r.recomputed_tokens = r.prompt_tokens;
            say(RequestEvent::preemption);
        }
        say(RequestEvent::first_token);
        ++completed_;
        say(RequestEvent::completion);
    }

    void maps() {
        std::vector<MapSegment> segments;
        std::vector<MapBlock> blocks;
        u64 address = u64{1} << 40;
        const auto open = [&](u64 bytes) {
            MapSegment s{};
            s.address = address;
            s.bytes = bytes;
            s.first_block = static_cast<u32>(blocks.size());
            segments.push_back(s);
            address += bytes;
        };
        const auto block = [&](u64 bytes, Owner owner, BlockState state, u32 request) {
            MapSegment& s = segments.back();
            const u64 begin = s.blocks == 0 ? s.address : blocks.back().address + blocks.back().bytes;
            blocks.push_back({begin, bytes, request, owner, state, 0});
            ++s.blocks;
        };
        for (u64 left = kWeights; left > 0;) {
            const u64 part = std::min<u64>(left, 436 * kMiB);
            open(round_up(part, 2 * kMiB));
            block(part, Owner::weights, BlockState::active, kNoRequest);
            if (segments.back().bytes > part)
                block(segments.back().bytes - part, Owner::cached, BlockState::free, kNoRequest);
            left -= part;
        }
        open(kKvPool);
        block(kKvPool, Owner::kv, BlockState::active, kNoRequest);
        open(kWorkspace);
        block(kWorkspace, Owner::workspace, BlockState::active, kNoRequest);
        Prng prng = prng_.fork("map");
        const u64 wanted = options_.map_blocks > 0 ? options_.map_blocks : 260;
        const u64 pieces_a_segment = options_.map_blocks > 4000 ? 1000 : 12;
        for (u64 made = 0; made < wanted;) {
            const u64 bytes = 20 * kMiB;
            open(bytes);
            u64 left = bytes;
            for (u64 p = 0; p + 1 < pieces_a_segment && left > 1024; ++p, ++made) {
                const u64 part = std::min(left, round_up(prng.between(512, 2 * bytes / pieces_a_segment), 512));
                const u64 dice = prng.below(10);
                block(part, Owner::activations,
                      dice < 5 ? BlockState::active : dice < 9 ? BlockState::free : BlockState::pending_free,
                      dice < 5 ? static_cast<u32>(prng.below(40)) : kNoRequest);
                left -= part;
            }
            if (left > 0) block(left, Owner::cached, BlockState::free, kNoRequest);
            ++made;
        }
        BlockMapRecord head{};
        head.segments = static_cast<u32>(segments.size());
        head.blocks = static_cast<u32>(blocks.size());
        std::vector<std::byte> tail(segments.size() * sizeof(MapSegment) + blocks.size() * sizeof(MapBlock));
        std::memcpy(tail.data(), segments.data(), segments.size() * sizeof(MapSegment));
        std::memcpy(tail.data() + segments.size() * sizeof(MapSegment), blocks.data(),
                    blocks.size() * sizeof(MapBlock));
        writer_.append(RecordType::block_map, now_us_, std::as_bytes(std::span(&head, 1)), tail);

        std::vector<KvOwner> owners;
        u32 used = 0;
        for (u32 r = received_ > 40 ? static_cast<u32>(received_) - 40 : 0;
             r < received_ && used < kv_used_; ++r) {
            const u32 n = std::min(static_cast<u32>(kv_used_) - used, static_cast<u32>(prng.between(8, 90)));
            owners.push_back({r, n, used, 0});
            used += n;
        }
        const KvMapRecord kv{static_cast<u32>(owners.size()), static_cast<u32>(kKvBlocks), used,
                             static_cast<u32>(kKvBlocks / 40)};
        writer_.append(RecordType::kv_map, now_us_, std::as_bytes(std::span(&kv, 1)),
                       std::as_bytes(std::span(owners)));
    }

    void fail_with_oom(u32 request) {
        RequestRecord r{};
        r.request = request;
        r.prompt_tokens = 30000;
        r.output_tokens = 400;
        r.kv_blocks = 1876;
        for (const RequestEvent event : {RequestEvent::arrival, RequestEvent::admission}) {
            r.event = event;
            writer_.append(RecordType::request, now_us_, r);
        }
        now_us_ += 80'000;
        const u64 asked = 1'948 * kMiB;
        RetryRecord retry{};
        retry.asked_bytes = asked;
        retry.released_bytes = 360 * kMiB;
        retry.num_alloc_retries = 1;
        retry.request = request;
        retry.owner = Owner::activations;
        writer_.append(RecordType::retry, now_us_, retry);
        FailureRecord f{};
        f.kind = FailureKind::allocator_oom;
        f.phase = Phase::serving;
        f.code = 2;
        f.call = 1;
        f.owner = Owner::activations;
        f.request = request;
        f.step_prefill_tokens = 30000;
        f.step_decode_tokens = 40;
        f.step_requests = 41;
        f.longest_prompt = 30000;
        f.requested_bytes = f.rounded_bytes = f.segment_bytes = asked;
        f.device_total_bytes = kTotal;
        f.allocated_bytes = kWeights + kKvPool + kWorkspace + 980 * kMiB;
        f.reserved_bytes = f.allocated_bytes + 212 * kMiB;
        f.context_bytes = kContext;
        f.graph_bytes = kGraphs;
        f.outside_bytes = kContext + kGraphs + 18 * kMiB;
        f.device_free_bytes = kTotal - f.reserved_bytes - f.outside_bytes;
        f.largest_free_block_bytes = 16 * kMiB;
        f.inactive_split_bytes = 212 * kMiB;
        f.step_activation_bytes = 980 * kMiB + asked;
        f.profiled_activation_bytes = kProfiledPeak;
        f.kv_blocks_used = kv_used_;
        f.kv_blocks_total = kKvBlocks;
        f.preemptions = preempted_;
        f.completed = completed_;
        f.owner_bytes[at(Owner::weights)] = kWeights;
        f.owner_bytes[at(Owner::kv)] = kKvPool;
        f.owner_bytes[at(Owner::activations)] = 980 * kMiB;
        f.owner_bytes[at(Owner::workspace)] = kWorkspace;
        f.owner_bytes[at(Owner::context)] = kContext;
        f.owner_bytes[at(Owner::graphs)] = kGraphs;
        f.owner_bytes[at(Owner::unattributed)] = 18 * kMiB;
        owner_[at(Owner::activations)] = {980 * kMiB, 0, 980 * kMiB};
        cached_ = 212 * kMiB;
        ooms_ = 1;
        sample();
        writer_.append(RecordType::failure, now_us_, f,
                       "CUDA out of memory. Tried to allocate 1.90 GiB. GPU 0 has a total capacity of "
                       "22.05 GiB of which 750.93 MiB is free.");
        maps();
        text("ERROR engine: the step failed, the process ends");
    }

    Writer& writer_;
    SyntheticRun options_;
    Prng prng_;
    std::array<Envelope, kOwners> owner_{};
    i64 now_us_ = 0, serving_from_us_ = 0;
    u64 cached_ = 0, retained_ = 0, reserved_ = 0, kv_used_ = 0, address_ = u64{1} << 40;
    u64 received_ = 0, completed_ = 0, preempted_ = 0, ooms_ = 0;
    u32 running_ = 0, waiting_ = 0;
};

void must(const Result<void>& result) {
    if (!result) {
        std::fprintf(stderr, "synthetic trace: %s\n", result.error().message.c_str());
        std::abort();
    }
}

}  // namespace

void write_synthetic_trace(const std::string& path, const SyntheticRun& options) {
    FileSizes sizes;
    sizes.virtual_log_bytes = options.virtual_log_bytes;
    must(create_trace_file(path, sizes));
    {
        auto writer = Writer::open(path);
        OOMLAB_CHECK(writer.has_value());
        Run run(**writer, options);
        run.begin(0);
        run.serve();
        if (options.recovers) {
            SyntheticRun calm = options;
            calm.ends_in_oom = false;
            Run again(**writer, calm);
            again.begin(run.now_us() + 4'000'000);
            again.serve();
        } else if (!options.killed_by_host) {
            run.finish();
        }
    }
    must(compact_trace_file(path));
    if (options.killed_by_host)
        must(append_evidence(path, 0, R"({"outcome":"host_oom","signal":9,"oom_kill":1})"));
}

}  // namespace oomlab::testing
