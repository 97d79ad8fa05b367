#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "grader/interview/marking.hpp"
#include "grader/interview/session.hpp"
#include "labs/catalog/content_dir.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/read_input.hpp"

namespace oomlab::cli {
namespace {

constexpr u64 kAnswerBytesMax = kMiB;
constexpr i64 kSecondsADay = 86400;

struct Options {
    int question = 0;
    std::string file = "-";
    std::string folder;
    std::string day;    // what is set
    std::string today;  // instead of the clock's
    u64 seed = 0;
    bool json = false;
};

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!text.empty() && text.back() != '\n') std::fputc('\n', stdout);
}

// Terminal or pipe: prompts are printed either way, so that a transcript reads well.
class Console final : public grader::Dialogue {
  public:
    explicit Console(i64 shift_seconds) : shift_(shift_seconds) {}
    void say(std::string_view text) override {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
    }
    bool line(std::string_view prompt, std::string& out) override {
        say(prompt);
        out.clear();
        int c = 0;
        while ((c = std::fgetc(stdin)) != EOF && c != '\n')
            if (out.size() < kAnswerBytesMax) out += static_cast<char>(c);
        return c != EOF || !out.empty();
    }
    bool answer(std::string_view prompt, std::string& out) override {
        say(prompt);
        out.clear();
        std::string one;
        while (line("", one)) {
            if (one == "." || one == ".\r") break;
            if (out.size() + one.size() < kAnswerBytesMax) out += one + "\n";
        }
        return out.find_first_not_of(" \r\n\t") != std::string::npos;
    }
    i64 now_seconds() override { return static_cast<i64>(std::time(nullptr)) + shift_; }

  private:
    i64 shift_;
};

Result<i64> clock_shift(const Options& o) {
    if (o.today.empty()) return i64{0};
    OOMLAB_TRY(day, grader::parse_day(o.today));
    return day * kSecondsADay - static_cast<i64>(std::time(nullptr)) / kSecondsADay * kSecondsADay;
}

// The learner's folder: the one given, else the nearest above that has .oomlab/, else here.
std::string folder_of(const Options& o) {
    namespace fs = std::filesystem;
    if (!o.folder.empty()) return o.folder;
    std::error_code ec;
    for (fs::path p = fs::current_path(ec); !ec && !p.empty(); p = p.parent_path()) {
        if (fs::is_directory(p / ".oomlab", ec)) return p.string();
        if (p == p.parent_path()) break;
    }
    return ".";
}

Result<int> mark(const Options& o) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(rubric, grader::load_question(content, o.question));
    OOMLAB_TRY(answer, read_input(o.file, kAnswerBytesMax));
    const grader::Mark result = grader::mark_answer(*rubric, answer);
    print(o.json ? grader::mark_as_json(*rubric, result) : grader::mark_as_text(*rubric, result));
    return result.pass ? 0 : 1;
}

Result<int> ask(const Options& o) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(shift, clock_shift(o));
    const std::string folder = folder_of(o);
    OOMLAB_TRY(book, grader::load_book(folder));
    Console console(shift);
    int question = o.question;
    if (question == 0) {
        const std::vector<int> due = grader::due_questions(book, console.now_seconds() / kSecondsADay);
        if (due.empty()) {
            print("Nothing is due today. oomlab interview ask N asks all the same, mock asks all seven.");
            return 0;
        }
        question = due.front();
    }
    OOMLAB_TRY(result, grader::ask_question({content, question, true}, book, console));
    OOMLAB_TRY_VOID(grader::save_book(folder, book));
    return result.pass ? 0 : 1;
}

Result<int> review(const Options& o) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(shift, clock_shift(o));
    const std::string folder = folder_of(o);
    OOMLAB_TRY(book, grader::load_book(folder));
    Console console(shift);
    const std::vector<int> due = grader::due_questions(book, console.now_seconds() / kSecondsADay);
    print(due.empty() ? "Nothing is due today." : "Due today: " + std::to_string(due.size()) + " of " + std::to_string(grader::kQuestions) + ".");
    for (const int q : due) {
        const auto result = grader::ask_question({content, q, true}, book, console);
        if (!result) return result.error().kind == Error::Kind::usage ? Result<int>(0) : Result<int>(fail(result.error()));
        OOMLAB_TRY_VOID(grader::save_book(folder, book));
    }
    return 0;
}

Result<int> mock(const Options& o) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(shift, clock_shift(o));
    const std::string folder = folder_of(o);
    OOMLAB_TRY(book, grader::load_book(folder));
    Console console(shift);
    const u64 seed = o.seed != 0 ? o.seed : book.attempts.size() + 1;
    OOMLAB_TRY(mean, grader::mock_interview(content, seed, book, console));
    OOMLAB_TRY_VOID(grader::save_book(folder, book));
    return mean >= 60 ? 0 : 1;
}

Result<int> stats(const Options& o) {
    OOMLAB_TRY(shift, clock_shift(o));
    OOMLAB_TRY(book, grader::load_book(folder_of(o)));
    print(grader::stats_text(book, Console(shift).now_seconds() / kSecondsADay));
    return 0;
}

Result<int> date(const Options& o) {
    OOMLAB_TRY(day, grader::parse_day(o.day));
    const std::string folder = folder_of(o);
    OOMLAB_TRY(book, grader::load_book(folder));
    book.interview_day = day;
    OOMLAB_TRY_VOID(grader::save_book(folder, book));
    print("The interview is on " + grader::format_day(day) + ": every question comes at least twice in the week before.");
    return 0;
}

Result<int> export_anki(const Options&) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(cards, grader::anki_cards(content));
    print(cards);
    return 0;
}

}  // namespace

void add_interview(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("interview", "The seven interview questions: ask, mark, review, mock");
    cmd->require_subcommand(0, 1);
    cmd->footer(std::string(grader::marking_limits()) + "\nWithout a verb: asks the question that is due.");
    const auto options = std::make_shared<Options>();
    const auto run = [&exit_status, options](Result<int> (*verb)(const Options&)) {
        return [&exit_status, options, verb] {
            const Result<int> r = verb(*options);
            exit_status = r ? *r : report(r.error());
        };
    };
    const auto with_book = [&](CLI::App* sub) {
        sub->add_option("--dir", options->folder, "The learner's folder (default: the nearest above with .oomlab/, else here)");
        sub->add_option("--today", options->today, "Take this day for today (YYYY-MM-DD)");
        return sub;
    };
    auto* mark_cmd = cmd->add_subcommand("mark", "Mark one answer");
    mark_cmd->add_option("--question,-q", options->question, "Question 1 to 7")->required();
    mark_cmd->add_option("FILE", options->file, "The answer; - or nothing reads standard input");
    mark_cmd->add_flag("--json", options->json, "Print one JSON object");
    mark_cmd->callback(run(mark));
    auto* ask_cmd = with_book(cmd->add_subcommand("ask", "Ask a question, with follow-ups and the model answer after"));
    ask_cmd->add_option("N", options->question, "Question 1 to 7; without it the one that is due")->check(CLI::Range(1, grader::kQuestions));
    ask_cmd->callback(run(ask));
    auto* mock_cmd = with_book(cmd->add_subcommand("mock", "All seven against the clock, marks at the end"));
    mock_cmd->add_option("--seed", options->seed, "Order of the questions");
    mock_cmd->callback(run(mock));
    with_book(cmd->add_subcommand("review", "Ask everything that is due today"))->callback(run(review));
    with_book(cmd->add_subcommand("stats", "Scores, recall, and how often sure was right"))->callback(run(stats));
    auto* date_cmd = with_book(cmd->add_subcommand("date", "Set the day of the interview"));
    date_cmd->add_option("DAY", options->day, "YYYY-MM-DD")->required();
    date_cmd->callback(run(date));
    cmd->add_subcommand("export-anki", "Print the questions and ideas as Anki cards (tab-separated)")->callback(run(export_anki));
    cmd->callback([cmd, options, &exit_status] {
        if (!cmd->get_subcommands().empty()) return;
        const Result<int> r = ask(*options);
        exit_status = r ? *r : report(r.error());
    });
}

}  // namespace oomlab::cli
