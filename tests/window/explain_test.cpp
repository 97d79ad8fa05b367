#include <doctest/doctest.h>

#include "ui/view_model/explain.hpp"

using namespace oomlab;
using namespace oomlab::view;

namespace {
// A prefill that wants 11 GiB of activations where 2 were profiled.
trace::FailureRecord spike() {
    trace::FailureRecord f{};
    f.kind = trace::FailureKind::allocator_oom;
    f.phase = trace::Phase::serving;
    f.owner = Owner::activations;
    f.request = 42;
    f.requested_bytes = f.rounded_bytes = f.segment_bytes = 3 * kGiB;
    f.device_total_bytes = 80 * kGiB;
    f.device_free_bytes = 1 * kGiB;
    f.allocated_bytes = 70 * kGiB;
    f.reserved_bytes = 71 * kGiB;
    f.context_bytes = kGiB;
    f.outside_bytes = kGiB;
    f.step_activation_bytes = 11 * kGiB;
    f.profiled_activation_bytes = 2 * kGiB;
    f.owner_bytes[static_cast<std::size_t>(Owner::kv)] = 40 * kGiB;
    return f;
}
const Remedy* remedy(const Explanation& e, const char* part) {
    for (const Remedy& r : e.remedies)
        if (r.what.find(part) != std::string::npos) return &r;
    return nullptr;
}
}  // namespace

TEST_CASE("why: what was missing, and the cures by bytes") {
    const Explanation e = explain(spike());
    CHECK(e.asked_bytes == 3 * kGiB);
    CHECK(e.short_by_bytes == 2 * kGiB);
    REQUIRE(e.remedies.size() >= 3);
    CHECK(e.remedies[0].frees_bytes == 9 * kGiB);
    CHECK(e.remedies[0].what.find("enable_chunked_prefill") != std::string::npos);
    CHECK(e.remedies[0].enough);
    for (std::size_t i = 1; i < e.remedies.size(); ++i)
        CHECK(e.remedies[i].frees_bytes <= e.remedies[i - 1].frees_bytes);
    CHECK(e.headline.find("request 42") != std::string::npos);
}

TEST_CASE("why: the cache's last GiB alone would not have been enough") {
    const Explanation e = explain(spike());
    const Remedy* holes = remedy(e, "expandable_segments");
    REQUIRE(holes != nullptr);
    CHECK(holes->frees_bytes == kGiB);
    CHECK_FALSE(holes->enough);
}

TEST_CASE("why: utilization is lowered by the smallest hundredth that covers what was missing") {
    const Explanation e = explain(spike());   // 0.8 GiB a hundredth: three cover 2 GiB
    const Remedy* pool = remedy(e, "gpu_memory_utilization by 0.03");
    REQUIRE(pool != nullptr);
    CHECK(pool->enough);
}

TEST_CASE("why: a cap below the card is what it was measured against") {
    trace::FailureRecord f = spike();
    f.capped = 1;
    f.limit_bytes = 72 * kGiB;
    f.device_free_bytes = 9 * kGiB;
    const Explanation e = explain(f);
    CHECK(e.short_by_bytes == 2 * kGiB);
    const Remedy* cap = remedy(e, "own cap");
    REQUIRE(cap != nullptr);
    CHECK(cap->frees_bytes == 8 * kGiB);
}

TEST_CASE("why: an error that is not memory offers no bytes") {
    trace::FailureRecord f{};
    f.kind = trace::FailureKind::cuda_error;
    f.code = 700;
    f.sticky = 1;
    const Explanation e = explain(f);
    CHECK(e.remedies.empty());
    CHECK(e.lines.empty());
    CHECK(e.headline.find("not for want of memory") != std::string::npos);
}

TEST_CASE("chart: the questions are asked in the contract's order") {
    trace::FailureRecord f = spike();
    CHECK(decide(&f, false, false, "").type == 2);
    CHECK(decide(&f, false, true, "allocated").type == 4);
    CHECK(decide(&f, true, true, "allocated").type == 5);
    f.step_activation_bytes = kGiB;
    CHECK(decide(&f, false, false, "").type == 3);
    f.phase = trace::Phase::weights;
    CHECK(decide(&f, false, true, "allocated").type == 1);
    f.sticky = 1;
    CHECK(decide(&f, false, true, "allocated").type == 6);
    CHECK(decide(nullptr, false, false, "").type == 0);
    const Chart killed = decide(nullptr, true, false, "");
    CHECK(killed.type == 5);
    CHECK(killed.nodes[0].answer == ChartNode::Answer::yes);
    CHECK(killed.nodes[1].answer == ChartNode::Answer::not_asked);
}
