// Logs of our own in the programs' formats, one or more for every cause of the catalogue.
#include <doctest/doctest.h>

#include <cstdio>
#include <map>

#include "labs/field/triage/causes.hpp"
#include "tests/field/triage_support.hpp"

using namespace oomlab;
using namespace oomlab::triage_test;

TEST_CASE("corpus: every log gets its type and cause and every cause has a log") {
    const auto cases = read_index(OOMLAB_SOURCE_DIR "/tests/field/corpus", {0, 1, 2, 3});
    REQUIRE(cases.size() >= 60);
    std::map<std::string, int> seen;
    for (const Case& c : cases) {
        const auto report = triage::triage_text(c.text);
        const Verdict v = judge(c, report);
        CAPTURE(c.name);
        CAPTURE(report.cause);
        CAPTURE(report.confidence);
        CHECK(v.type);
        CHECK(v.cause);
        CHECK(v.line);
        ++seen[c.causes.front()];
    }
    for (const auto& e : triage::all_causes()) {
        CAPTURE(e.id);
        CHECK(seen[std::string(e.id)] >= 1);
    }
}
