#include "grader/interview/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "kernels/base/prng.hpp"

namespace oomlab::grader {
namespace {

constexpr i64 kSecondsADay = 86400;

int ask_confidence(Dialogue& d) {
    std::string line;
    if (!d.line("How sure are you? 1 unsure, 2 fairly, 3 sure: ", line)) return 0;
    for (const char c : line)
        if (c >= '1' && c <= '3') return c - '0';
    return 0;
}

// The learner's own marks before the machine's: numbers of the ideas they think they said.
int self_mark(const Rubric& rubric, const Mark& mark, Dialogue& d) {
    std::string list = "Before you see the marks: which of these did you say? (numbers, empty to skip)\n";
    for (std::size_t i = 0; i < rubric.concepts.size(); ++i) list += fmt::format("  {}. {}\n", i + 1, rubric.concepts[i].name);
    d.say(list);
    std::string line;
    if (!d.line("> ", line) || line.find_first_of("0123456789") == std::string::npos) return -1;
    std::vector<bool> said(rubric.concepts.size(), false);
    std::size_t number = 0;
    for (const char c : line + " ") {
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            number = std::min<std::size_t>(number * 10 + static_cast<std::size_t>(c - '0'), 1000);
        } else {
            if (number >= 1 && number <= said.size()) said[number - 1] = true;
            number = 0;
        }
    }
    std::size_t agreed = 0;
    std::string apart;
    for (std::size_t i = 0; i < said.size(); ++i) {
        const bool machine = mark.concepts[i].share > 0.5;
        agreed += machine == said[i] ? 1 : 0;
        if (machine != said[i])
            apart += fmt::format("  {}: you say {}, the rubric says {}\n", rubric.concepts[i].name, said[i] ? "yes" : "no", name_of(mark.concepts[i].state));
    }
    if (!apart.empty()) d.say("Where you and the rubric differ:\n" + apart + "  (you may be right: it matches ideas, it does not understand)\n");
    return static_cast<int>(100 * agreed / said.size());
}

void follow_up(const Rubric& rubric, const Mark& mark, const std::string& answer, Dialogue& d) {
    std::string all = answer;
    for (const std::size_t i : choose_follow_ups(rubric, mark)) {
        const Concept& c = rubric.concepts[i];
        const std::string& probe = mark.concepts[i].state == State::mentioned && !c.deepen.empty() ? c.deepen : c.missing;
        std::string more;
        if (!d.answer("Follow-up: " + probe + "\n", more)) return;
        all += "\n" + more;
        const Mark again = mark_answer(rubric, all);
        const ConceptMark& now = again.concepts[i];
        if (now.share > mark.concepts[i].share)
            d.say("That is it.\n");
        else
            d.say("Not yet: " + c.name + (c.evidence.empty() ? "" : " (seen in " + c.evidence + ")") + "\n");
    }
}

struct Timed {
    std::string answer;
    int seconds = 0;
    bool given = false;
};

Timed timed_answer(Dialogue& d, const std::string& prompt) {
    Timed t;
    const i64 begin = d.now_seconds();
    t.given = d.answer(prompt, t.answer);
    t.seconds = static_cast<int>(std::clamp<i64>(d.now_seconds() - begin, 0, kSecondsADay));
    return t;
}

}  // namespace

std::vector<std::size_t> choose_follow_ups(const Rubric& rubric, const Mark& mark) {
    std::vector<std::pair<double, std::size_t>> wanted;
    for (std::size_t i = 0; i < rubric.concepts.size(); ++i) {
        const Concept& c = rubric.concepts[i];
        const ConceptMark& m = mark.concepts[i];
        if (m.share > 0.5 || (c.missing.empty() && c.deepen.empty())) continue;
        const bool opposed = m.state == State::contradicted || m.state == State::both;
        wanted.emplace_back(c.weight * (1 - m.share) + (opposed ? 1000 : 0) - (c.role == Concept::Role::bonus ? 500 : 0), i);
    }
    std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::size_t> out;
    for (const auto& [weight, i] : wanted)
        if (out.size() < 2) out.push_back(i);
    return out;
}

Result<Mark> ask_question(const AskOptions& options, InterviewBook& book, Dialogue& d) {
    OOMLAB_TRY(rubric, load_question(options.content_dir, options.question));
    const Timed t = timed_answer(d, fmt::format("Question {} of {}. {}\n(about {} to {} words; a line with a single dot ends it)\n", rubric->number, kQuestions, rubric->question,
                                                rubric->words_min, rubric->words_max));
    if (!t.given) return fail(Error::usage("no answer came before the end of input"));
    const int confidence = ask_confidence(d);
    const Mark mark = mark_answer(*rubric, t.answer);
    const int agreed = self_mark(*rubric, mark, d);
    d.say(mark_as_text(*rubric, mark));
    if (options.follow_up) follow_up(*rubric, mark, t.answer, d);
    d.say("A model answer:\n" + rubric->model_answer);
    Attempt a;
    a.day = d.now_seconds() / kSecondsADay;
    a.question = options.question;
    a.score = mark.score;
    a.confidence = confidence;
    a.seconds = t.seconds;
    a.self_agreed = agreed;
    record(book, a, grade_of(mark, rubric->pass, confidence, t.seconds));
    const Memory& m = book.memory[static_cast<std::size_t>(options.question - 1)];
    d.say(fmt::format("{} points of certainty. Next review of this question: {}.\n{}\n", certainty_points(confidence, mark.pass),
                      format_day(next_day(m, a.day, book.interview_day)), marking_limits()));
    return mark;
}

Result<double> mock_interview(const std::string& content_dir, u64 seed, InterviewBook& book, Dialogue& d) {
    std::vector<int> order(kQuestions);
    std::iota(order.begin(), order.end(), 1);
    Prng prng = Prng(seed).fork("mock interview");
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng.below(i)]);
    d.say(fmt::format("A mock interview: {} questions, {} minutes, no marks before the end.\n", kQuestions, kMockSeconds / 60));
    const i64 begin = d.now_seconds();
    double sum = 0;
    std::string report;
    for (const int q : order) {
        OOMLAB_TRY(rubric, load_question(content_dir, q));
        const i64 left = kMockSeconds - (d.now_seconds() - begin);
        if (left <= 0) {
            report += fmt::format("  {:<28} not reached in time\n", rubric->title);
            continue;
        }
        const Timed t = timed_answer(d, fmt::format("[{}:{:02} left] {}\n", left / 60, left % 60, rubric->question));
        if (!t.given) {
            report += fmt::format("  {:<28} no answer\n", rubric->title);
            continue;
        }
        const bool late = d.now_seconds() - begin > kMockSeconds;
        const Mark mark = mark_answer(*rubric, t.answer);
        Attempt a;
        a.day = d.now_seconds() / kSecondsADay;
        a.question = q;
        a.score = mark.score;
        a.seconds = t.seconds;
        a.mock = true;
        record(book, a, grade_of(mark, rubric->pass, 0, t.seconds));
        sum += late ? 0 : mark.score;
        std::string gap;
        if (const auto next = choose_follow_ups(*rubric, mark); !next.empty()) gap = rubric->concepts[next.front()].name;
        report += fmt::format("  {:<28} {:>5.1f}{}{}\n", rubric->title, mark.score, late ? " (after the time: not counted)" : "", gap.empty() ? "" : "  missing: " + gap);
    }
    const double mean = sum / kQuestions;
    d.say(report);
    d.say(fmt::format("Mean {:.1f} of 100 in {} minutes: {}.\n{}\n", mean, (d.now_seconds() - begin + 59) / 60,
                      mean >= 80   ? "you may hold the pager"
                      : mean >= 60 ? "a pass; the missing ideas above are what an interviewer would ask next"
                                   : "not yet",
                      marking_limits()));
    return mean;
}

}  // namespace oomlab::grader
