// The scheduler against the rules of vLLM's V1 step, on a pool small enough to count by hand.
#include <doctest/doctest.h>

#include "kernels/base/prng.hpp"
#include "labs/server/schedule/scheduler.hpp"

using namespace oomlab;
using namespace oomlab::server;

namespace {

struct Watch : SchedulerObserver, BlockSource {
    std::vector<u32> admissions, preemptions;
    void admitted(const Sequence& s, u64) override { admissions.push_back(s.request); }
    void preempted(const Sequence& s, u64) override { preemptions.push_back(s.request); }
    bool back(const std::vector<u32>&, std::size_t, u32) override { return true; }
    void unback(const std::vector<u32>&) override {}
};

struct Bench {
    ServerConfig config;
    KvPool pool;
    Watch watch;
    Scheduler scheduler;
    StepPlan plan;
    u32 next = 0;

    explicit Bench(u64 blocks, u64 budget, bool chunked = true, const char* preemption = "recompute")
        : config(make(budget, chunked, preemption)), pool(blocks + 1, 16, true), scheduler(config, pool, watch, watch) {}
    static ServerConfig make(u64 budget, bool chunked, const char* preemption) {
        ServerConfig c;
        c.max_model_len = 4096;
        c.max_num_seqs = 8;
        c.max_num_batched_tokens = budget;
        c.scenario.server.enable_chunked_prefill = chunked;
        c.scenario.server.preemption = preemption;
        return c;
    }
    Sequence* add(u64 prompt, u64 output, double at = 0) {
        auto s = std::make_unique<Sequence>();
        s->request = next++;
        s->prompt_tokens = prompt;
        s->output_tokens = output;
        s->arrival_s = at;
        s->content.own = s->request + 1;
        return scheduler.add(std::move(s));
    }
    void step() {
        scheduler.plan(plan);
        scheduler.commit(plan);
    }
};

}  // namespace

TEST_CASE("scheduler: a prompt is cut to the token budget and decodes come first") {
    Bench b(100, 32);
    Sequence* a = b.add(40, 5);
    b.step();
    CHECK(b.plan.tokens == 32);
    CHECK(b.plan.rows == 0);
    CHECK(a->generated == 0);
    b.step();   // the other 8 tokens: the first token comes
    CHECK(b.plan.tokens == 8);
    CHECK(a->generated == 1);
    b.add(100, 5);
    b.step();   // one decode, 31 tokens of the new prompt
    CHECK(b.plan.decode_tokens == 1);
    CHECK(b.plan.prefill_tokens == 31);
    CHECK(b.plan.context_tokens == 41 + 31 * 32 / 2);
}

TEST_CASE("scheduler: the latest admitted is preempted, goes to the front and finds its blocks again") {
    Bench b(8, 256);
    Sequence* a = b.add(62, 40);
    Sequence* c = b.add(62, 40);
    b.step();
    CHECK(b.pool.free_blocks() == 0);
    b.step();
    b.step();   // both have 64 tokens computed; the next token needs a ninth block
    REQUIRE(b.watch.preemptions.empty());
    b.step();
    CHECK(b.watch.preemptions == std::vector<u32>{c->request});
    CHECK(c->state == Sequence::State::waiting);
    CHECK(c->generated == 3);
    CHECK(a->computed == 65);
    CHECK(b.scheduler.waiting_list().front() == c);
    // The first one ends: the other comes back with whole blocks from the cache.
    b.scheduler.finish(a);
    b.step();
    CHECK(c->state == Sequence::State::running);
    CHECK(b.plan.tokens < 65);   // recomputes less than all it knows
    CHECK(std::string(b.pool.check_invariants()).empty());
}

TEST_CASE("scheduler: a waiting request never evicts a running one") {
    Bench b(8, 256);
    b.add(100, 50);
    b.step();
    b.add(60, 5);   // needs 4 blocks, 1 is free
    b.step();
    CHECK(b.scheduler.waiting() == 1);
    CHECK(b.watch.preemptions.empty());
}

TEST_CASE("scheduler: without chunking the first prompt runs whole, the batch of one instant with it") {
    Bench b(1000, 64, false);
    b.add(500, 2, 1.0);
    b.add(500, 2, 1.0);
    b.add(500, 2, 2.0);
    b.step();
    CHECK(b.plan.tokens == 1000);
    CHECK(b.plan.longest_prompt == 500);
    b.step();
    CHECK(b.plan.prefill_tokens == 500);
    CHECK(b.plan.decode_tokens == 2);
}

TEST_CASE("scheduler: what can never fit, and a pool without preemption, end with a name") {
    Bench b(4, 256);
    b.add(100, 5);
    b.scheduler.plan(b.plan);
    CHECK(b.plan.stuck == StepPlan::Stuck::request_never_fits);

    Bench alone(4, 256);
    alone.add(60, 50);
    for (int i = 0; i < 5; ++i) alone.step();
    alone.scheduler.plan(alone.plan);
    CHECK(alone.plan.stuck == StepPlan::Stuck::request_never_fits);

    Bench off(8, 256, true, "off");
    off.add(62, 40);
    off.add(62, 40);
    for (int i = 0; i < 3; ++i) off.step();
    off.scheduler.plan(off.plan);
    CHECK(off.plan.stuck == StepPlan::Stuck::no_preemption);
}

TEST_CASE("scheduler: the watermark keeps blocks free at admission, never for the first request") {
    Bench b(10, 256);
    b.scheduler.watermark = 0.3;
    b.add(144, 2);   // 9 of 10 blocks: admitted, nothing else runs
    b.step();
    CHECK(b.scheduler.running() == 1);
    b.add(16, 2);    // 1 free, 3 must stay free
    b.step();
    CHECK(b.scheduler.running() == 1);
}

// Random traffic: every request ends, blocks come home, no step goes beyond the budget, and work is
// conserved: a step with somebody waiting and room for them is never empty.
TEST_CASE("scheduler: random traffic always ends, within budget, and returns every block") {
    for (u64 seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        Prng prng(seed);
        Bench b(prng.between(12, 80), prng.between(16, 256));
        u64 open = 0, added = 0;
        std::vector<Sequence*> live;
        for (int step = 0; step < 4000 && (added < 60 || open > 0); ++step) {
            if (added < 60 && prng.chance(0.3)) {
                live.push_back(b.add(prng.between(1, 120), prng.between(1, 60)));
                ++added;
                ++open;
            }
            if (b.scheduler.idle()) continue;
            b.scheduler.plan(b.plan);
            REQUIRE(b.plan.stuck == StepPlan::Stuck::no);
            REQUIRE(b.plan.tokens <= b.config.max_num_batched_tokens);
            REQUIRE((b.plan.tokens > 0 || b.plan.preemptions > 0));
            b.scheduler.commit(b.plan);
            std::erase_if(live, [&](Sequence* s) {
                if (s->generated < s->output_tokens) return false;
                b.scheduler.finish(s);
                --open;
                return true;
            });
            REQUIRE(std::string(b.pool.check_invariants()) == "");
        }
        CHECK(open == 0);
        CHECK(b.pool.used_blocks() == 0);
    }
}
