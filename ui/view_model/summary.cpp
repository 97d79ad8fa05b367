#include "ui/view_model/summary.hpp"

namespace oomlab::view {
namespace {

// A rise that matters: a thousandth of the device over what was seen.
bool matters(const Growth& g, u64 total_bytes) {
    const double minutes = static_cast<double>(g.end_us - g.begin_us) / 60e6;
    return g.rising() && g.per_minute * minutes > static_cast<double>(total_bytes) / 1000;
}

// What stood at the failing call; the samples after it show memory that the dying step gave back.
void take_figures_of(const trace::FailureRecord& f, Figures& into) {
    if (f.device_total_bytes == 0 || f.reserved_bytes == 0) return;
    into.total_bytes = f.device_total_bytes;
    into.limit_bytes = f.capped != 0 && f.limit_bytes > 0 ? f.limit_bytes : f.device_total_bytes;
    into.used_bytes = f.device_total_bytes - std::min(f.device_total_bytes, f.device_free_bytes);
    into.allocated_bytes = f.allocated_bytes;
    into.reserved_bytes = f.reserved_bytes;
    into.inactive_split_bytes = f.inactive_split_bytes;
    into.kv_blocks_used = f.kv_blocks_used;
    into.owner_bytes = f.owner_bytes;
    u64& cached = into.owner_bytes[static_cast<std::size_t>(Owner::cached)];
    if (cached == 0) cached = into.cached_bytes();
}

}  // namespace

void summarise(const Model& model, i64 moment_us, Summary& s) {
    s = Summary();
    s.moment_us = moment_us;
    s.health = model.health_at(moment_us);
    s.figures = model.figures_at(moment_us);
    s.failure = model.failure_at(moment_us);
    if (s.health == Health::oom && s.figures && s.failure != nullptr) take_figures_of(s.failure->record, *s.figures);
    if (s.figures) {
        for (std::size_t o = 0; o < kOwners; ++o)
            if (s.figures->owner_bytes[o] > s.figures->owner_bytes[static_cast<std::size_t>(s.largest)])
                s.largest = static_cast<Owner>(o);
    }

    i64 serving_us = -1;
    for (const PhaseMark& mark : model.phases())
        if (mark.phase == trace::Phase::serving && mark.time_us <= moment_us) serving_us = mark.time_us;
    // What the failure itself left behind is not growth.
    const i64 end_us = s.failure != nullptr && s.failure->time_us >= serving_us
                           ? s.failure->time_us - 1 : moment_us;
    if (serving_us >= 0 && end_us > serving_us) {
        auto slice = model.tiers().slice(serving_us, end_us, 2048);
        // A coarse bucket may have begun while the server was still loading.
        std::erase_if(slice.buckets, [&](const Bucket& b) { return b.begin_us < serving_us; });
        s.allocated = growth(slice.buckets, GrowthOf::allocated);
        s.gap = growth(slice.buckets, GrowthOf::gap);
        s.outside = growth(slice.buckets, GrowthOf::outside);
        const std::pair<const Growth*, const char*> all[] = {
            {&s.allocated, "allocated"}, {&s.gap, "reserved - allocated"}, {&s.outside, "outside"}};
        for (const auto& [line, name] : all) {
            if (!matters(*line, model.total_bytes())) continue;
            if (s.leading != nullptr && s.leading->per_minute >= line->per_minute) continue;
            s.leading = line;
            s.leading_name = name;
        }
        if (s.leading != nullptr) {
            if (s.figures) {
                const u64 room = s.figures->headroom_bytes();
                s.full_us = end_us + static_cast<i64>(static_cast<double>(room) /
                                                      s.leading->per_minute * 60e6);
            }
        }
    }
    if (!model.run().lives.empty()) {
        constexpr std::size_t kBinsToSay = 8;
        s.floor = diagnosis::growth_of(model.run().lives.back(), 0);
        s.floor_known = model.run().lives.back().allocated.bins().size() >= kBinsToSay;
    }
    if (s.failure != nullptr) {
        s.why = explain(s.failure->record);
        const auto index = static_cast<std::size_t>(s.failure - model.failures().data());
        if (index < model.run().failures.size()) s.diagnosis = diagnosis::diagnose_failure(model.run(), index);
    }
    // The kernel's kill is known at the end, and then it is what the run died of.
    if (moment_us >= model.last_us() && (model.host_oom() || model.killed())) s.diagnosis = diagnosis::diagnose(model.run());
    s.chart = chart_of(s.diagnosis);
}

}  // namespace oomlab::view
