// Every published figure within its tolerance. A case that is outside is listed in kKnownOutside with
// the reason in content/validation; the list may only shrink.
#include <doctest/doctest.h>

#include <cstdlib>

#include "labs/validate/validate.hpp"

using namespace oomlab;

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
            CHECK(row.holds());
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
