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

    if (!memory) return e;
    const auto offer = [&](u64 bytes, std::string what) {
        if (bytes > 0) e.remedies.push_back({std::move(what), bytes, bytes >= e.short_by_bytes});
    };
    const auto owned = [&](Owner o) { return f.owner_bytes[static_cast<std::size_t>(o)]; };
    if (f.profiled_activation_bytes > 0)
        offer(minus(f.step_activation_bytes, f.profiled_activation_bytes),
              "bound each step to what was profiled (enable_chunked_prefill, or cap the prompt)");
    // A retry has emptied whole segments; what the cache still holds is the rest of split ones.
    offer(cached, "leave no holes (expandable_segments:True in PYTORCH_ALLOC_CONF)");
    offer(f.other_processes_bytes, "give the card to this server alone");
    offer(minus(f.outside_bytes, f.context_bytes), "stop the growth outside the allocator");
    offer(f.graph_bytes, "capture fewer graphs (cudagraph_capture_sizes, enforce_eager)");
    if (f.capped != 0) offer(minus(f.device_free_bytes, may_take), "raise the process's own cap");
    if (f.phase < trace::Phase::serving)
        offer(owned(Owner::weights) / 2, "hold the weights in half the bits (quantization)");
    if (f.device_total_bytes > 0 && owned(Owner::kv) > 0) {
        // Utilization is set in hundredths: the smallest step that covers what was missing.
        const u64 hundredth = div_ceil(f.device_total_bytes, 100);
        const u64 steps = std::max<u64>(1, div_ceil(e.short_by_bytes, hundredth));
        if (steps * hundredth <= owned(Owner::kv))
            offer(steps * hundredth,
                  fmt::format("lower gpu_memory_utilization by 0.{:02} (a smaller KV pool)", steps));
    }
    std::stable_sort(e.remedies.begin(), e.remedies.end(),
                     [](const Remedy& a, const Remedy& b) { return a.frees_bytes > b.frees_bytes; });
    return e;
}

Chart decide(const trace::FailureRecord* failure, bool host_killed, bool grown,
             const std::string& grown_because) {
    using Answer = ChartNode::Answer;
    Chart chart;
    chart.nodes = {{"Killed by the kernel?", "5  the host's memory", 5, Answer::not_asked, ""},
                   {"Another CUDA error?", "6  not memory at all", 6, Answer::not_asked, ""},
                   {"Before it served?", "1  it does not fit at load", 1, Answer::not_asked, ""},
                   {"Has a floor risen?", "4  leak or fragmentation", 4, Answer::not_asked, ""},
                   {"Activations > profile?", "2  activation spike", 2, Answer::not_asked, ""}};
    chart.otherwise = "3  KV pool, fragmentation";
    if (failure == nullptr && !host_killed) return chart;
    const trace::FailureRecord f = failure != nullptr ? *failure : trace::FailureRecord{};
    const bool memory = failure != nullptr && (f.kind == trace::FailureKind::allocator_oom ||
                                               f.kind == trace::FailureKind::device_oom ||
                                               f.kind == trace::FailureKind::refused);
    const std::string phase = trace::phase_name(f.phase);
    const bool spike = f.profiled_activation_bytes > 0 &&
                       f.step_activation_bytes > f.profiled_activation_bytes;
    struct Said {
        bool yes;
        std::string because;
    };
    const std::array<Said, 5> said = {{
        {host_killed, host_killed ? "the kernel's own record" : "it could still speak"},
        {!memory || f.sticky != 0, !memory ? "the call that failed is not about memory"
                                           : (f.sticky != 0 ? "the error is sticky" : "out of memory")},
        {f.phase < trace::Phase::serving, "phase " + phase},
        {grown, grown ? grown_because : "no floor rose"},
        {spike, fmt::format("{} against {} profiled", human_bytes(f.step_activation_bytes),
                            human_bytes(f.profiled_activation_bytes))},
    }};
    for (std::size_t i = 0; i < said.size(); ++i) {
        chart.nodes[i].answer = said[i].yes ? Answer::yes : Answer::no;
        chart.nodes[i].because = said[i].because;
        if (said[i].yes) {
            chart.type = chart.nodes[i].type;
            return chart;
        }
    }
    chart.type = 3;
    return chart;
}

}  // namespace oomlab::view
