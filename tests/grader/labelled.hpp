// Labelled answers (one JSON object a line) and the rubrics, loaded once.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "grader/interview/marking.hpp"

namespace oomlab::grader::test {

inline const Rubric& rubric(int question) {
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
    int question = 0;
    double score = 0;
};

inline std::vector<Labelled> read_labelled(const std::string& path) {
    std::vector<Labelled> out;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        if (line.empty()) continue;
        const auto j = nlohmann::json::parse(line);
        out.push_back({j.at("id"), j.at("kind"), j.at("answer"), j.at("question"), j.at("score")});
    }
    return out;
}

}  // namespace oomlab::grader::test
