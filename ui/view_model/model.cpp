#include "ui/view_model/model.hpp"

#include "labs/trace/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace oomlab::view {
namespace {

constexpr std::size_t kMostFailures = 4096;
constexpr std::size_t kMostTexts = 200'000;
constexpr std::size_t kMostTextBytes = 32 * kMiB;

// Text from a file goes to a screen: control characters become spaces, lines stay lines.
std::string printable(std::string_view text) {
    std::string out(text.substr(0, 64 * kKiB));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
    return out;
}

RunFacts parse_run_info(std::string_view text) {
    RunFacts facts;
    facts.known = true;
    facts.json = printable(text);
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return facts;
    const auto word = [&](const nlohmann::json& in, const char* key) -> std::string {
        const auto at = in.find(key);
        return at != in.end() && at->is_string() ? printable(at->get<std::string>()) : "";
    };
    const auto yes = [](const nlohmann::json& in, const char* key) {
        const auto at = in.find(key);
        return at != in.end() && at->is_boolean() && at->get<bool>();
    };
    facts.simulated = yes(json, "simulated");
    facts.device_name = word(json, "device_name");
    const auto device = json.find("device");
    if (device != json.end() && device->is_object()) {
        if (facts.device_name.empty()) facts.device_name = word(*device, "name");
        facts.simulated = facts.simulated || yes(*device, "simulated");
    } else if (facts.device_name.empty()) {
        facts.device_name = word(json, "device");
    }
    facts.model_name = word(json, "model");
    const auto model = json.find("model");
    if (model != json.end() && model->is_object()) facts.model_name = word(*model, "name");
    return facts;
}

bool memory_failure(const trace::FailureRecord& f) {
    return f.kind == trace::FailureKind::allocator_oom || f.kind == trace::FailureKind::device_oom;
}

EventKind request_kind(trace::RequestEvent event) {
    switch (event) {
        case trace::RequestEvent::arrival: return EventKind::arrival;
        case trace::RequestEvent::admission: return EventKind::admission;
        case trace::RequestEvent::rejection: return EventKind::rejection;
        case trace::RequestEvent::preemption: return EventKind::preemption;
        case trace::RequestEvent::completion: return EventKind::completion;
        case trace::RequestEvent::cancelled: return EventKind::cancelled;
        case trace::RequestEvent::failed: return EventKind::request_failed;
        case trace::RequestEvent::first_token: return EventKind::first_token;
    }
    return EventKind::arrival;
}

}  // namespace

const char* health_word(Health health) {
    switch (health) {
        case Health::no_data: return "NO DATA";
        case Health::loading: return "LOADING";
        case Health::ok: return "OK";
        case Health::tight: return "TIGHT";
        case Health::oom: return "OOM";
        case Health::killed: return "KILLED 137";
        case Health::error: return "CUDA ERROR";
        case Health::refused: return "REFUSED";
        case Health::recovering: return "RECOVERING";
        case Health::ended: return "ENDED";
    }
    return "";
}

void Model::fold(const trace::RecordView& given) {
    ++revision_;
    run_.fold(given);
    trace::RecordView record = given;
    // A server that was started again writes on into the same file with a clock that begins anew.
    const bool begins = record.type == trace::RecordType::run_info ||
                        record.type == trace::RecordType::phase;
    if (any_ && begins && record.time_us + restart_us_ < last_us_)
        restart_us_ = last_us_ - record.time_us;
    record.time_us += restart_us_;
    if (!any_) first_us_ = record.time_us;
    any_ = true;
    last_us_ = record.time_us = std::max(last_us_, record.time_us);
    Event event;
    event.time_us = record.time_us;
    switch (record.type) {
        case trace::RecordType::run_info: {
            // The JSON stands after whatever fixed part a writer puts in front of it.
            const std::string_view text = record.text();
            const std::size_t brace = text.find('{');
            facts_ = parse_run_info(brace == std::string_view::npos ? text : text.substr(brace));
            return;
        }
        case trace::RecordType::phase:
            if (const auto r = record.as<trace::PhaseRecord>();
                r && r->phase < trace::Phase::count_) {
                phases_.push_back({r->phase, record.time_us});
                serving_ = r->phase == trace::Phase::serving;
                event.kind = EventKind::phase;
                event.code = static_cast<std::uint16_t>(r->phase);
                add_event(event);
            }
            return;
        case trace::RecordType::budget:
            if (const auto r = record.as<trace::BudgetRecord>()) {
                budget_ = *r;
                event.kind = EventKind::budget;
                event.owner = Owner::kv;
                event.bytes = r->available_kv_bytes > 0 ? static_cast<u64>(r->available_kv_bytes) : 0;
                event.extra = static_cast<u32>(std::min<u64>(r->num_gpu_blocks, UINT32_MAX));
                add_event(event);
            }
            return;
        case trace::RecordType::sample:
            if (const auto r = record.as<trace::SampleRecord>()) add_sample(record.time_us, *r);
            return;
        case trace::RecordType::request:
            if (const auto r = record.as<trace::RequestRecord>()) {
                event.kind = request_kind(r->event);
                event.request = r->request;
                event.detail = r->prompt_tokens;
                event.after_bytes = r->event == trace::RequestEvent::preemption
                                        ? r->recomputed_tokens : r->output_tokens;
                event.code = r->http_status;
                event.extra = r->kv_blocks;
                event.owner = Owner::kv;
                add_event(event);
            }
            return;
        case trace::RecordType::segment:
            if (const auto r = record.as<trace::SegmentRecord>()) {
                const bool grew = r->event == trace::SegmentEvent::alloc ||
                                  r->event == trace::SegmentEvent::map;
                event.kind = grew ? EventKind::segment_alloc : EventKind::segment_free;
                event.bytes = r->bytes;
                event.after_bytes = r->reserved_after_bytes;
                event.owner = Owner::cached;
                add_event(event);
            }
            return;
        case trace::RecordType::retry:
            if (const auto r = record.as<trace::RetryRecord>()) {
                event.kind = EventKind::retry;
                event.bytes = r->asked_bytes;
                event.after_bytes = r->released_bytes;
                event.request = r->request;
                event.owner = static_cast<std::size_t>(r->owner) < kOwners ? r->owner
                                                                           : Owner::unattributed;
                event.code = r->succeeded;
                add_event(event);
            }
            return;
        case trace::RecordType::failure:
            if (const auto r = record.as<trace::FailureRecord>()) {
                FailureNote note{*r, record.time_us, "", events_.size()};
                if (static_cast<std::size_t>(note.record.owner) >= kOwners)
                    note.record.owner = Owner::unattributed;
                if (note.record.phase >= trace::Phase::count_) note.record.phase = trace::Phase::start;
                const auto tail = record.tail_after<trace::FailureRecord>();
                note.text = printable({reinterpret_cast<const char*>(tail.data()), tail.size()});
                event.kind = EventKind::failure;
                event.bytes = r->requested_bytes;
                event.after_bytes = r->largest_free_block_bytes;
                event.request = r->request;
                event.owner = note.record.owner;
                event.detail = static_cast<u32>(failures_.size());
                event.code = static_cast<std::uint16_t>(r->kind);
                if (failures_.size() < kMostFailures) failures_.push_back(std::move(note));
                add_event(event);
            }
            return;
        case trace::RecordType::outside:
            if (const auto r = record.as<trace::OutsideRecord>()) {
                event.kind = EventKind::outside;
                event.bytes = r->outside_bytes;
                event.after_bytes = r->other_processes_bytes;
                add_event(event);
            }
            return;
        case trace::RecordType::block_map:
            block_maps_.push_back({record.time_us, events_.size(), record.payload});
            return;
        case trace::RecordType::kv_map:
            kv_maps_.push_back({record.time_us, events_.size(), record.payload});
            return;
        case trace::RecordType::log: event.kind = EventKind::log; break;
        case trace::RecordType::memory_summary: event.kind = EventKind::summary; break;
        case trace::RecordType::action: event.kind = EventKind::action; break;
        case trace::RecordType::finish:
            if (const auto r = record.as<trace::FinishRecord>()) {
                finish_ = *r;
                event.kind = EventKind::finish;
                event.code = static_cast<std::uint16_t>(r->exit_status);
                add_event(event);
            }
            return;
        default: return;   // a newer writer's record, or one without a picture
    }
    event.detail = add_text(record.text());
    add_event(event);
}

void Model::forget_wall() {
    run_.begin_wall();
    signal_9_ = false;
    host_.reset();
}

void Model::fold_wall(const trace::RecordView& record) {
    ++revision_;
    run_.fold_wall(record);
    if (const auto r = trace::record_of<trace::ProcessRecord>(record, trace::RecordType::process))
        signal_9_ = signal_9_ || r->signal == 9;
    if (const auto r = trace::record_of<trace::HostSampleRecord>(record, trace::RecordType::host_sample)) host_ = *r;
}

bool Model::killed() const {
    return signal_9_ || run_.host.kernel_killed() || run_.host.outcome == "killed" || run_.host.signal == 9;
}

void Model::add_sample(i64 time_us, const trace::SampleRecord& s) {
    Bucket bucket;
    bucket.begin_us = tiers_.samples() == 0 ? time_us : previous_sample_us_;
    bucket.end_us = time_us;
    previous_sample_us_ = time_us;
    for (std::size_t o = 0; o < kOwners; ++o) {
        bucket.value[o] = s.owner[o];
        owner_peaks_[o] = std::max(owner_peaks_[o], s.owner[o].high);
    }
    const auto flat = [](u64 v) { return trace::Envelope{v, v, v}; };
    bucket.value[kAllocated] = s.allocated;
    bucket.value[kReserved] = s.reserved;
    bucket.value[kDeviceUsed] = s.device_used;
    bucket.value[kInactiveSplit] = flat(s.inactive_split_bytes);
    bucket.value[kKvUsed] = flat(s.kv_blocks_used);
    bucket.value[kRunning] = flat(s.running);
    bucket.value[kWaiting] = flat(s.waiting);
    bucket.value[kPreempted] = flat(s.preempted);
    used_peak_ = std::max(used_peak_, s.device_used.high);
    if (serving_)
        serving_activation_peak_ =
            std::max(serving_activation_peak_,
                     s.owner[static_cast<std::size_t>(Owner::activations)].high);
    if (s.total_bytes > 0) total_bytes_ = s.total_bytes;
    if (s.kv_blocks_total > 0) kv_blocks_total_ = s.kv_blocks_total;
    last_sample_ = s;
    tiers_.add(bucket);
}

void Model::add_event(Event event) {
    if (events_.size() >= kMostEvents) {
        const EventGroup group = event_group(event.kind);
        if (group == EventGroup::requests || group == EventGroup::talk ||
            events_.size() >= kMostEvents + kMostEvents / 4) {
            ++events_not_listed_;
            return;
        }
    }
    events_.push_back(event);
    if (event.kind == EventKind::preemption) preemption_times_us_.push_back(event.time_us);
}

u32 Model::add_text(std::string_view text) {
    const std::size_t size = std::min<std::size_t>(text.size(), 64 * kKiB);
    if (texts_.size() >= kMostTexts || text_bytes_ + size > kMostTextBytes) return UINT32_MAX;
    text_bytes_ += size;
    texts_.push_back(printable(text));
    return static_cast<u32>(texts_.size() - 1);
}

std::optional<Figures> Model::figures_at(i64 time_us) const {
    const auto bucket = tiers_.at(std::max(time_us, tiers_.first_us()));
    if (!bucket) return std::nullopt;
    Figures f;
    f.time_us = bucket->end_us;
    f.total_bytes = f.limit_bytes = total_bytes_;
    const auto now = [&](std::size_t c) { return bucket->value[c].now; };
    for (std::size_t o = 0; o < kOwners; ++o) f.owner_bytes[o] = now(o);
    f.used_bytes = now(kDeviceUsed);
    f.allocated_bytes = now(kAllocated);
    f.reserved_bytes = now(kReserved);
    f.inactive_split_bytes = now(kInactiveSplit);
    f.kv_blocks_used = now(kKvUsed);
    f.kv_blocks_total = kv_blocks_total_;
    f.running = now(kRunning);
    f.waiting = now(kWaiting);
    return f;
}

trace::Phase Model::phase_at(i64 time_us) const {
    trace::Phase phase = trace::Phase::start;
    for (const PhaseMark& mark : phases_)
        if (mark.time_us <= time_us) phase = mark.phase;
    return phase;
}

const FailureNote* Model::failure_at(i64 time_us) const {
    const FailureNote* found = nullptr;
    for (const FailureNote& note : failures_)
        if (note.time_us <= time_us) found = &note;
    return found;
}

Health Model::health_at(i64 time_us) const {
    if (!any_) return Health::no_data;
    if (killed() && time_us >= last_us_) return Health::killed;
    const trace::Phase phase = phase_at(time_us);
    const FailureNote* failure = failure_at(time_us);
    if (failure != nullptr) {
        // A server that began again after the failure is recovering until it serves.
        i64 restarted_us = -1;
        bool serves_again = false;
        for (const PhaseMark& mark : phases_) {
            if (mark.time_us > time_us || mark.time_us <= failure->time_us) continue;
            if (mark.phase == trace::Phase::start || mark.phase == trace::Phase::host_load)
                restarted_us = mark.time_us;
            if (mark.phase == trace::Phase::serving && restarted_us >= 0) serves_again = true;
        }
        if (restarted_us >= 0 && !serves_again) return Health::recovering;
        if (!serves_again) {
            if (memory_failure(failure->record)) return Health::oom;
            if (failure->record.kind == trace::FailureKind::refused) return Health::refused;
            return Health::error;
        }
    }
    if (finish_ && time_us >= last_us_) return finish_->exit_status == 0 ? Health::ended : Health::error;
    if (phase < trace::Phase::serving) return Health::loading;
    const auto figures = figures_at(time_us);
    if (!figures) return Health::loading;
    // Tight: less is left than one more step like the profiled one would take, or a fiftieth.
    const u64 step = budget_ ? budget_->activation_peak_bytes : 0;
    const u64 need = std::max(step, figures->limit_bytes / 50);
    return figures->headroom_bytes() < need ? Health::tight : Health::ok;
}

std::string_view Model::text_of(const Event& event) const {
    switch (event.kind) {
        case EventKind::log:
        case EventKind::summary:
        case EventKind::action:
            return event.detail < texts_.size() ? std::string_view(texts_[event.detail])
                                                : "(not kept: the list of texts is full)";
        case EventKind::failure:
            return event.detail < failures_.size() ? std::string_view(failures_[event.detail].text)
                                                   : "";
        default: return "";
    }
}

std::string Model::describe(const Event& e) const {
    switch (e.kind) {
        case EventKind::phase:
            return fmt::format("{} begins", trace::phase_name(static_cast<trace::Phase>(e.code)));
        case EventKind::arrival: return fmt::format("{} prompt tokens", e.detail);
        case EventKind::admission:
            return fmt::format("{} prompt tokens, {} KV blocks", e.detail, e.extra);
        case EventKind::first_token: return fmt::format("after {} prompt tokens", e.detail);
        case EventKind::completion:
            return fmt::format("{} + {} tokens, {} KV blocks back", e.detail, e.after_bytes, e.extra);
        case EventKind::rejection:
            return fmt::format("HTTP {}: {} prompt tokens", e.code, e.detail);
        case EventKind::preemption:
            return fmt::format("{} KV blocks taken back, {} tokens to recompute", e.extra, e.after_bytes);
        case EventKind::cancelled: return fmt::format("by the client, {} KV blocks", e.extra);
        case EventKind::request_failed: return fmt::format("{} prompt tokens", e.detail);
        case EventKind::segment_alloc:
            return fmt::format("{}, reserved {}", human_bytes(e.bytes), human_bytes(e.after_bytes));
        case EventKind::segment_free:
            return fmt::format("{} back, reserved {}", human_bytes(e.bytes), human_bytes(e.after_bytes));
        case EventKind::retry:
            return fmt::format("{} asked, cache gave back {}: {}", human_bytes(e.bytes),
                               human_bytes(e.after_bytes), e.code != 0 ? "it fitted" : "not enough");
        case EventKind::failure:
            return fmt::format("{} asked for {}, largest hole {}", human_bytes(e.bytes),
                               owner_name(e.owner), human_bytes(e.after_bytes));
        case EventKind::outside:
            return fmt::format("{} outside the allocator, others {}", human_bytes(e.bytes),
                               human_bytes(e.after_bytes));
        case EventKind::budget:
            return fmt::format("{} for the KV pool, {} blocks", human_bytes(e.bytes), e.extra);
        case EventKind::finish: return fmt::format("exit status {}", e.code);
        case EventKind::log:
        case EventKind::summary:
        case EventKind::action:
        case EventKind::process:
        case EventKind::control:
        case EventKind::evidence:
        case EventKind::count_: break;
    }
    const std::string_view text = text_of(e);
    return std::string(text.substr(0, text.find('\n')));
}

std::size_t Model::events_until(i64 time_us) const {
    const auto at = std::upper_bound(events_.begin(), events_.end(), time_us,
                                     [](i64 t, const Event& e) { return t < e.time_us; });
    return static_cast<std::size_t>(at - events_.begin());
}

const MapFrame* Model::nearest(const std::vector<MapFrame>& frames, i64 time_us) {
    if (frames.empty()) return nullptr;
    const auto at = std::upper_bound(frames.begin(), frames.end(), time_us,
                                     [](i64 t, const MapFrame& f) { return t < f.time_us; });
    return at == frames.begin() ? &frames.front() : &*(at - 1);
}

std::size_t Model::bytes_held() const {
    return tiers_.bytes_held() + events_.capacity() * sizeof(Event) + text_bytes_ +
           preemption_times_us_.capacity() * sizeof(i64) +
           (block_maps_.capacity() + kv_maps_.capacity()) * sizeof(MapFrame) +
           failures_.capacity() * sizeof(FailureNote);
}

}  // namespace oomlab::view
