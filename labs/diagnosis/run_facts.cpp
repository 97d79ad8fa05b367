#include "labs/diagnosis/run_facts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "labs/trace/views.hpp"

namespace oomlab::diagnosis {

using trace::Phase;
using trace::RecordType;
using trace::RequestEvent;

namespace {

constexpr u32 kRequestsMax = 5'000'000;
constexpr std::size_t kHostPointsMax = 100'000;
constexpr u32 kAlive = 0, kEnded = 1, kCancelled = 2;

constexpr std::size_t at(Owner o) { return static_cast<std::size_t>(o); }
u64 minus(u64 a, u64 b) { return a - std::min(a, b); }

template <class T>
T get(const nlohmann::json& j, const char* key, T fallback) {
    const auto it = j.find(key);
    if (it == j.end() || it->is_null()) return fallback;
    if constexpr (std::is_same_v<T, std::string>) {
        return it->is_string() ? it->get<std::string>() : fallback;
    } else if constexpr (std::is_same_v<T, bool>) {
        return it->is_boolean() ? it->get<bool>() : fallback;
    } else if constexpr (std::is_floating_point_v<T>) {
        return it->is_number() ? it->get<T>() : fallback;
    } else {   // a fraction or a giant would not survive the conversion
        return it->is_number_integer() ? it->get<T>() : fallback;
    }
}

RunInfo parse_info(std::string_view text) {
    RunInfo info;
    const auto j = nlohmann::json::parse(text, nullptr, false);
    if (!j.is_object()) return info;
    info.known = true;
    info.simulated = get(j, "simulated", false);
    info.device = get<std::string>(j, "device", "");
    info.model = get<std::string>(j, "model", "");
    info.preemption = get<std::string>(j, "preemption", "");
    info.kv_pool = get<std::string>(j, "kv_pool", "");
    info.total_bytes = get<u64>(j, "total_bytes", 0);
    info.max_model_len = get<u64>(j, "max_model_len", 0);
    info.max_num_seqs = get<u64>(j, "max_num_seqs", 0);
    info.max_num_batched_tokens = get<u64>(j, "max_num_batched_tokens", 0);
    info.host_memory_limit_bytes = get<u64>(j, "host_memory_limit_bytes", 0);
    info.weights_bytes = get<u64>(j, "weights_bytes", 0);
    info.vocab_size = get<u64>(j, "vocab_size", 0);
    info.sample_every_s = get<double>(j, "sample_every_s", 10);
    return info;
}

HostFacts parse_evidence(std::string_view text) {
    HostFacts h;
    const auto j = nlohmann::json::parse(text, nullptr, false);
    if (!j.is_object()) return h;
    h.known = true;
    h.outcome = get<std::string>(j, "outcome", "");
    h.killed_by = get<std::string>(j, "killed_by", "");
    h.exit_status = get<int>(j, "exit_status", 0);
    h.signal = get<int>(j, "signal", 0);
    if (const auto limit = j.find("host_limit"); limit != j.end() && limit->is_object()) {
        h.way = get<std::string>(*limit, "way", "");
        h.limit_bytes = get<u64>(*limit, "limit_bytes", 0);
        h.peak_bytes = get<u64>(*limit, "peak_bytes", 0);
    }
    if (const auto lines = j.find("sentences"); lines != j.end() && lines->is_array()) {
        for (const auto& line : *lines) {
            if (line.is_string() && h.sentences.size() < 32) h.sentences.push_back(line.get<std::string>());
        }
    }
    return h;
}

}  // namespace

Life& RunFacts::life() {
    if (lives.empty()) lives.emplace_back();
    return lives.back();
}

void RunFacts::fold(const trace::RecordView& v) {
    last_us = std::max(last_us, v.time_us);
    if (v.type == RecordType::run_info) {
        if (!info.known) info = parse_info(v.text());
    } else if (const auto p = trace::record_of<trace::PhaseRecord>(v, RecordType::phase)) {
        phase = p->phase;
        // The first stage begins a life; `start` is said once, before the first one.
        const bool begins = phase == Phase::host_load || lives.empty();
        if (begins && (lives.empty() || lives.back().last_phase != Phase::start)) {
            lives.emplace_back();
            lives.back().begin_us = v.time_us;
            lives.back().completed_at_begin = last_sample ? last_sample->completed : 0;
            lives.back().preemptions_at_begin = preemptions;
        }
        if (phase == Phase::host_load) pinned_pool_begun = false;
        if (phase != Phase::shutdown) life().last_phase = phase;
        if (phase == Phase::serving && life().serving_us < 0) life().serving_us = v.time_us;
        life().end_us = v.time_us;
    } else if (const auto b = trace::record_of<trace::BudgetRecord>(v, RecordType::budget)) {
        life().budget = *b;
    } else if (const auto s = trace::record_of<trace::SampleRecord>(v, RecordType::sample)) {
        add_sample(v.time_us, *s);
    } else if (const auto r = trace::record_of<trace::RequestRecord>(v, RecordType::request)) {
        add_request(*r);
    } else if (const auto t = trace::record_of<trace::RetryRecord>(v, RecordType::retry)) {
        ++retries;
    } else if (v.type == RecordType::log) {
        if (v.text().find("Pinned host pool") != std::string_view::npos) pinned_pool_begun = true;
    } else if (v.type == RecordType::block_map) {
        add_map(v);
    } else if (v.type == RecordType::kv_map) {
        if (const auto map = trace::kv_map(v)) {
            u64 held = 0;
            for (const trace::KvOwner& o : map->owners) held += o.blocks;
            life().lost_kv_blocks = minus(map->record.blocks_used, held);
        }
    } else if (const auto f = trace::failure(v)) {
        FailureFacts facts;
        facts.record = f->record;
        facts.time_us = v.time_us;
        facts.message = std::string(f->message);
        if (lives.empty()) lives.emplace_back();
        facts.life = lives.size() - 1;
        facts.before = last_sample;
        facts.retries = retries;
        if (f->record.request < requests_.size()) {
            facts.request_prompt_tokens = requests_[f->record.request].prompt_tokens;
        }
        life().failure = failures.size();
        life().end_us = v.time_us;
        failures.push_back(std::move(facts));
    } else if (const auto e = trace::record_of<trace::FinishRecord>(v, RecordType::finish)) {
        finish = *e;
    }
}

void RunFacts::add_sample(i64 time_us, const trace::SampleRecord& s) {
    for (std::size_t o = 0; o < kOwners; ++o) owner_peaks[o] = std::max(owner_peaks[o], s.owner[o].high);
    allocated_peak = std::max(allocated_peak, s.allocated.high);
    reserved_peak = std::max(reserved_peak, s.reserved.high);
    device_used_peak = std::max(device_used_peak, s.device_used.high);
    kv_blocks_peak = std::max(kv_blocks_peak, s.kv_blocks_used);
    const bool failing = s.num_ooms > ooms_ || phase == Phase::shutdown;
    ooms_ = s.num_ooms;
    // The sample that a failing step leaves behind is no moment between steps.
    if (failing) return;
    last_sample = s;
    Life& l = life();
    l.end_us = time_us;
    if (phase != Phase::serving) return;
    const u64 done = s.completed;
    const u64 kv = s.kv_blocks_total == 0 ? s.owner[at(Owner::kv)].now : 0;
    const u64 reserved = s.reserved.now, allocated = s.allocated.now;
    const trace::Envelope& act = s.owner[at(Owner::activations)];
    l.step_activations_peak_bytes = std::max(l.step_activations_peak_bytes, minus(act.high, act.low));
    l.allocated.add(done, time_us, minus(allocated, kv));
    // The cache keeps what the largest step so far needed: that much is no fragmentation.
    l.gap.add(done, time_us, minus(minus(reserved, allocated), l.step_activations_peak_bytes));
    l.outside.add(done, time_us, minus(s.device_used.now, reserved));
    l.others.add(done, time_us, s.owner[at(Owner::other_processes)].now);
    for (std::size_t o = 0; o < kOwners; ++o) l.owner[o].add(done, time_us, s.owner[o].now);
}

void RunFacts::add_request(const trace::RequestRecord& r) {
    if (r.request >= kRequestsMax) return;
    if (r.request >= requests_.size()) requests_.resize(r.request + 1);
    Seen& seen = requests_[r.request];
    switch (r.event) {
        case RequestEvent::arrival:
            ++arrivals;
            seen.prompt_tokens = r.prompt_tokens;
            if (last_arrival) prompt_tokens_before_last += last_arrival->second;
            last_arrival = {r.request, r.prompt_tokens};
            break;
        case RequestEvent::rejection: ++rejections; break;
        case RequestEvent::preemption: ++preemptions; break;
        case RequestEvent::completion:
        case RequestEvent::failed:
        case RequestEvent::cancelled:
            if (seen.state != kAlive) break;
            seen.state = r.event == RequestEvent::cancelled ? kCancelled : kEnded;
            ++ended_;
            if (seen.state == kCancelled) ++cancelled_;
            break;
        default: break;
    }
}

void RunFacts::add_map(const trace::RecordView& view) {
    const auto map = trace::block_map(view);
    if (!map) return;
    Retained r;
    r.time_us = view.time_us;
    r.ended_requests = ended_;
    r.ended_cancelled = cancelled_;
    r.truncated = map->record.truncated_blocks != 0;
    std::unordered_map<u32, u64> by_request;
    for (const trace::MapBlock& b : map->blocks) {
        if (b.state != trace::BlockState::active || b.request >= requests_.size()) continue;
        if (b.owner == Owner::kv || requests_[b.request].state == kAlive) continue;
        by_request[b.request] += b.bytes;
        r.bytes += b.bytes;
        ++r.blocks;
        r.smallest_block_bytes = r.blocks == 1 ? b.bytes : std::min(r.smallest_block_bytes, b.bytes);
        r.largest_block_bytes = std::max(r.largest_block_bytes, b.bytes);
        if (at(b.owner) < kOwners) r.owner_bytes[at(b.owner)] += b.bytes;
    }
    r.requests = by_request.size();
    for (const auto& [request, bytes] : by_request) {   // sums and extremes: order does not matter
        const Seen& seen = requests_[request];
        if (seen.state == kCancelled) ++r.cancelled_requests;
        if (seen.prompt_tokens == 0) continue;
        const double each = static_cast<double>(bytes) / seen.prompt_tokens;
        r.per_prompt_token_low = r.per_prompt_token_low == 0 ? each : std::min(r.per_prompt_token_low, each);
        r.per_prompt_token_high = std::max(r.per_prompt_token_high, each);
    }
    life().retained = r;
}

void RunFacts::begin_wall() {
    host = {};
    host_points.clear();
}

void RunFacts::fold_wall(const trace::RecordView& v) {
    if (v.type == RecordType::evidence) {
        host = parse_evidence(v.text());
    } else if (const auto h = trace::record_of<trace::HostSampleRecord>(v, RecordType::host_sample)) {
        if (host_points.size() < kHostPointsMax) {
            host_points.push_back({h->wall_us, h->rss_bytes, h->cgroup_current_bytes});
        }
    }
}

RunFacts facts_of(trace::Reader& reader) {
    RunFacts facts;
    reader.poll([&](const trace::RecordView& v) { facts.fold(v); });
    facts.begin_wall();
    reader.wall([&](const trace::RecordView& v) { facts.fold_wall(v); });
    return facts;
}

void MemorySeries::fold(const trace::RecordView& v) {
    if (const auto p = trace::record_of<trace::PhaseRecord>(v, RecordType::phase)) {
        if (p->phase == Phase::serving && serving_us_ < 0) serving_us_ = next_us_ = v.time_us;
        return;
    }
    if (serving_us_ < 0 || v.time_us < next_us_) return;
    const auto s = trace::record_of<trace::SampleRecord>(v, RecordType::sample);
    if (!s) return;
    rows_.push_back({static_cast<double>(v.time_us - serving_us_) * 1e-6, s->allocated.now, s->reserved.now,
                     s->device_used.now});
    const i64 every = std::max<i64>(every_us_, 1);
    next_us_ = serving_us_ + ((v.time_us - serving_us_) / every + 1) * every;
}

}  // namespace oomlab::diagnosis
