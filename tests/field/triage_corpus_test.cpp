// Logs of our own in the programs' formats, one or more for every cause of the catalogue.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <functional>
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

TEST_CASE("corpus: wrappers prefixes and noise change nothing that matters") {
    const auto cases = read_index(OOMLAB_SOURCE_DIR "/tests/field/corpus", {0, 1, 2, 3});
    const std::pair<const char*, std::function<std::string(const std::string&)>> transforms[] = {
        {"colours", with_colours},       {"crlf", with_crlf},
        {"docker json", as_docker_json}, {"cri", as_cri},
        {"compose", as_compose},         {"interleaved", interleaved},
        {"eight ranks", eight_ranks}};
    for (const auto& [name, apply] : transforms) {
        std::size_t type = 0, cause = 0;
        for (const Case& c : cases) {
            const Verdict v = judge(c, triage::triage_text(apply(c.text)));
            type += v.type;
            cause += v.cause;
            if (!v.cause) std::printf("    %s: %s\n", name, c.name.c_str());
        }
        std::printf("  %-12s type %zu/%zu, cause %zu/%zu\n", name, type, cases.size(), cause,
                    cases.size());
        CAPTURE(name);
        CHECK(type * 100 >= cases.size() * 95);
        CHECK(cause * 100 >= cases.size() * 93);
    }
}

TEST_CASE("corpus: healthy servers and bare words are not given a type") {
    std::size_t seen = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(OOMLAB_SOURCE_DIR "/tests/field/innocent")) {
        CAPTURE(file.path().filename().string());
        const auto report = triage::triage_text(read_file(file.path().string()));
        CHECK_FALSE(report.type.has_value());
        CHECK_FALSE(report.ask_for.empty());
        ++seen;
    }
    CHECK(seen >= 12);
}
