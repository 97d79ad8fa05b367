// Type 4: what grew, and how it is held.
#include "labs/diagnosis/judge_parts.hpp"

namespace oomlab::diagnosis {

namespace {

// One allocator quantum (a large segment), and more where the figure itself is lumpy.
constexpr u64 kAllocatedQuantum = 20 * kMiB;
constexpr u64 kGapQuantum = 64 * kMiB;
constexpr u64 kOutsideQuantum = 8 * kMiB;

u64 whole_growth(const FloorSeries& s) { return minus(s.last(), s.first()); }

Owner fastest_owner(const Life& life) {
    Owner best = Owner::unattributed;
    u64 most = 0;
    for (std::size_t o = 0; o < kOwners; ++o) {
        const Owner owner = static_cast<Owner>(o);
        if (owner == Owner::cached || owner == Owner::kv) continue;
        const u64 grown = whole_growth(life.owner[o]);
        if (grown > most) {
            most = grown;
            best = owner;
        }
    }
    return best;
}

void describe_retained(const Life& life, Growth& g) {
    if (!life.retained || life.retained->bytes == 0) return;
    const Retained& r = *life.retained;
    g.retained_bytes = r.bytes;
    g.retained_requests = r.requests;
    if (r.requests > 0 && r.cancelled_requests == r.requests && r.ended_cancelled < r.ended_requests) {
        g.pattern = "cancelled requests only";
    } else if (r.requests * 100 >= r.ended_requests * 95 && !r.truncated) {
        g.pattern = "every request";
    } else {
        g.pattern = "a share of the requests";
    }
    // Proportional to the prompt: within rounding to 512 bytes, while the blocks themselves differ.
    g.sized_by_prompt = r.requests >= 4 && r.largest_block_bytes > 2 * r.smallest_block_bytes &&
                        r.per_prompt_token_high < 1.3 * r.per_prompt_token_low;
}

}  // namespace

const char* growing_name(Growing what) {
    switch (what) {
        case Growing::nothing: return "nothing";
        case Growing::allocated: return "allocated";
        case Growing::gap: return "reserved - allocated";
        case Growing::outside: return "use outside the allocator";
    }
    return "";
}

Growth growth_of(const Life& life, u64 short_by_bytes) {
    Growth g;
    const auto matters = [&](const FloorSeries& s) { return whole_growth(s) >= short_by_bytes; };
    const Rise allocated = rise_of(life.allocated, kAllocatedQuantum);
    const Rise gap = rise_of(life.gap, kGapQuantum);
    const Rise outside = rise_of(life.outside, kOutsideQuantum);
    // Blocks of requests that have ended prove a leak before a trend can.
    const bool held = life.retained && life.retained->bytes > kAllocatedQuantum &&
                      life.retained->bytes >= short_by_bytes && life.retained->requests >= 2;
    if ((allocated.risen && matters(life.allocated)) || held) {
        g.what = Growing::allocated;
        g.rise = allocated;
        if (!allocated.risen) {
            g.rise.from_bytes = life.allocated.first();
            g.rise.to_bytes = life.allocated.last();
            g.rise.completed = life.retained->ended_requests;
        }
        g.owner = fastest_owner(life);
        describe_retained(life, g);
        if (g.pattern.empty()) g.pattern = "no request";
    } else if (outside.risen || outside.level_change) {
        // It is flat in a healthy server, so one step counts as well.
        if (matters(life.outside)) {
            g.what = Growing::outside;
            g.rise = outside;
            g.owner = fastest_owner(life);
        }
    }
    if (g.what == Growing::nothing && gap.risen && matters(life.gap)) {
        g.what = Growing::gap;
        g.rise = gap;
        g.owner = Owner::cached;
    }
    return g;
}

void judge_growth(const Case& c, const Growth& g, Diagnosis& d) {
    const Rise& r = g.rise;
    d.evidence.push_back(fmt::format(
        "{} between steps rose from {} to {} over {} completed requests ({:.0f} minutes): {} a request, {} an hour",
        growing_name(g.what), human_bytes(r.from_bytes), human_bytes(r.to_bytes), r.completed, r.seconds / 60,
        human_bytes(whole_bytes(r.bytes_per_request)),
        human_bytes(whole_bytes(r.bytes_per_hour))));
    d.confidence = r.risen ? 0.95 : 0.8;
    if (g.what == Growing::gap) {
        d.cause = "fragmentation_growth";
        d.evidence.push_back(fmt::format(
            "{} reserved against {} allocated, and the largest hole is {}: free memory that no request can use",
            human_bytes(c.f.reserved_bytes), human_bytes(c.f.allocated_bytes), human_bytes(c.f.largest_free_block_bytes)));
        d.summary = fmt::format("{} of holes: reserved - allocated grows, allocated does not", human_bytes(c.gap_bytes()));
        return;
    }
    if (g.what == Growing::outside) {
        d.cause = "growth_outside_allocator";
        d.evidence.push_back(fmt::format("allocated stayed at {} and reserved - allocated did not rise: the allocator is not it",
                                         human_bytes(c.life.allocated.last())));
        const u64 others = minus(c.life.others.last(), c.life.others.first());
        if (others * 2 > r.grown_bytes()) {
            d.evidence.push_back(fmt::format("{} of it is held by other processes: nvidia-smi --query-compute-apps names them",
                                             human_bytes(others)));
        }
        d.summary = fmt::format("{} more is used on the device than the allocator knows of", human_bytes(whole_growth(c.life.outside)));
        return;
    }
    const bool anonymous = g.retained_bytes * 4 < r.grown_bytes();
    d.cause = anonymous && g.owner == Owner::workspace ? "cache_without_eviction" : "leak_retained_requests";
    if (g.owner != Owner::unattributed) {
        d.evidence.push_back(fmt::format("the owner that grew is {}: {} -> {}", owner_name(g.owner),
                                         human_bytes(c.life.owner[index(g.owner)].first()),
                                         human_bytes(c.life.owner[index(g.owner)].last())));
    }
    if (!anonymous && c.life.retained) {
        const Retained& held = *c.life.retained;
        d.evidence.push_back(fmt::format(
            "{} in {} blocks carries the label of {} requests that have ended, of {} ({}{}){}",
            human_bytes(held.bytes), held.blocks, held.requests, held.ended_requests, g.pattern,
            g.sized_by_prompt ? ", in proportion to their prompts" : "",
            held.truncated ? "; the map had a ceiling, so it is more" : ""));
        d.confidence = 0.99;
    } else if (d.cause == "cache_without_eviction") {
        d.evidence.push_back("what grew belongs to no request: something that outlives them all, and is never emptied");
    }
    const u64 held_bytes = anonymous ? whole_growth(c.life.allocated) : g.retained_bytes;
    d.summary = fmt::format("{} is still held after the work it was for: allocated grows by {} with every thousand requests",
                            human_bytes(held_bytes),
                            human_bytes(whole_bytes(1000 * r.bytes_per_request)));
}

}  // namespace oomlab::diagnosis
