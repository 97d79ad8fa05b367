#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "grader/interview/marking.hpp"
#include "tests/grader/agreement.hpp"

using namespace oomlab;
using namespace oomlab::grader;

namespace {

const Rubric& rubric(int question) {
    static std::map<int, std::unique_ptr<Rubric>> loaded;
    auto& r = loaded[question];
    if (!r) {
        auto made = load_question(OOMLAB_SOURCE_DIR "/content", question);
        REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
        r = std::move(*made);
    }
    return *r;
}

struct Labelled {
    std::string id, kind, answer;
    int question;
    double score;
};

std::vector<Labelled> read_labelled(const std::string& path) {
    std::vector<Labelled> out;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        if (line.empty()) continue;
        const auto j = nlohmann::json::parse(line);
        out.push_back({j.at("id"), j.at("kind"), j.at("answer"), j.at("question"), j.at("score")});
    }
    return out;
}

}  // namespace

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
    TEST_CASE("a question that does not exist is a usage error") {
        const auto r = load_question(OOMLAB_SOURCE_DIR "/content", 8);
        REQUIRE_FALSE(r);
        CHECK(exit_code(r.error()) == 2);
    }
}
