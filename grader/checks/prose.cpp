// The interview as a hand-in (q1.md to q7.md), and the runbook: marked by rubric, without a model.
#include <fmt/format.h>

#include <cmath>

#include "grader/checks/parts.hpp"
#include "grader/interview/marking.hpp"
#include "grader/runbook/marking.hpp"
#include "labs/catalog/content_dir.hpp"

namespace oomlab::course {

Result<CheckResult> check_interview(const Exercise& e, Folder& folder, const CheckOptions&) {
    Checklist list;
    list.result.exercise = e.id;
    list.result.title = e.title;
    list.result.points.reserve(grader::kQuestions);
    OOMLAB_TRY(content, content_dir());
    for (int n = 1; n <= grader::kQuestions; ++n) {
        CheckPoint& p = list.add(fmt::format("q{}", n), fmt::format("Question {}", n), e.points / grader::kQuestions);
        OOMLAB_TRY(rubric, grader::load_question(content, n));
        auto text = learner_text(folder, e, fmt::format("q{}.md", n));
        if (!text) {
            Checklist::broken(p, text.error());
            continue;
        }
        // The lines that start with '>' are the question.
        std::string answer;
        std::size_t at = 0;
        while (at < text->size()) {
            const std::size_t end = std::min(text->find('\n', at), text->size());
            if ((*text)[at] != '>') answer += text->substr(at, end - at) + "\n";
            at = end + 1;
        }
        if (answer.find_first_not_of(" \n\r\t") == std::string::npos) {
            p.saw = "not answered yet";
            p.next = fmt::format("write {}/q{}.md, or answer aloud: oomlab interview ask {}", e.id, n, n);
            continue;
        }
        const grader::Mark mark = grader::mark_answer(*rubric, answer);
        const auto say = grader::feedback(*rubric, mark);
        Checklist::decide(p, mark.pass, fmt::format("{:.0f} of 100", std::round(mark.score)), "60 of 100, and nothing dangerous", say.empty() ? "" : say.back(),
                          p.max * std::min(mark.score, 59.0) / 100);
    }
    return list.result;
}

Result<CheckResult> check_runbook(const Exercise& e, Folder& folder, const CheckOptions&) {
    Checklist list;
    list.result.exercise = e.id;
    list.result.title = e.title;
    list.result.points.reserve(2);
    CheckPoint& content_point = list.add("content", "What the entry says", e.points);
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(rules, grader::load_runbook_rules(content));
    auto text = learner_text(folder, e, "runbook.md");
    if (!text) {
        Checklist::broken(content_point, text.error());
        return list.result;
    }
    auto mark = grader::mark_runbook(rules, *text);
    if (!mark) {
        Checklist::broken(content_point, mark.error());
        return list.result;
    }
    const auto say = grader::feedback(*rules.rubric, mark->mark);
    Checklist::decide(content_point, mark->mark.pass, fmt::format("{:.0f} of 100", std::round(mark->mark.score)), "60 of 100, and nothing dangerous",
                      say.empty() ? "oomlab runbook mark runbook.md" : say.back(), content_point.max * std::min(mark->mark.score, 59.0) / 100);
    return list.result;
}

}  // namespace oomlab::course
