#include "grader/interview/marking.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace oomlab::grader {

Result<std::unique_ptr<Rubric>> load_question(const std::string& content_dir, int number) {
    if (number < 1 || number > kQuestions)
        return fail(Error::usage(fmt::format("there is no question {}: the interview has questions 1 to {}", number, kQuestions)));
    const std::string base = content_dir + "/interview/";
    return load_rubric({base + "lexicon.toml", base + "misconceptions.toml", fmt::format("{}q{}.toml", base, number)});
}

std::string mark_as_json(const Rubric& rubric, const Mark& mark) {
    using nlohmann::ordered_json;
    ordered_json out;
    out["question"] = rubric.number;
    out["rubric"] = rubric.id;
    out["score"] = mark.score;
    out["pass"] = mark.pass;
    out["pass_mark"] = rubric.pass;
    out["words"] = mark.words;
    out["concepts"] = ordered_json::array();
    for (const ConceptMark& c : mark.concepts)
        out["concepts"].push_back({{"id", c.id}, {"state", name_of(c.state)}, {"where", c.where}, {"line", c.line}, {"rule", c.rule}});
    out["dangerous"] = ordered_json::array();
    out["misconceptions"] = ordered_json::array();
    for (const Caught& m : mark.misconceptions) {
        if (m.dangerous) out["dangerous"].push_back({{"id", m.id}, {"where", m.where}, {"line", m.line}, {"why", m.reply}});
        out["misconceptions"].push_back({{"id", m.id}, {"where", m.where}, {"line", m.line}, {"why", m.reply}, {"rule", m.rule}});
    }
    out["feedback"] = feedback(rubric, mark);
    out["limits"] = marking_limits();
    // Text from a file may hold broken UTF-8: replaced, never thrown about.
    return out.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string mark_as_text(const Rubric& rubric, const Mark& mark) {
    std::string out = fmt::format("{}: {:g} of 100, {} (pass is {:g})\n", rubric.title, mark.score, mark.pass ? "a pass" : "not yet", rubric.pass);
    for (std::size_t i = 0; i < mark.concepts.size(); ++i) {
        const ConceptMark& c = mark.concepts[i];
        out += fmt::format("  {:<13} {}\n", name_of(c.state), rubric.concepts[i].name);
        if (!c.where.empty()) out += fmt::format("  {:<13}   line {}: \"{}\"\n", "", c.line, c.where);
    }
    for (const std::string& f : feedback(rubric, mark)) out += "  " + f + "\n";
    return out;
}

std::string_view marking_limits() {
    return "Marks which ideas are stated, named, denied or reversed; it does not understand, and it reads English only. "
           "Disagree when you know better: the list of ideas is the result, the number is a summary.";
}

}  // namespace oomlab::grader
