// The interview as a person meets it, with scripted input and a clock of the test's own.
#include <doctest/doctest.h>

#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>

#include "grader/interview/session.hpp"

using namespace oomlab;
using namespace oomlab::grader;

namespace {

const std::string kContent = OOMLAB_SOURCE_DIR "/content";

class Script final : public Dialogue {
  public:
    explicit Script(std::deque<std::string> input, i64 now = 20000 * 86400) : input_(std::move(input)), now_(now) {}
    void say(std::string_view text) override { heard += text; }
    bool line(std::string_view prompt, std::string& out) override {
        heard += prompt;
        now_ += 5;
        return next(out);
    }
    bool answer(std::string_view prompt, std::string& out) override {
        heard += prompt;
        now_ += seconds_an_answer;
        return next(out);
    }
    i64 now_seconds() override { return now_; }
    std::string heard;
    i64 seconds_an_answer = 90;

  private:
    bool next(std::string& out) {
        if (input_.empty()) return false;
        out = input_.front();
        input_.pop_front();
        return true;
    }
    std::deque<std::string> input_;
    i64 now_;
};

const char* const kHost =
    "137 is 128 plus 9, so SIGKILL. The kernel's OOM killer ended the process because the container used more host memory than its cgroup limit. "
    "There is no traceback and the GPU is not involved. dmesg shows the killed process, memory.events counts oom_kill, kubectl describe says OOMKilled. "
    "Then I look at how weights are loaded and at pinned buffers.";

std::string fresh_folder(const char* name) {
    const std::string path = (std::filesystem::temp_directory_path() / (std::string("oomlab-interview-") + name + "-" + std::to_string(::getpid()))).string();
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    return path;
}

}  // namespace

TEST_SUITE("session") {
    TEST_CASE("asked, sure, self-marked, marked, model answer, next review") {
        InterviewBook book;
        Script d({kHost, "3", "1 2 3 4 5 6 7"});
        const auto mark = ask_question({kContent, 3, true}, book, d);
        REQUIRE(mark);
        CHECK(mark->score >= 95);
        CHECK(d.heard.find("exit code 137") != std::string::npos);
        CHECK(d.heard.find("model answer") != std::string::npos);
        CHECK(d.heard.find("does not understand") != std::string::npos);
        REQUIRE(book.attempts.size() == 1);
        CHECK(book.attempts[0].confidence == 3);
        CHECK(book.attempts[0].self_agreed == 100);
        CHECK(book.memory[2].stability > 0);
    }
    TEST_CASE("follow-ups come from what is missing, at most two, and know when they were answered") {
        InterviewBook book;
        Script d({"It was killed with SIGKILL by the oom killer, the container's memory limit.", "2", "", "dmesg shows Killed process.", "no idea"});
        REQUIRE(ask_question({kContent, 3, true}, book, d));
        std::size_t asked = 0;
        for (std::size_t at = d.heard.find("Follow-up:"); at != std::string::npos; at = d.heard.find("Follow-up:", at + 1)) ++asked;
        CHECK(asked == 2);
        CHECK(d.heard.find("That is it.") != std::string::npos);
    }
    TEST_CASE("an input that stops early still ends well") {
        InterviewBook book;
        Script d({kHost});
        CHECK(ask_question({kContent, 3, true}, book, d));
        Script silent({});
        CHECK_FALSE(ask_question({kContent, 3, true}, book, silent));
        CHECK(book.attempts.size() == 1);
    }
    TEST_CASE("a mock asks all seven in the seed's order and marks at the end") {
        InterviewBook book;
        Script d({kHost, kHost, kHost, kHost, kHost, kHost, kHost});
        const auto mean = mock_interview(kContent, 3, book, d);
        REQUIRE(mean);
        CHECK(*mean < 60);
        CHECK(book.attempts.size() == 7);
        Script slow({kHost, kHost, kHost, kHost, kHost, kHost, kHost});
        slow.seconds_an_answer = 700;
        InterviewBook other;
        REQUIRE(mock_interview(kContent, 3, other, slow));
        CHECK(slow.heard.find("not reached in time") != std::string::npos);
        CHECK(other.attempts.size() == 2);
    }
}

TEST_SUITE("book") {
    TEST_CASE("survives writing and reading, and leaves no neighbour") {
        const std::string folder = fresh_folder("roundtrip");
        InterviewBook book;
        book.interview_day = 20100;
        record(book, {20000, 4, 88.5, 2, 100, 70, false}, Grade::good);
        REQUIRE(save_book(folder, book));
        const auto again = load_book(folder);
        REQUIRE(again);
        CHECK(again->interview_day == 20100);
        CHECK(again->attempts.size() == 1);
        CHECK(again->memory[3].stability == doctest::Approx(2.3065));
        CHECK_FALSE(std::filesystem::exists(folder + "/.oomlab/interview.json.new"));
        std::filesystem::remove_all(folder);
    }
    TEST_CASE("a broken book is refused and left alone") {
        const std::string folder = fresh_folder("broken");
        std::filesystem::create_directories(folder + "/.oomlab");
        std::ofstream(folder + "/.oomlab/interview.json") << "{\"version\": 1, \"cards\": 3";
        CHECK_FALSE(load_book(folder));
        std::ofstream(folder + "/.oomlab/interview.json") << "{\"version\": 1, \"cards\": [], \"attempts\": [{\"day\": \"x\"}]}";
        CHECK_FALSE(load_book(folder));
        std::filesystem::remove_all(folder);
    }
    TEST_CASE("days are read and written") {
        CHECK(*parse_day("1970-01-01") == 0);
        CHECK(*parse_day("2027-03-15") == 20892);
        CHECK(format_day(20892) == "2027-03-15");
        CHECK_FALSE(parse_day("2027-02-30"));
        CHECK_FALSE(parse_day("tomorrow"));
    }
    TEST_CASE("the grade is derived from mark, certainty and time") {
        Mark m;
        m.score = 97;
        CHECK(grade_of(m, 60, 3, 100) == Grade::easy);
        CHECK(grade_of(m, 60, 2, 100) == Grade::good);
        CHECK(grade_of(m, 60, 3, 500) == Grade::good);
        m.score = 70;
        CHECK(grade_of(m, 60, 3, 100) == Grade::hard);
        m.concepts.push_back({});
        m.concepts[0].state = State::contradicted;
        CHECK(grade_of(m, 60, 3, 100) == Grade::again);
    }
    TEST_CASE("sure and wrong comes first on the next day") {
        InterviewBook book;
        record(book, {20000, 2, 90, 2, 100, -1, false}, Grade::again);
        record(book, {20000, 5, 10, 3, 100, -1, false}, Grade::again);
        const auto due = due_questions(book, 20001);
        REQUIRE(due.size() == 7);
        CHECK(due[0] == 5);
        CHECK(due[1] == 2);
        CHECK(certainty_points(3, false) == -6);
        CHECK(certainty_points(2, true) == 2);
    }
    TEST_CASE("the cards of Anki have header lines and three fields each") {
        const auto cards = anki_cards(kContent);
        REQUIRE(cards);
        CHECK(cards->rfind("#separator:tab\n", 0) == 0);
        std::size_t lines = 0, tabs = 0;
        for (const char c : *cards) lines += c == '\n' ? 1 : 0, tabs += c == '\t' ? 1 : 0;
        CHECK(tabs == 2 * (lines - 4));
        CHECK(lines > 40);
    }
}

TEST_SUITE("fsrs") {
    TEST_CASE("first reviews have the published stabilities") {
        CHECK(review({}, Grade::again, 0).stability == doctest::Approx(0.212));
        CHECK(review({}, Grade::hard, 0).stability == doctest::Approx(1.2931));
        CHECK(review({}, Grade::good, 0).stability == doctest::Approx(2.3065));
        CHECK(review({}, Grade::easy, 0).stability == doctest::Approx(8.2956));
    }
    TEST_CASE("recall is 90 percent after as many days as the stability, and falls") {
        Memory m{10, 5, 0};
        CHECK(recall(m, 10) == doctest::Approx(0.9));
        CHECK(recall(m, 0) == doctest::Approx(1.0));
        CHECK(recall(m, 30) < recall(m, 20));
        CHECK(interval_days(10) == 10);
        CHECK(interval_days(0.001) == 1);
    }
    TEST_CASE("remembering strengthens, forgetting weakens, difficulty stays within 1 and 10") {
        Memory m = review({}, Grade::good, 0);
        const Memory good = review(m, Grade::good, 3), hard = review(m, Grade::hard, 3), easy = review(m, Grade::easy, 3), again = review(m, Grade::again, 3);
        CHECK(good.stability > m.stability);
        CHECK(hard.stability < good.stability);
        CHECK(easy.stability > good.stability);
        CHECK(again.stability < m.stability);
        for (int i = 0; i < 50; ++i) m = review(m, Grade::again, i);
        CHECK(m.difficulty <= 10);
        for (int i = 0; i < 50; ++i) m = review(m, Grade::easy, 100 + i * 100);
        CHECK(m.difficulty >= 1);
    }
    TEST_CASE("before an interview every card comes twice in the last week") {
        for (i64 start = 0; start < 40; ++start) {
            Memory m = review({}, Grade::easy, start);
            const i64 interview = 60;
            int last_week = 0;
            for (i64 day = start; day < interview;) {
                const i64 next = next_day(m, day, interview);
                REQUIRE(next > day);
                if (next >= interview) break;
                last_week += interview - next <= 7 ? 1 : 0;
                m = review(m, Grade::easy, next);
                day = next;
            }
            CHECK(last_week >= 2);
        }
    }
    TEST_CASE("without a date no interval is longer than 60 days") {
        CHECK(next_day({500, 3, 0}, 100, -1) == 160);
    }
}
