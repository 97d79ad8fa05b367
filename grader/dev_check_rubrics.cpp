#include "grader/dev_check_rubrics.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "grader/interview/marking.hpp"
#include "grader/runbook/drill.hpp"
#include "grader/runbook/lint.hpp"
#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/text_file.hpp"

namespace oomlab::grader {
namespace {

constexpr std::size_t kLeastIncidents = 40;

void check_rubric(const Rubric& r, std::vector<RubricFinding>& out) {
    std::set<std::string> ids;
    double weight = 0;
    for (const Concept& c : r.concepts) {
        if (!ids.insert(c.id).second) out.push_back({true, r.file, fmt::format("two concepts are called '{}'", c.id)});
        if (c.role == Concept::Role::required) weight += c.weight;
        if (!c.hints.empty() && c.hints.size() != 4) out.push_back({true, r.file, fmt::format("concept '{}' has {} hints; a ladder has four (nudge, hint, fill-in, tell)", c.id, c.hints.size())});
        if (c.role == Concept::Role::required && c.missing.empty() && c.weight >= 9) out.push_back({true, r.file, fmt::format("concept '{}' has no follow-up for when it is missing", c.id)});
    }
    if (weight <= 0) out.push_back({true, r.file, "no required weight"});
    if (r.number > 0 && (r.question.empty() || r.model_answer.empty())) out.push_back({true, r.file, "question or model answer is missing"});
    if (r.number > 0 && mark_answer(r, r.model_answer + "\n" + r.question).score >= r.pass) out.push_back({true, r.file, "copying the model answer passes"});
}

void check_corpus(const std::map<int, std::unique_ptr<Rubric>>& rubrics, const std::string& corpus_dir, std::vector<RubricFinding>& out) {
    std::map<int, std::set<std::string>> caught;
    std::size_t answers = 0;
    for (const std::string& name : names_in(corpus_dir, ".jsonl")) {
        const auto text = read_text_file(corpus_dir + "/" + name + ".jsonl");
        if (!text) {
            out.push_back({true, name, text.error().message});
            continue;
        }
        std::istringstream lines(*text);
        u32 number = 0;
        for (std::string line; std::getline(lines, line);) {
            ++number;
            if (line.empty()) continue;
            const auto j = nlohmann::json::parse(line, nullptr, false);
            const std::string place = fmt::format("{}.jsonl:{}", name, number);
            if (!j.is_object() || !j.contains("question") || !j.contains("answer") || !j.contains("score") || !j["answer"].is_string() || !j["score"].is_number() || !j["question"].is_number_integer()) {
                out.push_back({true, place, "an answer needs question, answer and score"});
                continue;
            }
            const auto rubric = rubrics.find(j["question"].get<int>());
            if (rubric == rubrics.end()) {
                out.push_back({true, place, "no such question"});
                continue;
            }
            const std::string kind = j.contains("kind") && j["kind"].is_string() ? j["kind"].get<std::string>() : std::string();
            const Mark m = mark_answer(*rubric->second, j["answer"].get<std::string>());
            ++answers;
            for (const ConceptMark& c : m.concepts)
                if (c.share > 0.5) caught[rubric->first].insert(c.id);
            const bool must_fail = kind == "wrong" || kind == "stuffed" || kind == "negated" || kind == "offtopic" || kind == "both-ways";
            if (must_fail && m.pass) out.push_back({true, place, fmt::format("a {} answer passes with {:g}", kind, m.score)});
            if (kind == "strong" && !m.pass) out.push_back({true, place, fmt::format("a strong answer fails with {:g}", m.score)});
        }
    }
    if (answers == 0) out.push_back({true, corpus_dir, "no corpus"});
    for (const auto& [number, rubric] : rubrics)
        for (const Concept& c : rubric->concepts)
            if (c.role == Concept::Role::required && caught[number].count(c.id) == 0)
                out.push_back({true, rubric->file, fmt::format("concept '{}' is caught in no answer of the corpus", c.id)});
}

}  // namespace

Result<std::vector<RubricFinding>> dev_check_rubrics(const std::string& content_dir, const std::string& corpus_dir) {
    std::vector<RubricFinding> out;
    std::map<int, std::unique_ptr<Rubric>> rubrics;
    for (int q = 1; q <= kQuestions; ++q) {
        OOMLAB_TRY(rubric, load_question(content_dir, q));
        if (rubric->number != q) out.push_back({true, rubric->file, fmt::format("number is {}, not {}", rubric->number, q)});
        check_rubric(*rubric, out);
        rubrics.emplace(q, std::move(rubric));
    }
    OOMLAB_TRY(rules, load_runbook_rules(content_dir));
    check_rubric(*rules.rubric, out);
    OOMLAB_TRY(language, load_drill_language(content_dir));
    OOMLAB_TRY(cards, load_incidents(content_dir, language));
    if (cards.size() < kLeastIncidents) out.push_back({true, "runbook/incidents", fmt::format("{} incidents; {} are wanted", cards.size(), kLeastIncidents)});
    std::set<std::string> ids;
    for (const Incident& c : cards)
        if (!ids.insert(c.id).second) out.push_back({true, "runbook/incidents", fmt::format("two incidents are called '{}'", c.id)});
    OOMLAB_TRY(skeleton, runbook_skeleton(content_dir, language));
    OOMLAB_TRY(mark, mark_runbook(rules, skeleton));
    if (mark.mark.pass) out.push_back({true, "runbook/skeleton.md", "the unedited skeleton passes"});
    if (!corpus_dir.empty()) check_corpus(rubrics, corpus_dir, out);
    return out;
}

}  // namespace oomlab::grader
