// The given incidents, with and without the reporter's remark: how often type, cause and a line of
// evidence are right. The material stands beside the checkout; without it the cases say so.
#include <doctest/doctest.h>

#include <cstdio>
#include <functional>
#include <map>

#include "tests/field/triage_support.hpp"

using namespace oomlab;
using namespace oomlab::triage_test;

namespace {

std::vector<Case> incidents() {
    return read_index(OOMLAB_SOURCE_DIR "/../shared/field/incidents", {0, 2, 3, 5});
}

struct Score {
    std::size_t all = 0, type = 0, cause = 0, line = 0;
};

Score score(const std::vector<Case>& cases,
            const std::function<std::string(const std::string&)>& transform, bool talk) {
    Score s;
    std::map<std::string, std::map<std::string, int>> confusion;
    for (const Case& c : cases) {
        const auto report = triage::triage_text(transform(c.text));
        const Verdict v = judge(c, report);
        ++s.all;
        s.type += v.type;
        s.cause += v.cause;
        s.line += v.line;
        const std::string got = report.type ? std::to_string(*report.type) : "?";
        ++confusion[v.type ? got : c.types.front()][got];
        if (talk && !(v.type && v.cause && v.line))
            std::printf("  %s: wanted %s %s, got %s %s%s\n", c.name.c_str(),
                        c.types.front().c_str(), c.causes.front().c_str(), got.c_str(),
                        report.cause.c_str(), v.line ? "" : ", no true line");
    }
    if (talk) {
        std::printf("right \\ said   1   2   3   4   5   6   ?\n");
        for (const char* right : {"1", "2", "3", "4", "5", "6"}) {
            std::printf("     %s      ", right);
            for (const char* said : {"1", "2", "3", "4", "5", "6", "?"})
                std::printf("%4d", confusion[right][said]);
            std::printf("\n");
        }
        std::printf("type %zu/%zu, cause %zu/%zu, a true line %zu/%zu\n", s.type, s.all, s.cause,
                    s.all, s.line, s.all);
    }
    return s;
}

std::string same(const std::string& text) {
    return text;
}

}  // namespace

TEST_CASE("incidents: type cause and evidence are right often enough with and without notes") {
    auto cases = incidents();
    if (cases.empty()) {
        MESSAGE("skipped: ../shared/field/incidents is not beside this checkout");
        return;
    }
    for (const bool note : {true, false}) {
        if (!note) std::transform(cases.begin(), cases.end(), cases.begin(), without_note);
        std::printf("incidents %s notes\n", note ? "with" : "without");
        const Score s = score(cases, same, true);
        CHECK(s.type * 100 >= s.all * 95);
        CHECK(s.cause * 100 >= s.all * 85);
        CHECK(s.line * 100 >= s.all * 95);
    }
}

TEST_CASE("incidents: wrappers prefixes noise and cuts do not change the type") {
    const auto cases = incidents();
    if (cases.empty()) {
        MESSAGE("skipped: ../shared/field/incidents is not beside this checkout");
        return;
    }
    struct Transform {
        const char* name;
        std::function<std::string(const std::string&)> apply;
        std::size_t type_percent, cause_percent;
    };
    const Transform transforms[] = {
        {"colours", with_colours, 95, 85},
        {"crlf", with_crlf, 95, 85},
        {"docker json", as_docker_json, 95, 85},
        {"cri", as_cri, 95, 85},
        {"compose", as_compose, 95, 85},
        {"interleaved", interleaved, 95, 85},
        {"drowned", drowned, 95, 85},
        {"eight ranks", eight_ranks, 90, 85},
        {"head cut", [](const auto& t) { return cut(t, true); }, 90, 80},
        {"tail cut", [](const auto& t) { return cut(t, false); }, 85, 75},
    };
    for (const auto& t : transforms) {
        const Score s = score(cases, t.apply, false);
        std::printf("  %-12s type %zu/%zu, cause %zu/%zu\n", t.name, s.type, s.all, s.cause, s.all);
        CAPTURE(t.name);
        CHECK(s.type * 100 >= s.all * t.type_percent);
        CHECK(s.cause * 100 >= s.all * t.cause_percent);
    }
}

TEST_CASE("incidents: the size of the pieces that are fed does not change the report") {
    const auto cases = incidents();
    for (const Case& c : cases) {
        const std::string whole = triage::to_json(triage::triage_text(c.text));
        for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
            triage::Session session;
            session.begin_file("log");
            for (std::size_t at = 0; at < c.text.size(); at += size)
                session.feed(std::string_view(c.text).substr(at, size));
            REQUIRE(session.end_file());
            CHECK(triage::to_json(session.report()) == whole);
        }
    }
}
