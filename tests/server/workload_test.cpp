#include <doctest/doctest.h>

#include <cmath>

#include "labs/server/schedule/gateway.hpp"
#include "labs/server/schedule/workload.hpp"

using namespace oomlab;
using namespace oomlab::server;

namespace {
Scenario::Workload stream(double rate, double duration) {
    Scenario::Workload w;
    w.arrival_rate = {{0, rate}};
    w.duration_s = duration;
    w.prompt_tokens.value = 100;
    w.output_tokens.value = 10;
    return w;
}
std::vector<Arrival> all(Workload& w) {
    std::vector<Arrival> out;
    while (w.next_at() < 1e300) out.push_back(w.pop());
    return out;
}
}  // namespace

TEST_CASE("workload: a Poisson stream has its rate and comes in order") {
    auto spec = stream(5, 3600);
    Workload w(spec);
    const auto list = all(w);
    // 18,000 expected, standard deviation 134: five of them.
    CHECK(std::abs(static_cast<double>(list.size()) - 18000) < 671);
    for (std::size_t i = 1; i < list.size(); ++i) REQUIRE(list[i - 1].at_s <= list[i].at_s);
    CHECK(list.back().at_s <= 3600);
}

TEST_CASE("workload: even arrivals are even") {
    auto spec = stream(4, 2);
    spec.poisson = false;
    Workload w(spec);
    const auto list = all(w);
    REQUIRE(list.size() == 8);
    CHECK(list[0].at_s == doctest::Approx(0.25));
    CHECK(list[7].at_s == doctest::Approx(2.0));
}

TEST_CASE("workload: a ramp doubles the arrivals of its second half") {
    auto spec = stream(0, 3600);
    spec.arrival_rate = {{0, 0}, {3600, 8}};
    Workload w(spec);
    const auto list = all(w);
    std::size_t early = 0;
    for (const auto& a : list) early += a.at_s < 1800 ? 1 : 0;
    // Integral of 8 t / 3600: 3,600 in the first half, 14,400 in all.
    CHECK(std::abs(static_cast<double>(early) - 3600) < 300);
    CHECK(std::abs(static_cast<double>(list.size()) - 14400) < 600);
}

TEST_CASE("workload: planned requests mix with the stream, and lengths do not move arrivals") {
    auto spec = stream(2, 60);
    PlannedRequest p;
    p.at_s = 30;
    p.prompt_tokens = 23000;
    p.output_tokens = 1;
    p.count = 3;
    p.every_s = 5;
    spec.requests = {p};
    Workload a(spec);
    const auto first = all(a);
    std::vector<double> long_ones;
    for (const auto& r : first) {
        if (r.prompt_tokens == 23000) long_ones.push_back(r.at_s);
    }
    CHECK(long_ones == std::vector<double>{30, 35, 40});
    spec.prompt_tokens = TokenDist{TokenDist::Kind::uniform, 0, 0, 0, 1, 50, {}};
    Workload b(spec);
    const auto second = all(b);
    REQUIRE(first.size() == second.size());
    for (std::size_t i = 0; i < first.size(); ++i) REQUIRE(first[i].at_s == second[i].at_s);
}

TEST_CASE("workload: a closed loop keeps its clients busy") {
    Scenario::Workload spec;
    spec.concurrency = 3;
    spec.duration_s = 10;
    spec.prompt_tokens.value = 5;
    spec.output_tokens.value = 5;
    Workload w(spec);
    for (int i = 0; i < 3; ++i) CHECK(w.pop().at_s == 0);
    CHECK(w.next_at() >= 1e300);
    w.finished(2.5);
    CHECK(w.next_at() == 2.5);
    w.pop();
    w.finished(11);   // the hour is over: nobody asks again
    CHECK(w.next_at() >= 1e300);
}

TEST_CASE("gateway: every cap says its limit") {
    Scenario::Gateway g;
    g.max_input_tokens = 32000;
    g.max_n = 2;
    g.max_concurrent_requests = 10;
    g.deny = {*parse_gateway_rule("prompt_tokens > 28000")};
    Arrival a;
    a.prompt_tokens = 33000;
    a.output_tokens = 10;
    CHECK(judge(g, a, 131072, 0)->message.find("32000") != std::string::npos);
    CHECK(judge(g, a, 131072, 0)->http_status == 400);
    a.prompt_tokens = 30000;
    CHECK(judge(g, a, 131072, 0)->message.find("28000") != std::string::npos);
    a.prompt_tokens = 100;
    CHECK_FALSE(judge(g, a, 131072, 0).has_value());
    CHECK(judge(g, a, 131072, 10)->http_status == 429);
    CHECK(judge(g, a, 100, 0)->message.find("maximum context length is 100") != std::string::npos);
    a.n = 3;
    CHECK(judge(g, a, 131072, 0).has_value());
}
