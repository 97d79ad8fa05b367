// Every published figure within its tolerance. What is outside is listed below with the reason, and
// shown as outside by `oomlab validate`; the list may only shrink.
#include <doctest/doctest.h>

#include <cstdlib>

#include "labs/validate/validate.hpp"

using namespace oomlab;

namespace {
// Sarathi's arxiv traffic: whole prompts of up to 14,000 tokens take 2.4 s in a step by the frozen
// constants, 1.38 s were published at an unknown request rate. Direction and first bound hold.
constexpr const char* kKnownOutside[] = {"arxiv: P99 token gap, whole over chunked, at most"};

bool known_outside(const std::string& what) {
    for (const char* k : kKnownOutside) {
        if (what == k) return true;
    }
    return false;
}
}  // namespace

TEST_CASE("validate: every case runs, and its rows hold") {
    validate::Options options;
    options.serving = "";
    const auto reports = validate::run_all(options);
    REQUIRE_MESSAGE(reports.has_value(), reports.error().message);
    CHECK(reports->size() == validate::case_names().size());
    for (const validate::Report& r : *reports) {
        CAPTURE(r.name);
        if (!r.skipped.empty()) {
            MESSAGE(r.name, " skipped: ", r.skipped);
            continue;
        }
        CHECK(!r.rows.empty());
        for (const validate::Row& row : r.rows) {
            CAPTURE(row.what);
            CAPTURE(row.published);
            CAPTURE(row.simulated);
            CHECK(row.holds() != known_outside(row.what));
        }
    }
}

TEST_CASE("validate: a figure outside its tolerance is called so") {
    validate::Row row;
    row.published = 100;
    row.simulated = 105.1;
    row.tolerance = 5;
    CHECK_FALSE(row.holds());
    row.simulated = 104.9;
    CHECK(row.holds());
    row.kind = validate::Row::Kind::at_most;
    CHECK_FALSE(row.holds());
    row.kind = validate::Row::Kind::points;
    row.simulated = 95;
    CHECK(row.holds());
}
