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
}  // namespace

TEST_CASE("why: what was missing, in the order in which a person asks") {
    const Explanation e = explain(spike());
    CHECK(e.asked_bytes == 3 * kGiB);
    CHECK(e.short_by_bytes == 2 * kGiB);
    REQUIRE(e.lines.size() == 6);
    CHECK(e.lines[0].bytes == 3 * kGiB);
    CHECK(e.lines[1].bytes == kGiB);
    CHECK(e.lines[3].bytes == kGiB);   // held by the cache
    CHECK(e.headline.find("request 42") != std::string::npos);
    CHECK(e.headline.find("2 GiB short") != std::string::npos);
}

TEST_CASE("why: a cap below the card is what it was measured against") {
    trace::FailureRecord f = spike();
    f.capped = 1;
    f.limit_bytes = 72 * kGiB;
    f.device_free_bytes = 9 * kGiB;
    CHECK(explain(f).short_by_bytes == 2 * kGiB);
}

TEST_CASE("why: an error that is not memory has no bytes to show") {
    trace::FailureRecord f{};
    f.kind = trace::FailureKind::cuda_error;
    f.code = 700;
    f.sticky = 1;
    const Explanation e = explain(f);
    CHECK(e.lines.empty());
    CHECK(e.headline.find("not for want of memory") != std::string::npos);
}

TEST_CASE("chart: lit up to the diagnosis's type, with what was ruled out on the way") {
    using Answer = ChartNode::Answer;
    diagnosis::Diagnosis d;
    CHECK(chart_of(d).nodes[0].answer == Answer::not_asked);
    d.type = 2;
    d.evidence = {"11 GiB against 2 GiB profiled"};
    d.ruled_out = {"5: no kill", "6: out of memory", "1: it was serving", "4: no floor rose"};
    const Chart c = chart_of(d);
    CHECK(c.type == 2);
    for (std::size_t i = 0; i < 4; ++i) CHECK(c.nodes[i].answer == Answer::no);
    CHECK(c.nodes[3].because == "4: no floor rose");
    CHECK(c.nodes[4].answer == Answer::yes);
    CHECK(c.nodes[4].because == "11 GiB against 2 GiB profiled");
    d.type = 5;
    const Chart killed = chart_of(d);
    CHECK(killed.nodes[0].answer == Answer::yes);
    CHECK(killed.nodes[1].answer == Answer::not_asked);
    d.type = 3;
    for (const ChartNode& n : chart_of(d).nodes) CHECK(n.answer == Answer::no);
}
