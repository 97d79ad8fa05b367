#include "labs/server/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/server/messages.hpp"

namespace oomlab::server {

using trace::Phase;
using trace::RequestEvent;

namespace {
constexpr double kSampleEveryS = 0.1;
constexpr double kStatEveryS = 10;
// Two times closer than this are one: the clock is a sum of doubles.
constexpr double kInstant = 1e-7;
double gib(u64 bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }
double gib(i64 bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }
}  // namespace

// What dies with the process. Order matters: the ledger goes last, so members that hold tensors
// stand below it.
struct Engine::Instance {
    Ledger ledger;
    Weights weights;
    Forward forward;
    std::vector<Tensor> kv;                 // one a layer (preallocated)
    std::vector<Tensor> kv_blocks;          // one a KvBlock (on demand)
    std::vector<GraphId> graphs;
    std::unique_ptr<KvPool> pool;
    std::unique_ptr<Scheduler> scheduler;
    Failure block_failure;
    Device& device;

    Instance(const ServerConfig& config, Device& dev, const AllocConf& conf, Recorder& recorder)
        : ledger(dev, conf, recorder), weights(config, dev, ledger), forward(config, dev, ledger, weights), device(dev) {}
    ~Instance() {
        forward.abort();
        for (Tensor& t : kv_blocks) ledger.free(t);
        for (Tensor& t : kv) ledger.free(t);
        for (const GraphId g : graphs) {
            // A dead context cannot give anything back; its process is about to end.
            if (!device.graphs().destroy_graph(g)) break;
        }
    }
};

Engine::Engine(ServerConfig config, Device& device, trace::Writer* writer, Console& console, Control* control)
    : config_(std::move(config)),
      device_(device),
      recorder_(device, writer),
      console_(console),
      control_(control),
      faults_(config_, device, host_),
      workload_(config_.scenario.workload),
      gateway_(config_.scenario.gateway) {
    std::stable_sort(config_.scenario.actions.begin(), config_.scenario.actions.end(),
                     [](const ActionSpec& a, const ActionSpec& b) { return a.at_s < b.at_s; });
}

Engine::~Engine() { shut_down(); }

void Engine::log(const char* level, std::string text) {
    const double t = device_.now_s();
    const unsigned s = static_cast<unsigned>(t);
    std::string line = fmt::format("{} {:02}:{:02}:{:02}{} {}", level, s / 3600, s / 60 % 60, s % 60,
                                   device_.props().simulated ? " [simulated]" : "", text);
    recorder_.log(line);
    console_.line(line);
}

Recorder::Load Engine::load() const {
    Recorder::Load l;
    if (instance_ == nullptr || instance_->pool == nullptr) return l;
    l.kv_used = instance_->pool->used_blocks();
    l.kv_total = config_.scenario.server.kv_pool == "on_demand" ? 0 : instance_->pool->usable();
    l.kv_cached = instance_->pool->cached_blocks();
    if (instance_->scheduler != nullptr) {
        l.running = static_cast<u32>(instance_->scheduler->running());
        l.waiting = static_cast<u32>(instance_->scheduler->waiting());
    }
    return l;
}

int Engine::run() {
    recorder_.phase(Phase::start);
    const DeviceProps& p = device_.props();
    recorder_.run_info(fmt::format(
        R"({{"device":"{}","simulated":{},"total_bytes":{},"model":"{}","engine_version":"{}.{}.{}","seed":{},)"
        R"("scenario_hash":"{:016x}","max_model_len":{},"max_num_seqs":{},"max_num_batched_tokens":{},)"
        R"("enable_chunked_prefill":{},"gpu_memory_utilization":{},"block_size":{},"tensor_parallel_size":{},)"
        R"("kv_pool":"{}","preemption":"{}","enforce_eager":{},"memory_limit_bytes":{},"host_memory_limit_bytes":{},)"
        R"("sample_every_s":{}}})",
        p.name, p.simulated, p.total_bytes, config_.shape.name, config_.version.major, config_.version.minor,
        config_.version.patch, config_.scenario.workload.seed, config_.scenario.text_hash, config_.max_model_len,
        config_.max_num_seqs, config_.max_num_batched_tokens, config_.scenario.server.enable_chunked_prefill,
        config_.scenario.server.gpu_memory_utilization, config_.block_size, config_.tp,
        config_.scenario.server.kv_pool, config_.scenario.server.preemption, config_.graph_sizes.empty(),
        p.memory_limit_bytes, config_.scenario.host.memory_limit, config_.scenario.run.sample_every_s));
    log("INFO", fmt::format("{} on {} ({:.2f} GiB), engine rules of {}.{}", config_.shape.name, p.name,
                            gib(p.total_bytes), config_.version.major, config_.version.minor));
    for (const std::string& w : config_.warnings) log("WARNING", w);

    while (true) {
        restart_asked_ = false;
        Outcome<void> result = start_up();
        if (result) result = serve();
        if (!result) {
            report(result.error());
            fail_in_flight();
            const bool sticky = result.error().device.sticky();
            if (!first_failure_) first_failure_ = std::move(result.error());
            shut_down();
            const bool again = config_.scenario.run.restart_on_failure && serving_began_s_ >= 0 && !sticky && !stopped_;
            if (!again) break;
            ++restarts_;
            log("INFO", fmt::format("Restarting in {:.0f} s", config_.scenario.run.restart_delay_s));
            device_.wait_until_s(device_.now_s() + config_.scenario.run.restart_delay_s);
            continue;
        }
        if (!restart_asked_) break;
        fail_in_flight();
        shut_down();
        ++restarts_;
        device_.wait_until_s(device_.now_s() + config_.scenario.run.restart_delay_s);
    }

    recorder_.phase(Phase::shutdown);
    finish_.owners_end = recorder_.owners_now(instance_ ? &instance_->ledger.allocator() : nullptr);
    recorder_.sample(instance_ ? &instance_->ledger.allocator() : nullptr, load(), 0, true);
    shut_down();
    const Counters& c = recorder_.counters;
    finish_.exit_status = first_failure_ ? 1 : 0;
    finish_.makespan_s = serving_began_s_ < 0 ? 0 : serving_now();
    latency_.fill(finish_);
    finish_.peak_allocated_bytes = peak_allocated_;
    finish_.peak_reserved_bytes = peak_reserved_;
    finish_.peak_device_used_bytes = recorder_.peak_device_used();
    finish_.received = c.received;
    finish_.completed = c.completed;
    finish_.rejected = c.rejected;
    finish_.preempted = c.requests_preempted;
    finish_.failed = c.failed;
    finish_.num_preemptions = c.preemptions;
    finish_.kv_blocks_peak = kv_peak_;
    finish_.kv_blocks_total = kv_peak_total_;
    finish_.owners_peak = recorder_.owners_peak();
    recorder_.finish(finish_);
    return finish_.exit_status;
}

void Engine::shut_down() {
    if (instance_ == nullptr) return;
    const AllocatorStats& s = instance_->ledger.allocator().stats();
    peak_allocated_ = std::max(peak_allocated_, static_cast<u64>(s.allocated_bytes[kStatAll].peak));
    peak_reserved_ = std::max(peak_reserved_, static_cast<u64>(s.reserved_bytes[kStatAll].peak));
    layers_replayed_ += instance_->forward.layers_replayed();
    faults_.forget(&instance_->ledger);
    instance_.reset();
}

// [STAGES]

Outcome<void> Engine::start_up() {
    auto conf = parse_alloc_conf(config_.scenario.allocator.conf);
    if (!conf) return fail(Failure::refused(conf.error().message));
    if (config_.scenario.allocator.per_process_memory_fraction < 1.0) {
        conf->per_process_memory_fraction = config_.scenario.allocator.per_process_memory_fraction;
    }

    recorder_.phase(Phase::host_load);
    HostLoad host_load(config_.scenario.host);
    const bool staged = config_.scenario.host.load == "full_copy" || config_.scenario.host.load.rfind("mmap", 0) == 0;
    constexpr u64 kShards = 16;
    if (staged) {   // the whole checkpoint is there before anything moves to the device
        for (u64 i = 0; i < kShards; ++i) OOMLAB_TRY_VOID(host_load.shard(i, kShards));
    }
    if (config_.scenario.host.pinned_pool_limit != 0) {
        log("INFO", fmt::format("Pinned host pool: {}", human_bytes(config_.scenario.host.pinned_pool_limit)));
        auto pinned = device_.memory().host_alloc(config_.scenario.host.pinned_pool_limit);
        if (!pinned) return fail(Failure::of(std::move(pinned.error())));
        OOMLAB_DEVICE_TRY(device_.memory().host_free(*pinned));
    }

    recorder_.phase(Phase::context);
    if (restarts_ == 0) OOMLAB_DEVICE_TRY(device_.create_context());
    recorder_.set_outside(Owner::context, device_.context_bytes());
    auto info = device_.memory().mem_info();
    if (!info) return fail(Failure::of(std::move(info.error())));
    budget_ = {};
    budget_.total_bytes = info->total_bytes;
    budget_.free_at_start_bytes = info->free_bytes;
    const double u = config_.scenario.server.gpu_memory_utilization;
    budget_.gpu_memory_utilization = u;
    budget_.requested_bytes = static_cast<u64>(static_cast<double>(info->total_bytes) * u);
    recorder_.sample(nullptr, {}, 0, true);
    if (info->free_bytes < budget_.requested_bytes && config_.scenario.server.num_gpu_blocks_override == 0) {
        return fail(Failure::refused(fmt::format(
            "ValueError: Free memory on device cuda:0 ({:.2f}/{:.2f} GiB) on startup is less than desired GPU "
            "memory utilization ({:g}, {:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory used "
            "by other processes.",
            gib(info->free_bytes), gib(info->total_bytes), u, gib(budget_.requested_bytes))));
    }
    OOMLAB_TRY_VOID(faults_.on_library_init());
    if (restarts_ == 0 && device_.props().simulated) {
        // Libraries' memory outside PyTorch; on a real chip it appears by itself.
        OOMLAB_DEVICE_TRY(device_.grow_outside(config_.non_torch_bytes));
    }
    recorder_.set_outside(Owner::communication, config_.communication_bytes);
    recorder_.set_outside(Owner::context, device_.context_bytes() + config_.non_torch_bytes - config_.communication_bytes);

    recorder_.phase(Phase::weights);
    instance_ = std::make_unique<Instance>(config_, device_, *conf, recorder_);
    instance_->forward.replay = replay && instance_->forward.replay && conf->garbage_collection_threshold <= 0;
    log("INFO", fmt::format("Starting to load model {}...", config_.shape.name));
    const double began = device_.now_s();
    const u64 share = div_ceil(instance_->weights.total_bytes(), kShards);
    for (u64 i = 0; i < kShards; ++i) {
        if (!staged) OOMLAB_TRY_VOID(host_load.shard(i, kShards));
        OOMLAB_TRY(done, instance_->weights.load_some(share));
        // Read at the rate of a fast disk.
        if (device_.props().simulated) device_.wait_until_s(device_.now_s() + static_cast<double>(share) / 3e9);
        recorder_.sample(&instance_->ledger.allocator(), {}, 0, true);
        if (done) break;
    }
    budget_.weights_bytes = instance_->ledger.allocator().memory_allocated();
    log("INFO", fmt::format("Model loading took {:.4f} GiB memory and {:.6f} seconds", gib(budget_.weights_bytes),
                            device_.now_s() - began));
    OOMLAB_TRY_VOID(profile());
    OOMLAB_TRY_VOID(make_pool());
    OOMLAB_TRY_VOID(capture_graphs());
    recorder_.phase(Phase::warmup);
    log("INFO", "Application startup complete.");
    return {};
}

Outcome<void> Engine::profile() {
    recorder_.phase(Phase::profile);
    Instance& in = *instance_;
    CachingAllocator& allocator = in.ledger.allocator();
    OOMLAB_TRY_VOID(in.forward.prepare());
    const u64 before = allocator.memory_allocated();
    allocator.reset_peak_stats();
    const u64 tokens = config_.profile_tokens;
    const u64 rows = std::min(tokens, config_.max_num_seqs);
    auto pass = in.forward.profile(tokens, rows);
    if (!pass) {
        in.forward.abort();
        return pass;
    }
    if (device_.props().simulated) {
        const StepCost cost = step_cost(config_.shape, tokens, rows, tokens * (tokens / std::max<u64>(1, rows) + 1) / 2,
                                        tokens, config_.tp, config_.kv_dtype_bytes);
        OOMLAB_DEVICE_TRY(device_.ops().account(OpCost{cost.flops, cost.bytes, cost.eight_bit}));
    }
    OOMLAB_DEVICE_TRY(device_.end_step());
    const u64 peak = static_cast<u64>(allocator.stats().allocated_bytes[kStatAll].peak);
    peak_allocated_ = std::max(peak_allocated_, peak);
    peak_reserved_ = std::max(peak_reserved_, static_cast<u64>(allocator.stats().reserved_bytes[kStatAll].peak));
    budget_.activation_peak_bytes = peak - std::min(peak, before);
    budget_.profiled_tokens = tokens;
    budget_.profiled_seqs = rows;
    auto info = device_.memory().mem_info();
    if (!info) return fail(Failure::of(std::move(info.error())));
    const u64 grown = budget_.free_at_start_bytes - std::min(budget_.free_at_start_bytes, info->free_bytes);
    // Besides weights and activations: what grew outside, the cuBLAS workspace and the input buffers.
    budget_.non_torch_bytes = grown - std::min(grown, allocator.memory_reserved()) + before - std::min(before, budget_.weights_bytes);
    allocator.empty_cache();   // as the engine does before it makes the pool
    recorder_.sample(&allocator, {}, 0, true);
    log("INFO", fmt::format("Memory profiling: {} tokens over {} sequences, peak activation {:.2f} GiB", tokens, rows,
                            gib(budget_.activation_peak_bytes)));
    return {};
}

Outcome<void> Engine::make_pool() {
    recorder_.phase(Phase::kv_pool);
    Instance& in = *instance_;
    const ModelShape& m = config_.shape;
    const Scenario::Server& s = config_.scenario.server;
    const u64 token_bytes = kv_bytes_per_token(m, config_.loaded_tp, config_.kv_dtype_bytes);
    const u64 block_bytes = token_bytes * config_.block_size;
    const u64 base = budget_.weights_bytes + budget_.activation_peak_bytes + budget_.non_torch_bytes;
    if (config_.version.at_least(0, 21)) {
        budget_.graph_estimate_bytes = config_.graph_sizes.empty() ? 0 : 128 * kMiB + (config_.graph_sizes.size() - 1) * 8 * kMiB;
    }
    budget_.available_kv_bytes = static_cast<i64>(budget_.requested_bytes) -
                                 static_cast<i64>(base + budget_.graph_estimate_bytes);
    budget_.kv_block_bytes = block_bytes;
    budget_.block_size = config_.block_size;
    budget_.max_model_len = config_.max_model_len;
    budget_.max_num_seqs = config_.max_num_seqs;
    budget_.max_num_batched_tokens = config_.max_num_batched_tokens;
    budget_.chunked_prefill = s.enable_chunked_prefill ? 1 : 0;
    const bool on_demand = s.kv_pool == "on_demand";
    u64 blocks = budget_.available_kv_bytes > 0 ? static_cast<u64>(budget_.available_kv_bytes) / block_bytes : 0;
    if (s.num_gpu_blocks_override != 0) {
        log("INFO", fmt::format("Overriding num_gpu_blocks={} with num_gpu_blocks_override={}", blocks, s.num_gpu_blocks_override));
        blocks = s.num_gpu_blocks_override;
    }
    log("INFO", fmt::format("Available KV cache memory: {:.2f} GiB", gib(budget_.available_kv_bytes)));
    if (on_demand) {
        blocks = budget_.total_bytes / block_bytes + 1;
        budget_.num_gpu_blocks = 0;
        recorder_.budget(budget_);
    } else {
        budget_.num_gpu_blocks = blocks;
        recorder_.budget(budget_);
        if (blocks < 2) {
            return fail(Failure::refused("ValueError: No available memory for the cache blocks. Try increasing "
                                         "`gpu_memory_utilization` when initializing the engine."));
        }
        const u64 needed = div_ceil(config_.max_model_len, config_.block_size);
        if (needed > blocks - 1 && s.kv_reservation == "paged") {
            return fail(Failure::refused(fmt::format(
                "ValueError: To serve at least one request with the model's max seq len ({}), ({:.2f} GiB KV cache is "
                "needed, which is larger than the available KV cache memory ({:.2f} GiB). Based on the available "
                "memory, the estimated maximum model length is {}. Try increasing `gpu_memory_utilization` or "
                "decreasing `max_model_len` when initializing the engine.",
                config_.max_model_len, gib(needed * block_bytes), gib(budget_.available_kv_bytes),
                (blocks - 1) * config_.block_size)));
        }
        const u64 layers = std::max<u64>(1, m.num_hidden_layers - m.linear_layers);
        const u64 per_layer = div_ceil(blocks * block_bytes, layers);
        for (u64 l = 0; l < layers; ++l) {
            OOMLAB_TRY(t, in.ledger.alloc(per_layer, Owner::kv));
            in.kv.push_back(t);
        }
        if (device_.props().computes) in.forward.set_cache(in.kv);
        const u64 tokens = blocks * config_.block_size;
        log("INFO", fmt::format("GPU KV cache size: {} tokens", tokens));
        log("INFO", fmt::format("Maximum concurrency for {} tokens per request: {:.2f}x", config_.max_model_len,
                                static_cast<double>(blocks) / static_cast<double>(needed)));
    }
    const bool caching = s.enable_prefix_caching && !on_demand && s.kv_reservation == "paged" && m.sliding_layers == 0;
    in.pool = std::make_unique<KvPool>(blocks, config_.block_size, caching);
    if (on_demand) in.kv_blocks.resize(blocks);
    in.scheduler = std::make_unique<Scheduler>(config_, *in.pool, *this, *this);
    kv_peak_total_ = on_demand ? 0 : in.pool->usable();
    faults_.attach(in.ledger, in.pool.get());
    recorder_.sample(&in.ledger.allocator(), load(), 0, true);
    return {};
}

Outcome<void> Engine::capture_graphs() {
    if (config_.graph_sizes.empty() || device_.props().computes) return {};
    recorder_.phase(Phase::graph_capture);
    const double began = device_.now_s();
    Instance& in = *instance_;
    for (const u64 size : config_.graph_sizes) {
        OOMLAB_DEVICE_TRY(device_.graphs().begin_capture(0));
        in.ledger.allocator().begin_capture();
        auto pass = in.forward.profile(size, std::min(size, config_.max_num_seqs));
        in.ledger.allocator().end_capture();
        if (!pass) {
            in.forward.abort();
            return pass;
        }
        auto graph = device_.graphs().end_capture(0);
        if (!graph) return fail(Failure::of(std::move(graph.error())));
        in.graphs.push_back(*graph);
        if (device_.props().simulated) device_.wait_until_s(device_.now_s() + 0.2);
        recorder_.set_outside(Owner::graphs, device_.graph_bytes());
    }
    in.ledger.allocator().empty_cache();
    recorder_.sample(&in.ledger.allocator(), load(), 0, true);
    log("INFO", fmt::format("Graph capturing finished in {:.0f} secs, took {:.2f} GiB", device_.now_s() - began,
                            gib(device_.graph_bytes())));
    return {};
}

// [SERVING]

Outcome<void> Engine::serve() {
    recorder_.phase(Phase::serving);
    if (serving_began_s_ < 0) {
        serving_began_s_ = device_.now_s();
        last_step_s_ = 0;
    }
    Instance& in = *instance_;
    recorder_.block_map(in.ledger.allocator());
    StepPlan plan;
    while (!stopped_ && !restart_asked_) {
        double now = serving_now();
        OOMLAB_TRY_VOID(apply_actions(now));
        if (restart_asked_) break;
        OOMLAB_TRY_VOID(take_arrivals(now));
        OOMLAB_TRY_VOID(cancel_due(now));
        if (in.scheduler->idle()) {
            double until = workload_.next_at();
            if (until >= 1e300) break;   // all is served
            if (next_action_ < config_.scenario.actions.size()) until = std::min(until, config_.scenario.actions[next_action_].at_s);
            // A quiet server is sampled too.
            until = std::min(until, now + config_.scenario.run.sample_every_s);
            device_.wait_until_s(serving_began_s_ + until);
            OOMLAB_TRY_VOID(faults_.on_step(serving_now(), serving_now() - last_step_s_));
            last_step_s_ = serving_now();
            recorder_.sample(&in.ledger.allocator(), load(), kSampleEveryS, false);
            if (control_ != nullptr && !control_->after_step(device_.now_s())) stopped_ = true;
            continue;
        }
        OOMLAB_TRY_VOID(step(plan));
        if (control_ != nullptr && !control_->after_step(device_.now_s())) stopped_ = true;
    }
    return {};
}

Outcome<void> Engine::step(StepPlan& plan) {
    Instance& in = *instance_;
    Scheduler& scheduler = *in.scheduler;
    failed_step_ = {};
    scheduler.plan(plan);
    if (plan.stuck != StepPlan::Stuck::no) {
        const Request& r = requests_[plan.stuck_request];
        switch (plan.stuck) {
            case StepPlan::Stuck::no_memory:
                in.block_failure.request = r.number;
                return fail(std::move(in.block_failure));
            case StepPlan::Stuck::no_preemption:
                return fail(Failure::refused(
                    fmt::format("RuntimeError: No free KV blocks left: {} of {} are used by {} running requests, and "
                                "preemption is off.",
                                in.pool->used_blocks(), in.pool->usable(), scheduler.running()), r.number));
            default:
                return fail(Failure::refused(
                    fmt::format("RuntimeError: Request {} needs more KV blocks than the pool can ever give it: {} "
                                "prompt tokens and {} generated, {} of {} blocks are free and nobody is left to "
                                "preempt.",
                                r.number, r.arrival.prompt_tokens, r.arrival.output_tokens, in.pool->free_blocks(),
                                in.pool->usable()), r.number));
        }
    }
    if (plan.items.empty()) return {};
    kv_peak_ = std::max(kv_peak_, in.pool->used_blocks());
    peak_waiting_ = std::max<u64>(peak_waiting_, scheduler.waiting());
    auto ran = in.forward.run(plan);
    if (!ran) {
        Failure f = std::move(ran.error());
        // Whose tensors: the longest prompt of the step.
        u64 longest = 0;
        for (const StepItem& item : plan.items) {
            if (item.new_tokens > longest) {
                longest = item.new_tokens;
                f.request = item.sequence->request;
            }
        }
        failed_step_ = {plan.prefill_tokens, plan.decode_tokens, plan.items.size(), plan.longest_prompt};
        return fail(std::move(f));
    }
    auto ended = device_.end_step();
    if (!ended) {
        Failure f = Failure::of(std::move(ended.error()));
        f.message = faults_.wrapped_message(f.device);
        return fail(std::move(f));
    }
    const double now = serving_now();
    const double dt = now - last_step_s_;
    running_time_ += dt * static_cast<double>(scheduler.running());
    kv_time_ += dt * in.pool->usage();
    steps_time_ += dt;
    scheduler.commit(plan);
    if (watch_slots) {
        const Scheduler::Slots at = scheduler.slots();
        const double all = static_cast<double>(at.all);
        slot_time_.tokens += dt * static_cast<double>(at.tokens) / all;
        slot_time_.reserved += dt * static_cast<double>(at.reserved) / all;
        slot_time_.internal += dt * static_cast<double>(at.internal) / all;
    }
    ++recorder_.counters.steps;
    for (const StepItem& item : plan.items) {
        Sequence* s = item.sequence;
        const bool prefill = item.new_tokens > 1 || s->generated == 0;
        if (prefill) recorder_.counters.prompt_tokens += item.new_tokens;
        if (!item.samples) continue;
        ++recorder_.counters.generation_tokens;
        if (s->first_token_s < 0) {
            s->first_token_s = now;
            Request& r = requests_[s->request];
            if (!r.first_token) {
                r.first_token = true;
                request_event(RequestEvent::first_token, r, s);
            }
        } else {
            latency_.gap(now - s->last_token_s);
        }
        s->last_token_s = now;
        if (s->generated >= s->output_tokens || s->known() >= config_.max_model_len) {
            OOMLAB_TRY_VOID(end_sequence(s, false));
        }
    }
    OOMLAB_TRY_VOID(faults_.on_step(now, dt));
    last_step_s_ = now;
    if (check_invariants) OOMLAB_TRY_VOID(check());
    recorder_.sample(&in.ledger.allocator(), load(), kSampleEveryS, false);
    if (now - last_map_s_ >= map_every_s_) {
        last_map_s_ = now;
        recorder_.block_map(in.ledger.allocator());
        std::vector<trace::KvOwner> owners;
        for (const Sequence* s : scheduler.running_list()) {
            owners.push_back({s->request, static_cast<u32>(s->blocks.size()), s->blocks.empty() ? 0 : s->blocks.front(), 0});
        }
        trace::KvMapRecord head{static_cast<u32>(owners.size()), static_cast<u32>(in.pool->usable()),
                                static_cast<u32>(in.pool->used_blocks()), static_cast<u32>(in.pool->cached_blocks())};
        recorder_.kv_map(head, owners);
        // The file has a ceiling: maps become rarer as it fills.
        if (recorder_.writer() != nullptr &&
            recorder_.writer()->virtual_bytes_used() * 4 > recorder_.writer()->virtual_bytes_capacity()) {
            map_every_s_ = 600;
        }
    }
    if (now - last_stat_s_ >= kStatEveryS) {
        const Counters& c = recorder_.counters;
        const double span = now - last_stat_s_;
        log("INFO", fmt::format("Engine 000: Avg prompt throughput: {:.1f} tokens/s, Avg generation throughput: {:.1f} "
                                "tokens/s, Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {:.1f}%",
                                static_cast<double>(c.prompt_tokens - last_stat_prompt_) / span,
                                static_cast<double>(c.generation_tokens - last_stat_generation_) / span,
                                scheduler.running(), scheduler.waiting(), 100 * in.pool->usage()));
        last_stat_s_ = now;
        last_stat_prompt_ = c.prompt_tokens;
        last_stat_generation_ = c.generation_tokens;
    }
    return {};
}

void Engine::request_event(RequestEvent event, const Request& r, const Sequence* s, u16 status) {
    trace::RequestRecord record{};
    record.request = r.number;
    record.event = event;
    record.http_status = status;
    record.prompt_tokens = static_cast<u32>(r.arrival.prompt_tokens);
    record.output_tokens = static_cast<u32>(s != nullptr ? s->generated : r.arrival.output_tokens);
    if (s != nullptr) {
        record.computed_tokens = static_cast<u32>(s->computed);
        record.kv_blocks = static_cast<u32>(s->blocks.size());
    }
    record.preemptions = r.preemptions;
    record.recomputed_tokens = static_cast<u32>(r.recomputed_tokens);
    recorder_.request(record);
}

Outcome<void> Engine::take_arrivals(double now) {
    Instance& in = *instance_;
    while (workload_.next_at() <= now + kInstant) {
        Request r;
        r.arrival = workload_.pop();
        r.number = static_cast<u32>(requests_.size());
        ++recorder_.counters.received;
        request_event(RequestEvent::arrival, r, nullptr);
        if (config_.scenario.host.tokenizer_bytes_per_token != 0) {
            OOMLAB_TRY_VOID(host_.pass(config_.scenario.host.tokenizer_bytes_per_token * r.arrival.prompt_tokens));
        }
        // Arrived while the server was down: nobody was there to answer.
        const bool down = restarts_ > 0 && r.arrival.at_s < down_until_s_;
        const auto rejection = judge(gateway_, r.arrival, config_.max_model_len, in_flight_);
        if (down) {
            ++recorder_.counters.failed;
            request_event(RequestEvent::failed, r, nullptr, 503);
            workload_.finished(now);
        } else if (rejection) {
            ++recorder_.counters.rejected;
            request_event(RequestEvent::rejection, r, nullptr, static_cast<u16>(rejection->http_status));
            if (recorder_.counters.rejected <= 100) log("INFO", fmt::format("{}: {}", rejection->http_status, rejection->message));
            workload_.finished(now);
        } else {
            r.sequences_left = static_cast<u32>(r.arrival.n);
            ++in_flight_;
            for (u64 i = 0; i < r.arrival.n; ++i) {
                auto s = std::make_unique<Sequence>();
                s->request = r.number;
                s->prompt_tokens = r.arrival.prompt_tokens;
                s->output_tokens = std::min(r.arrival.output_tokens, config_.max_model_len - r.arrival.prompt_tokens);
                s->arrival_s = r.arrival.at_s;
                s->content.own = (static_cast<u64>(r.number) << 8) + i + 1;
                s->content.prefix = r.arrival.prefix_group;
                s->content.prefix_tokens = static_cast<u32>(std::min(r.arrival.prefix_tokens, r.arrival.prompt_tokens));
                if (r.arrival.n > 1) {   // samples of one request share its whole prompt
                    s->content.prefix = 0x100000000ULL + r.number;
                    s->content.prefix_tokens = static_cast<u32>(r.arrival.prompt_tokens);
                }
                in.scheduler->add(std::move(s));
            }
            if (r.arrival.cancel_at_s < 1e300) {
                const auto later = [&](std::size_t a, double t) { return requests_[a].arrival.cancel_at_s < t; };
                cancels_.insert(std::lower_bound(cancels_.begin(), cancels_.end(), r.arrival.cancel_at_s, later), requests_.size());
            }
        }
        requests_.push_back(std::move(r));
    }
    return {};
}

Outcome<void> Engine::cancel_due(double now) {
    while (!cancels_.empty() && requests_[cancels_.front()].arrival.cancel_at_s <= now + kInstant) {
        Request& r = requests_[cancels_.front()];
        cancels_.erase(cancels_.begin());
        if (r.sequences_left == 0) continue;
        r.cancelled = true;
        Scheduler& scheduler = *instance_->scheduler;
        std::vector<Sequence*> mine;
        for (Sequence* s : scheduler.running_list()) if (s->request == r.number) mine.push_back(s);
        for (Sequence* s : scheduler.waiting_list()) if (s->request == r.number) mine.push_back(s);
        for (Sequence* s : mine) OOMLAB_TRY_VOID(end_sequence(s, true));
    }
    return {};
}

Outcome<void> Engine::end_sequence(Sequence* s, bool cancelled) {
    Request& r = requests_[s->request];
    const double now = serving_now();
    if (r.sequences_left > 0 && --r.sequences_left == 0) {
        --in_flight_;
        request_event(cancelled ? RequestEvent::cancelled : RequestEvent::completion, r, s);
        if (cancelled) {
            ++recorder_.counters.cancelled;
        } else {
            ++recorder_.counters.completed;
            const u64 gaps = s->generated - 1;
            latency_.request(s->first_token_s - r.arrival.at_s, gaps > 0 ? (now - s->first_token_s) / static_cast<double>(gaps) : 0,
                             now - r.arrival.at_s, gaps > 0);
            if (keep_results) results_.push_back({r.arrival.at_s, s->first_token_s, now, s->prompt_tokens, s->generated});
        }
        workload_.finished(now);
        OOMLAB_TRY_VOID(faults_.on_finished(r, now, cancelled));
    }
    Forward& forward = instance_->forward;
    if (device_.props().computes && s->serial < forward.token_lists.size()) {
        if (finished_tokens_.size() <= s->request) finished_tokens_.resize(s->request + 1);
        finished_tokens_[s->request] = std::move(forward.token_lists[s->serial]);
        forward.token_lists[s->serial].clear();
    }
    instance_->scheduler->finish(s);
    return {};
}

Outcome<void> Engine::apply_actions(double now) {
    auto& actions = config_.scenario.actions;
    while (next_action_ < actions.size() && actions[next_action_].at_s <= now + kInstant) {
        const ActionSpec& a = actions[next_action_++];
        Scheduler& scheduler = *instance_->scheduler;
        for (const ActionSpec::Setting& s : a.settings) {
            const u64 n = s.number > 0 ? static_cast<u64>(s.number) : 0;
            if (s.key == "server.max_num_seqs") scheduler.max_num_seqs = config_.max_num_seqs = std::max<u64>(1, n);
            else if (s.key == "server.max_num_batched_tokens") scheduler.max_num_batched_tokens = config_.max_num_batched_tokens = std::max<u64>(1, n);
            else if (s.key == "server.enable_chunked_prefill") config_.scenario.server.enable_chunked_prefill = scheduler.chunked = n != 0;
            else if (s.key == "server.watermark") scheduler.watermark = s.number;
            else if (s.key == "server.gpu_memory_utilization") config_.scenario.server.gpu_memory_utilization = s.number;   // at the next start
            else if (s.key == "gateway.max_input_tokens") gateway_.max_input_tokens = n;
            else if (s.key == "gateway.max_output_tokens") gateway_.max_output_tokens = n;
            else if (s.key == "gateway.max_concurrent_requests") gateway_.max_concurrent_requests = n;
            else if (s.key == "gateway.max_n") gateway_.max_n = n;
            else if (s.key == "gateway.deny") gateway_.deny.push_back(*parse_gateway_rule(s.text));
            else if (s.key == "workload.arrival_rate") workload_.set_rate(s.number, now);
            const std::string line = fmt::format("set {} = {}", s.key, s.text.empty() ? fmt::format("{:g}", s.number) : s.text);
            recorder_.text(trace::RecordType::action, line);
            log("INFO", line);
        }
        if (a.verb == "memory_summary") {
            const std::string table = memory_summary(instance_->ledger.allocator().stats());
            recorder_.text(trace::RecordType::memory_summary, table);
            console_.line(table);
        } else if (a.verb == "restart") {
            recorder_.text(trace::RecordType::action, "restart");
            log("INFO", "Restart requested");
            restart_asked_ = true;
        }
    }
    return {};
}

Engine::SlotShares Engine::mean_slots() const {
    if (steps_time_ <= 0) return {};
    return {slot_time_.tokens / steps_time_, slot_time_.reserved / steps_time_, slot_time_.internal / steps_time_};
}

// [ENDINGS]

void Engine::fail_in_flight() {
    for (Request& r : requests_) {
        if (r.sequences_left == 0) continue;
        r.sequences_left = 0;
        ++recorder_.counters.failed;
        request_event(RequestEvent::failed, r, nullptr, 500);
        workload_.finished(serving_now());
    }
    in_flight_ = 0;
    cancels_.clear();
    down_until_s_ = serving_began_s_ < 0 ? 0 : serving_now() + config_.scenario.run.restart_delay_s;
}

void Engine::report(Failure& f) {
    const Phase phase = recorder_.current_phase();
    const std::string message = failure_message(f, phase);
    trace::FailureRecord r{};
    r.kind = f.kind;
    r.code = static_cast<i32>(f.device.code);
    r.call = static_cast<i32>(f.device.call);
    r.owner = f.kind == trace::FailureKind::allocator_oom ? f.alloc.owner : Owner::unattributed;
    r.sticky = f.device.sticky() ? 1 : 0;
    r.capped = f.alloc.capped || (device_.props().memory_limit_bytes != 0 && f.kind == trace::FailureKind::allocator_oom) ? 1 : 0;
    r.request = f.request;
    r.step_prefill_tokens = static_cast<u32>(failed_step_.prefill_tokens);
    r.step_decode_tokens = static_cast<u32>(failed_step_.decode_tokens);
    r.step_requests = static_cast<u32>(failed_step_.requests);
    r.longest_prompt = static_cast<u32>(failed_step_.longest_prompt);
    r.requested_bytes = f.kind == trace::FailureKind::allocator_oom ? f.alloc.requested_bytes : f.device.bytes;
    r.rounded_bytes = f.alloc.rounded_bytes;
    r.segment_bytes = f.alloc.segment_bytes;
    r.limit_bytes = f.alloc.allowed_bytes != 0 ? f.alloc.allowed_bytes : device_.props().memory_limit_bytes;
    const auto asked = device_.memory().mem_info();
    const MemInfo info = asked ? *asked : recorder_.last_mem_info();
    r.device_total_bytes = info.total_bytes;
    r.device_free_bytes = info.free_bytes;
    r.other_processes_bytes = info.other_processes_bytes;
    const CachingAllocator* allocator = instance_ ? &instance_->ledger.allocator() : nullptr;
    if (allocator != nullptr) {
        r.allocated_bytes = allocator->memory_allocated();
        r.reserved_bytes = allocator->memory_reserved();
        r.largest_free_block_bytes = allocator->largest_free_block_bytes();
        r.inactive_split_bytes = static_cast<u64>(allocator->stats().inactive_split_bytes[kStatAll].current);
    }
    r.context_bytes = device_.context_bytes();
    r.outside_bytes = device_.outside_bytes();
    r.graph_bytes = device_.graph_bytes();
    const bool activations = f.kind == trace::FailureKind::allocator_oom && f.alloc.owner == Owner::activations;
    r.step_activation_bytes = recorder_.live(Owner::activations) + (activations ? f.alloc.rounded_bytes : 0);
    r.profiled_activation_bytes = budget_.activation_peak_bytes;
    const Recorder::Load l = load();
    r.kv_blocks_used = l.kv_used;
    r.kv_blocks_total = l.kv_total;
    r.preemptions = recorder_.counters.preemptions;
    r.completed = recorder_.counters.completed;
    r.owner_bytes = recorder_.owners_now(allocator);
    recorder_.sample(allocator, l, 0, true);
    recorder_.failure(r, message);
    if (allocator != nullptr) recorder_.block_map(*allocator);

    console_.line(fmt::format("ERROR{} EngineCore encountered a fatal error.", device_.props().simulated ? " [simulated]" : ""));
    const std::string text = frames(f, phase) + message;
    console_.line(text);
    if (instance_ != nullptr) instance_->forward.abort();
}

void Engine::admitted(const Sequence& s, u64 cached_tokens) {
    Request& r = requests_[s.request];
    recorder_.counters.cached_tokens += cached_tokens;
    r.admitted = true;
    request_event(RequestEvent::admission, r, &s);
}

void Engine::preempted(const Sequence& s, u64 lost_tokens) {
    Request& r = requests_[s.request];
    if (r.preemptions++ == 0) ++recorder_.counters.requests_preempted;
    r.recomputed_tokens += lost_tokens;
    ++recorder_.counters.preemptions;
    recorder_.counters.recomputed_tokens += lost_tokens;
    request_event(RequestEvent::preemption, r, &s);
}

bool Engine::back(const std::vector<u32>& blocks, std::size_t first, u32 request) {
    Instance& in = *instance_;
    for (std::size_t i = first; i < blocks.size(); ++i) {
        Tensor& t = in.kv_blocks[blocks[i]];
        if (in.ledger.try_alloc(budget_.kv_block_bytes, Owner::kv, request, kNoOp, t)) continue;
        in.block_failure = in.ledger.take_failure();
        for (std::size_t k = first; k < i; ++k) in.ledger.free(in.kv_blocks[blocks[k]]);
        return false;
    }
    return true;
}

void Engine::unback(const std::vector<u32>& blocks) {
    for (const u32 b : blocks) instance_->ledger.free(instance_->kv_blocks[b]);
}

// One ledger: what the device has used is the segments, the context, and what stands outside; what
// owners hold is what the allocator says; requests and blocks are conserved.
Outcome<void> Engine::check() const {
    const auto broken = [](std::string what) {
        Failure f;
        f.kind = trace::FailureKind::internal;
        f.message = "invariant broken: " + std::move(what);
        return fail(std::move(f));
    };
    const CachingAllocator& a = instance_->ledger.allocator();
    if (const std::string bad = a.check_invariants(); !bad.empty()) return broken(bad);
    if (const char* bad = instance_->pool->check_invariants(); *bad != '\0') return broken(bad);
    u64 owned = 0;
    for (std::size_t o = 0; o <= static_cast<std::size_t>(Owner::communication); ++o) {
        owned += a.owner_bytes(static_cast<Owner>(o));
    }
    if (owned != a.memory_allocated()) return broken("owners do not add up to memory_allocated");
    auto info = device_.memory().mem_info();
    if (!info) return fail(Failure::of(std::move(info.error())));
    const u64 used = info->total_bytes - info->free_bytes;
    const u64 known = a.memory_reserved() + device_.context_bytes() + device_.graph_bytes() + device_.outside_bytes() + info->other_processes_bytes;
    if (device_.props().simulated && used != known) return broken("device used is not segments + context + outside");
    const Counters& c = recorder_.counters;
    if (c.received != c.completed + c.rejected + c.failed + c.cancelled + in_flight_) return broken("requests are not conserved");
    u64 held = 0;
    for (const Sequence* s : instance_->scheduler->running_list()) held += s->blocks.size();
    if (held < instance_->pool->used_blocks() && config_.scenario.faults.empty()) return broken("blocks are used by nobody");
    return {};
}

}  // namespace oomlab::server
