#include "ui/view_model/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace oomlab::view {
namespace {

u64 minus(u64 a, u64 b) { return a - std::min(a, b); }

const char* kind_words(trace::FailureKind kind) {
    switch (kind) {
        case trace::FailureKind::allocator_oom: return "the caching allocator gave up";
        case trace::FailureKind::device_oom: return "a driver call outside the allocator found no memory";
        case trace::FailureKind::cuda_error: return "a CUDA call failed, and not for want of memory";
        case trace::FailureKind::refused: return "the plan did not fit: the server refused";
        case trace::FailureKind::host_alloc: return "the host's allocator said no";
        case trace::FailureKind::internal: return "the server broke by itself";
    }
    return "";
}

}  // namespace

Explanation explain(const trace::FailureRecord& f) {
    Explanation e;
    const bool memory = f.kind == trace::FailureKind::allocator_oom ||
                        f.kind == trace::FailureKind::device_oom;
    e.asked_bytes = std::max({f.segment_bytes, f.rounded_bytes, f.requested_bytes});
    const u64 cached = minus(f.reserved_bytes, f.allocated_bytes);
    const u64 may_take = f.capped != 0 ? minus(f.limit_bytes, f.reserved_bytes) : f.device_free_bytes;
    e.short_by_bytes = memory ? minus(e.asked_bytes, may_take) : 0;

    const std::string who = f.request == trace::kNoRequest ? std::string("no single request")
                                                           : fmt::format("request {}", f.request);
    if (memory)
        e.headline = fmt::format("{} for {} ({}) during {}, {} short: {}.",
                                 human_bytes(f.requested_bytes), owner_name(f.owner), who,
                                 trace::phase_name(f.phase), human_bytes(e.short_by_bytes),
                                 kind_words(f.kind));
    else
        e.headline = fmt::format("{} ({}) during {}.", kind_words(f.kind), who,
                                 trace::phase_name(f.phase));
    if (f.kind == trace::FailureKind::cuda_error || f.kind == trace::FailureKind::internal) return e;

    e.lines.push_back({"asked of the driver", e.asked_bytes,
                       fmt::format("{} rounded to a segment", human_bytes(f.requested_bytes))});
    e.lines.push_back({"free on the device", f.device_free_bytes,
                       fmt::format("of {}", human_bytes(f.device_total_bytes))});
    if (f.capped != 0)
        e.lines.push_back({"the cap allows", may_take,
                           fmt::format("the limit is {}, not the card", human_bytes(f.limit_bytes))});
    e.lines.push_back({"largest hole in the cache", f.largest_free_block_bytes,
                       f.largest_free_block_bytes < f.rounded_bytes ? "too small for it" : ""});
    e.lines.push_back({"held by the cache", cached, "reserved - allocated"});
    e.lines.push_back({"outside the allocator", f.outside_bytes,
                       fmt::format("context {}, graphs {}", human_bytes(f.context_bytes),
                                   human_bytes(f.graph_bytes))});
    if (f.other_processes_bytes > 0)
        e.lines.push_back({"other processes", f.other_processes_bytes, "on the same card"});
    if (f.step_activation_bytes > 0)
        e.lines.push_back(
            {"activations of this step", f.step_activation_bytes,
             f.profiled_activation_bytes > 0
                 ? fmt::format("profiled {}", human_bytes(f.profiled_activation_bytes))
                 : std::string("before profiling")});

    return e;
}

Chart chart_of(const diagnosis::Diagnosis& d) {
    using Answer = ChartNode::Answer;
    Chart chart;
    chart.nodes = {{"Killed by the kernel?", "5  the host's memory", 5, Answer::not_asked, ""},
                   {"Another CUDA error?", "6  not memory at all", 6, Answer::not_asked, ""},
                   {"Before it served?", "1  it does not fit at load", 1, Answer::not_asked, ""},
                   {"Has a floor risen?", "4  leak or fragmentation", 4, Answer::not_asked, ""},
                   {"Activations > profile?", "2  activation spike", 2, Answer::not_asked, ""}};
    chart.otherwise = "3  KV pool, fragmentation";
    chart.type = d.type;
    if (d.type == 0) return chart;
    std::size_t said = 0;   // the diagnosis names the types before its own, in the same order
    for (ChartNode& node : chart.nodes) {
        if (node.type == d.type) {
            node.answer = Answer::yes;
            node.because = d.evidence.empty() ? d.summary : d.evidence.front();
            return chart;
        }
        node.answer = Answer::no;
        if (said < d.ruled_out.size()) node.because = d.ruled_out[said++];
    }
    return chart;
}

}  // namespace oomlab::view
