// Each type and cause from records made by hand: the figures are chosen, so the verdict is known.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "kernels/base/prng.hpp"
#include "labs/diagnosis/run_summary.hpp"
#include "tests/diagnosis/facts_builder.hpp"

using namespace oomlab;
using namespace oomlab::diagnosis;
using namespace oomlab::literals;
using oomlab::testing::RunBuilder;
using trace::FailureKind;
using trace::Phase;

TEST_SUITE("six types") {

TEST_CASE("type 1: weights that exceed the card") {
    RunBuilder run;
    run.phase(Phase::start).phase(Phase::host_load).phase(Phase::context).phase(Phase::weights);
    run.owner[static_cast<std::size_t>(Owner::weights)] = 23_GiB;
    run.fail(run.oom(112_MiB, 40_MiB, Owner::weights));
    const Diagnosis d = run.diagnose();
    CHECK(d.type == 1);
    CHECK(d.cause == "weights_exceed_memory");
    CHECK(d.short_by_bytes == 72_MiB);
    REQUIRE(!d.remedies.empty());
    CHECK(d.remedies.front().bytes == 11'776_MiB);   // half of 23 GiB
    CHECK(d.remedies.front().enough);
}

TEST_CASE("type 1: somebody else holds the card") {
    RunBuilder run;
    run.phase(Phase::start).phase(Phase::host_load).phase(Phase::context).phase(Phase::weights);
    auto f = run.oom(112_MiB, 40_MiB, Owner::weights);
    f.other_processes_bytes = 6_GiB;
    CHECK(run.fail(f).diagnose().cause == "other_memory_on_device");
}

TEST_CASE("type 1: a cap of its own, not the card") {
    RunBuilder run;
    run.phase(Phase::start).phase(Phase::host_load).phase(Phase::context).phase(Phase::weights);
    auto f = run.oom(112_MiB, 12_GiB, Owner::weights);
    f.capped = 1;
    f.limit_bytes = 10_GiB;
    f.reserved_bytes = 10_GiB;
    const Diagnosis d = run.fail(f).diagnose();
    CHECK(d.type == 1);
    CHECK(d.cause == "self_imposed_cap");
}

TEST_CASE("type 1: phases have causes of their own") {
    const auto cause_in = [](Phase phase) {
        RunBuilder run;
        run.phase(Phase::start).phase(Phase::host_load).phase(Phase::context).phase(Phase::weights).phase(phase);
        return run.fail(run.oom(2_GiB, 1_GiB)).diagnose().cause;
    };
    CHECK(cause_in(Phase::profile) == "profile_batch_too_large");
    CHECK(cause_in(Phase::graph_capture) == "cuda_graphs_unbudgeted");
    CHECK(cause_in(Phase::context) == "memory_fraction_above_free");
}

TEST_CASE("type 1: refused for want of KV, none at all or too little for one request") {
    for (const u64 blocks : {u64{0}, u64{100}}) {
        RunBuilder run;
        run.phase(Phase::start).phase(Phase::host_load).phase(Phase::context).phase(Phase::weights).phase(Phase::kv_pool);
        run.budget.kv_block_bytes = 2_MiB;
        run.budget.block_size = 16;
        run.budget.max_model_len = 8192;
        run.budget.num_gpu_blocks = blocks;
        run.budget.available_kv_bytes = blocks == 0 ? -static_cast<i64>(1_GiB) : static_cast<i64>(blocks * 2_MiB);
        run.put(trace::RecordType::budget, run.budget);
        auto f = run.oom(0, 5_GiB);
        f.kind = FailureKind::refused;
        const Diagnosis d = run.fail(f, "ValueError: too small").diagnose();
        CHECK(d.type == 1);
        CHECK(d.cause == (blocks == 0 ? "weights_leave_no_kv" : "kv_pool_smaller_than_max_model_len"));
        // 8,192 tokens are 512 blocks; 99 of 100 can be used.
        CHECK(d.short_by_bytes == (blocks == 0 ? 1_GiB + 4_MiB : (512 - 99) * 2_MiB));
    }
}

TEST_CASE("type 2: the step holds more than the profile had") {
    RunBuilder run;
    run.up_to_serving(512_MiB).serve(30);
    auto f = run.oom(1200_MiB, 900_MiB);
    f.step_activation_bytes = 1700_MiB;
    f.step_prefill_tokens = f.longest_prompt = 23000;
    const Diagnosis d = run.fail(f).diagnose();
    CHECK(d.type == 2);
    CHECK(d.cause == "prefill_activation_spike");
    CHECK(d.short_by_bytes == 300_MiB);
    CHECK(d.ruled_out.size() == 4);   // 5, 6, 1, 4
}

TEST_CASE("type 2: what a leak holds does not count as the step's") {
    // 400 MiB stay between steps under the same label; the step itself holds 500 of 512 profiled.
    RunBuilder run;
    run.up_to_serving(512_MiB);
    run.owner[static_cast<std::size_t>(Owner::activations)] = 400_MiB;
    run.serve(5);
    auto f = run.oom(300_MiB, 200_MiB);
    f.step_activation_bytes = 900_MiB;
    CHECK(run.fail(f).diagnose().type == 3);
}

TEST_CASE("type 3: KV taken on demand, nobody preempted") {
    RunBuilder run;
    run.up_to_serving();
    run.kv_total = 0;
    auto f = run.oom(20_MiB, 2_MiB, Owner::kv);
    f.owner_bytes[static_cast<std::size_t>(Owner::kv)] = 6_GiB;
    Diagnosis d = run.fail(f).diagnose();
    CHECK(d.type == 3);
    CHECK(d.cause == "kv_exhausted_no_preemption");

    RunBuilder overcommitted;
    overcommitted.up_to_serving();
    overcommitted.kv_total = 0;
    f.preemptions = 12;
    CHECK(overcommitted.fail(f).diagnose().cause == "kv_overcommitted_admission");
}

TEST_CASE("type 3: enough is free, not in one piece") {
    RunBuilder run;
    run.up_to_serving(512_MiB).serve(3);
    auto f = run.oom(200_MiB, 100_MiB);
    f.step_activation_bytes = 300_MiB;
    f.largest_free_block_bytes = 60_MiB;   // of 600 MiB reserved and free
    const Diagnosis d = run.fail(f).diagnose();
    CHECK(d.type == 3);
    CHECK(d.cause == "fragmentation");
}

TEST_CASE("type 3: refused while serving, a request larger than the pool") {
    RunBuilder run;
    run.up_to_serving(512_MiB, 100);
    run.request(0, trace::RequestEvent::arrival, 5000);
    auto f = run.oom(0, 3_GiB);
    f.kind = FailureKind::refused;
    f.request = 0;
    const Diagnosis d = run.fail(f, "RuntimeError: needs more KV blocks").diagnose();
    CHECK(d.type == 3);
    CHECK(d.cause == "request_larger_than_pool");
}

TEST_CASE("type 4: allocated grows with every request") {
    RunBuilder run;
    run.up_to_serving();
    run.serve(200, [&](u64) {
        run.allocated += 2_MiB;
        run.reserved += 2_MiB;
        run.owner[static_cast<std::size_t>(Owner::activations)] += 2_MiB;
    });
    const Diagnosis d = run.fail(run.oom(200_MiB, 150_MiB)).diagnose();
    CHECK(d.type == 4);
    CHECK(d.cause == "leak_retained_requests");
    CHECK(d.growth.what == Growing::allocated);
    CHECK(d.growth.owner == Owner::activations);
    CHECK(d.growth.rise.bytes_per_request == doctest::Approx(2.0 * kMiB).epsilon(0.05));
}

TEST_CASE("type 4: growth that is smaller than what was short explains nothing") {
    RunBuilder run;
    run.up_to_serving(512_MiB);
    run.serve(200, [&](u64) { run.allocated += 256_KiB; });   // 50 MiB in all
    auto f = run.oom(4_GiB, 1_GiB);
    f.step_activation_bytes = 4_GiB;
    CHECK(run.fail(f).diagnose().type == 2);
}

TEST_CASE("type 4: blocks of ended requests prove a leak, and how it is held") {
    // Three cancelled of eight ended; two of the cancelled still hold 100 MiB between them.
    RunBuilder run;
    run.up_to_serving().serve(5);
    std::vector<trace::MapBlock> map;
    for (u32 r = 5; r < 8; ++r) {
        run.request(r, trace::RequestEvent::arrival);
        run.request(r, trace::RequestEvent::cancelled);
        if (r < 7) map.push_back({r * 1_GiB, 50_MiB, r, Owner::activations, trace::BlockState::active, 0});
    }
    map.push_back({0, 70_MiB, 99, Owner::activations, trace::BlockState::active, 0});   // still alive
    run.request(99, trace::RequestEvent::arrival);
    run.blocks(map);
    const Diagnosis d = run.fail(run.oom(60_MiB, 10_MiB)).diagnose();
    CHECK(d.type == 4);
    CHECK(d.growth.retained_bytes == 100_MiB);
    CHECK(d.growth.retained_requests == 2);
    CHECK(d.growth.pattern == "cancelled requests only");
}

TEST_CASE("type 4: what grows and belongs to no request is a cache") {
    RunBuilder run;
    run.up_to_serving();
    run.serve(200, [&](u64) {
        run.allocated += 2_MiB;
        run.owner[static_cast<std::size_t>(Owner::workspace)] += 2_MiB;
    });
    CHECK(run.fail(run.oom(200_MiB, 150_MiB)).diagnose().cause == "cache_without_eviction");
}

TEST_CASE("type 4: the gap grows, allocated does not") {
    RunBuilder run;
    run.up_to_serving();
    run.serve(200, [&](u64) { run.reserved += 2_MiB; });
    const Diagnosis d = run.fail(run.oom(200_MiB, 150_MiB)).diagnose();
    CHECK(d.type == 4);
    CHECK(d.cause == "fragmentation_growth");
}

TEST_CASE("type 4: a gap that a larger step explains is no fragmentation") {
    // The cache keeps what the largest step needed: 300 MiB, then 900 MiB from the middle on.
    RunBuilder run;
    run.up_to_serving();
    run.serve(200, [&](u64 i) {
        if (i != 100) return;
        run.step_peak = 900_MiB;
        run.reserved += 600_MiB;
    });
    auto f = run.oom(200_MiB, 150_MiB);
    f.step_activation_bytes = 300_MiB;
    CHECK(run.fail(f).diagnose().type == 3);
}

TEST_CASE("type 4: outside the allocator, by growth or by one step") {
    for (const bool step : {false, true}) {
        RunBuilder run;
        run.up_to_serving();
        run.serve(200, [&](u64 i) {
            if (!step) run.outside += 4_MiB;
            if (step && i == 120) run.others += 800_MiB;
        });
        const Diagnosis d = run.fail(run.oom(200_MiB, 150_MiB)).diagnose();
        CHECK(d.type == 4);
        CHECK(d.cause == "growth_outside_allocator");
    }
}

TEST_CASE("type 5: the kernel's kill comes before everything else") {
    RunBuilder run;
    run.phase(Phase::start).phase(Phase::host_load);
    run.evidence(R"j({"outcome":"host_oom","exit_status":137,"signal":9,"killed_by":"kernel (OOM killer)",)j"
                 R"j("host_limit":{"limit_bytes":134217728,"peak_bytes":134217728},"sentences":["oom_kill 0 -> 1"]})j");
    const Diagnosis d = run.diagnose();
    CHECK(d.type == 5);
    CHECK(d.cause == "host_checkpoint_copies");
    CHECK(exit_status_of(run.facts) == 137);
}

TEST_CASE("type 5: the stand-in earns no type, and a SIGKILL from somewhere proves nothing") {
    RunBuilder run;
    run.phase(Phase::start).phase(Phase::host_load);
    run.evidence(R"j({"outcome":"killed","exit_status":137,"signal":9,"killed_by":"supervisor (stand-in at the limit)"})j");
    CHECK(run.diagnose().type == 0);
    CHECK(run.diagnose().stand_in_for == 5);
    run.evidence(R"j({"outcome":"killed","exit_status":137,"signal":9,"killed_by":"unknown"})j");
    CHECK(run.diagnose().type == 0);
    CHECK(run.diagnose().stand_in_for == 0);
}

TEST_CASE("type 6: sticky errors, launches, and a message that says memory") {
    struct Row {
        DeviceErrc code;
        std::uint8_t sticky;
        const char* message;
        const char* cause;
    };
    for (const Row& row : {Row{DeviceErrc::illegal_address, 1, "CUDA error: an illegal memory access", "illegal_access"},
                           Row{DeviceErrc::device_assert, 1, "device-side assert", "illegal_access"},
                           Row{DeviceErrc::invalid_configuration, 0, "invalid configuration argument", "invalid_launch"},
                           Row{DeviceErrc::ecc_uncorrectable, 1, "uncorrectable ECC error", "hardware_fault"},
                           Row{DeviceErrc::invalid_configuration, 0, "ServiceError: Out Of Memory", "fault_reported_as_memory"}}) {
        RunBuilder run;
        run.up_to_serving().serve(3);
        auto f = run.oom(0, 3_GiB);
        f.kind = FailureKind::cuda_error;
        f.code = static_cast<i32>(row.code);
        f.sticky = row.sticky;
        const Diagnosis d = run.fail(f, row.message).diagnose();
        CHECK(d.type == 6);
        CHECK(d.cause == row.cause);
    }
}

TEST_CASE("type 6: a library that cannot allocate, with memory free or without") {
    for (const bool plenty : {true, false}) {
        RunBuilder run;
        run.up_to_serving().serve(3);
        auto f = run.oom(0, plenty ? 3_GiB : 1_MiB);
        f.kind = FailureKind::device_oom;
        f.call = static_cast<i32>(DeviceCall::create_blas);
        const Diagnosis d = run.fail(f, "CUBLAS_STATUS_ALLOC_FAILED").diagnose();
        CHECK(d.type == (plenty ? 6 : 3));   // memory in disguise when there is none left
    }
}

TEST_CASE("type 6: one allocation refused while much more is free") {
    RunBuilder run;
    run.up_to_serving().serve(3);
    CHECK(run.fail(run.oom(2_GiB, 9_GiB)).diagnose().cause == "single_allocation_cap");
}

TEST_CASE("verdicts do not rest on the run's description") {
    const auto diagnosed = [](bool described) {
        RunBuilder run;
        if (described) {
            run.text(trace::RecordType::run_info, R"({"device":"x","scenario_hash":"00ff","fault":"request_retained","preemption":"off"})");
            run.text(trace::RecordType::action, "set server.max_num_seqs = 4");
        }
        run.up_to_serving();
        run.serve(100, [&](u64) { run.allocated += 4_MiB; });
        return run.fail(run.oom(200_MiB, 150_MiB)).diagnose();
    };
    const Diagnosis with = diagnosed(true), without = diagnosed(false);
    CHECK(with.type == without.type);
    CHECK(with.cause == without.cause);
    CHECK(with.evidence == without.evidence);
    CHECK(with.summary == without.summary);
}

TEST_CASE("forged records: any bytes give some verdict, some json, and no crash") {
    constexpr trace::RecordType kTypes[] = {
        trace::RecordType::run_info, trace::RecordType::phase, trace::RecordType::budget, trace::RecordType::sample,
        trace::RecordType::request, trace::RecordType::retry, trace::RecordType::failure, trace::RecordType::block_map,
        trace::RecordType::kv_map, trace::RecordType::log, trace::RecordType::finish};
    for (u64 seed = 1; seed <= 300; ++seed) {
        Prng prng(seed);
        RunFacts facts;
        MemorySeries series(1);
        for (int i = 0; i < 40; ++i) {
            std::vector<std::byte> bytes(prng.below(1200));
            const bool small = prng.chance(0.5);   // half of them with plausible small numbers
            for (std::size_t k = 0; k < bytes.size(); ++k) {
                bytes[k] = static_cast<std::byte>(small && k % 8 > 1 ? 0 : prng.below(256));
            }
            trace::RecordView v;
            v.type = kTypes[prng.below(std::size(kTypes))];
            v.time_us = static_cast<i64>(prng.below(u64{1} << 40));
            v.payload = bytes;
            facts.fold(v);
            series.fold(v);
        }
        for (std::size_t i = 0; i < facts.failures.size(); ++i) diagnose_failure(facts, i);
        const Diagnosis d = diagnose(facts);
        CHECK(nlohmann::json::accept(summary_json(facts, d, {})));
        CHECK(!summary_text(facts, d, {}).empty());
    }
}

TEST_CASE("a healthy run has no type") {
    RunBuilder run;
    run.up_to_serving().serve(100);
    trace::FinishRecord finish{};
    finish.received = finish.completed = 100;
    run.put(trace::RecordType::finish, finish);
    CHECK(run.diagnose().type == 0);
    CHECK(run.diagnose().growth.what == Growing::nothing);
    CHECK(outcome_of(run.facts) == "served");
}

TEST_CASE("a second life begins with new floors") {
    RunBuilder run;
    run.up_to_serving();
    run.serve(50, [&](u64) { run.allocated += 4_MiB; });
    run.fail(run.oom(200_MiB, 150_MiB));
    run.phase(Phase::host_load).phase(Phase::weights).up_to_serving();
    run.serve(50);
    CHECK(run.facts.lives.size() >= 2);
    CHECK(growth_of(run.facts.lives.front(), 0).what == Growing::allocated);
    CHECK(growth_of(run.facts.lives.back(), 0).what == Growing::nothing);
}

}  // TEST_SUITE

TEST_SUITE("run summary") {

TEST_CASE("json: exactly the keys of the contract") {
    RunBuilder run;
    run.up_to_serving().serve(10);
    run.fail(run.oom(200_MiB, 150_MiB), "CUDA out of memory \xff\x1b[31m");
    const auto j = nlohmann::ordered_json::parse(summary_json(run.facts, run.diagnose(), {"a.omtrace", false, ""}));
    std::vector<std::string> keys;
    for (const auto& [key, value] : j.items()) keys.push_back(key);
    CHECK(keys == std::vector<std::string>{"outcome", "oom_type", "cause", "phase", "exit_status", "simulated", "message",
                                           "peak_allocated_bytes", "peak_reserved_bytes", "device_used_bytes", "owners", "kv",
                                           "requests", "latency", "makespan_s", "evidence", "restarts", "trace"});
    CHECK(j["owners"]["end"].size() == kOwners);
    CHECK(j["owners"]["peak"].size() == kOwners);
    CHECK(j["latency"]["itl_s"]["p50"].is_null());
}

TEST_CASE("a drawn fault is not named") {
    RunBuilder run;
    run.up_to_serving();
    run.serve(200, [&](u64) { run.allocated += 2_MiB; });
    run.fail(run.oom(200_MiB, 150_MiB));
    const Diagnosis d = run.diagnose();
    const std::string json = summary_json(run.facts, d, {"", true, ""}), text = summary_text(run.facts, d, {"", true, ""});
    for (const char* word : {"leak", "retained", "rose", "grow", "cache_", "held"}) {
        CHECK(json.find(word) == std::string::npos);
        CHECK(text.find(word) == std::string::npos);
    }
    CHECK(nlohmann::json::parse(json)["oom_type"] == 4);
}

TEST_CASE("text from the server never reaches a terminal raw") {
    CHECK(printable("a\x1b[2J\rb\x7f\n") == "a?[2J?b?\n");
}

TEST_CASE("csv rows stand every so many seconds, from the start of serving") {
    MemorySeries series(10);
    RunBuilder run;
    const auto fold = [&](trace::RecordType type, i64 time_us, const auto& record) {
        trace::RecordView v;
        v.type = type;
        v.time_us = time_us;
        v.payload = std::as_bytes(std::span(&record, 1));
        series.fold(v);
    };
    trace::SampleRecord s{};
    fold(trace::RecordType::sample, 1'000'000, s);   // before serving: not counted
    fold(trace::RecordType::phase, 5'000'000, trace::PhaseRecord{Phase::serving, {}});
    for (i64 t = 0; t <= 30; ++t) {
        s.allocated.now = static_cast<u64>(t);
        fold(trace::RecordType::sample, 5'000'000 + t * 1'000'000, s);
    }
    REQUIRE(series.rows().size() == 4);
    CHECK(series.rows()[0].at_s == doctest::Approx(0));
    CHECK(series.rows()[3].at_s == doctest::Approx(30));
    CHECK(series.rows()[3].memory_allocated_bytes == 30);
}

}  // TEST_SUITE
