// Type 4: figures over time. Which one rises, and which stays flat, is the cause.
#include <fmt/format.h>

#include "kernels/base/bytes.hpp"
#include "labs/field/triage/judge.hpp"

namespace oomlab::triage {
namespace {

using S = Signal;
using C = Cause;
using K = Series::Kind;

}  // namespace

void judge_growth(Case& c) {
    const Facts& f = c.facts;
    const SeriesBook& book = f.series;
    const Series* host = book.rising(K::host);
    const Series* device = book.rising(K::device);
    const Series* allocated = book.rising(K::allocated);
    const Series* reserved = book.rising(K::reserved);
    const auto figure = [&](const Series& s, std::string_view what) {
        c.figures.push_back(fmt::format("{} '{}' rose from {} to {} over {} samples", what, s.key,
                                        human_bytes(static_cast<u64>(s.best.first)),
                                        human_bytes(static_cast<u64>(s.best.last)),
                                        s.best.samples));
    };
    if (allocated) {
        Claim& k = c.claim(C::leak_retained_requests, 84);
        c.prove_series(k, *allocated,
                       "live allocations rise: something keeps what should have been freed");
        figure(*allocated, "allocated");
    } else if (reserved) {
        const bool flat = book.flat(K::allocated);
        Claim& k = c.claim(C::fragmentation_growth, flat ? 90 : 68);
        c.prove_series(k, *reserved,
                       flat ? "reserved rises while allocated is flat: holes" : "reserved rises");
        figure(*reserved, "reserved");
    }
    if (device && !allocated && !reserved) {
        // Flat allocator figures beside a rising device: the growth is outside of them.
        const bool outside = book.flat(K::allocated) || book.flat(K::reserved);
        Claim& k = c.claim(outside ? C::growth_outside_allocator : C::leak_retained_requests,
                           outside ? 90 : 72);
        c.prove_series(k, *device,
                       outside ? "the device's use rises while the allocator's figures are flat"
                               : "the device's use rises");
        figure(*device, "device memory");
        if (!f.torch.empty()) Case::prove(k, f.torch.front(), "the end of the growth");
    }
    if (host) {
        const Fact* cache = f.find(S::host_cache, [](const Fact& e) {
            return mentions(e, "rocessor") || mentions(e, "input_cache") || mentions(e, "mm_");
        });
        const Fact* entries = f.first(S::cached_entries);
        Claim& k = c.claim(C::host_memory_growth, 4, 84);
        Case::prove(k, f.find(S::host_cache, [](const Fact&) { return true; }));
        c.prove_series(k, *host, "resident host memory rises");
        figure(*host, "host memory");
        if (!device && book.flat(K::device))
            c.rule_out(C::leak_retained_requests,
                       "device memory is flat: the growth is on the host");
        if (cache || entries) {
            Claim& e = c.claim(C::cache_without_eviction, 86);
            Case::prove(e, cache);
            Case::prove(e, entries);
            c.prove_series(e, *host, "it grows with what is cached");
        }
    }
    if (const Fact* x = f.first(S::retained)) {
        const Fact* last = f.last(S::retained);
        const bool rising = f.count(S::retained) >= 3 && last->number(0) > x->number(0) * 1.2;
        Claim& k = c.claim(C::leak_retained_requests, rising || device || allocated ? 88 : 42);
        c.prove_all(k, S::retained);
        if (host && rising) {
            Claim& e = c.claim(C::host_memory_growth, 4, 86);
            c.prove_all(e, S::retained);
        }
    }
    // Counts of a cache that only rise, with memory or without.
    const auto& shelf = f.shelf(S::cached_entries);
    if (shelf.count >= 3) {
        const Fact* first = f.first(S::cached_entries);
        const Fact* last = f.last(S::cached_entries);
        bool rising = last->number(0) > first->number(0) * 1.2;
        for (std::size_t i = 1; rising && i < shelf.first.size(); ++i)
            rising = shelf.first[i].number(0) >= shelf.first[i - 1].number(0);
        if (rising) {
            Claim& k = c.claim(C::cache_without_eviction, host || device || allocated ? 90 : 72);
            c.prove_all(k, S::cached_entries);
            if (allocated) c.prove_series(k, *allocated, "memory rises with it");
            if (device) c.prove_series(k, *device, "memory rises with it");
        }
    }
}

}  // namespace oomlab::triage
