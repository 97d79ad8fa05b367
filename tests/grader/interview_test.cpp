#include <doctest/doctest.h>

#include "grader/interview/marking.hpp"
#include "tests/grader/agreement.hpp"
#include "tests/grader/labelled.hpp"

using namespace oomlab;
using namespace oomlab::grader;

using test::Labelled;
using test::read_labelled;
using test::rubric;

TEST_SUITE("interview") {
    TEST_CASE("the labelled answers of the field are marked as two readers mark them") {
        const auto answers = read_labelled(OOMLAB_SOURCE_DIR "/../shared/field/answers/answers.jsonl");
        if (answers.empty()) {
            MESSAGE("skipped: the field's labelled answers are not beside this checkout");
            return;
        }
        test::Agreement all;
        for (const Labelled& a : answers) {
            const Mark m = mark_answer(rubric(a.question), a.answer);
            all.add(m.score, a.score);
            if (a.kind == "wrong" || a.kind == "stuffed" || a.kind == "negated" || a.kind == "offtopic") CHECK_MESSAGE(!m.pass, a.id);
            if (a.kind == "strong") CHECK_MESSAGE(m.pass, a.id);
        }
        MESSAGE("answers: n=" << answers.size() << " mean error " << all.mean_error() << ", pass agreement " << all.pass_agreement()
                              << ", r " << all.correlation() << ", rank r " << all.rank_correlation());
        CHECK(all.mean_error() <= 10);
        CHECK(all.pass_agreement() >= 0.9);
        CHECK(all.rank_correlation() >= 0.9);
    }
    TEST_CASE("our own corpus is marked as a fair reader would") {
        for (const char* name : {"answers_a", "answers_b", "answers_c"}) {
            const auto answers = read_labelled(std::string(OOMLAB_SOURCE_DIR "/tests/grader/corpus/") + name + ".jsonl");
            REQUIRE(answers.size() >= 20);
            test::Agreement all;
            for (const Labelled& a : answers) {
                const Mark m = mark_answer(rubric(a.question), a.answer);
                all.add(m.score, a.score);
                if (a.score <= 35) CHECK_MESSAGE(!m.pass, a.id);
                if (a.score >= 85) CHECK_MESSAGE(m.pass, a.id);
            }
            MESSAGE(name << ": n=" << answers.size() << " mean error " << all.mean_error() << ", pass agreement " << all.pass_agreement()
                         << ", r " << all.correlation() << ", rank r " << all.rank_correlation());
            CHECK(all.mean_error() <= 10);
            CHECK(all.pass_agreement() >= 0.9);
            CHECK(all.correlation() >= 0.9);
        }
    }
    TEST_CASE("a question that does not exist is a usage error") {
        const auto r = load_question(OOMLAB_SOURCE_DIR "/content", 8);
        REQUIRE_FALSE(r);
        CHECK(exit_code(r.error()) == 2);
    }
}
