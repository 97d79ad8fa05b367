#include "grader/interview/book.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "labs/catalog/text_file.hpp"

namespace oomlab::grader {
namespace {

namespace fs = std::filesystem;
constexpr int kVersion = 1;
constexpr int kSecondsGood = 180;  // the time box of a question

std::string book_path(const std::string& folder) { return folder + "/.oomlab/interview.json"; }

// Days since 1970-01-01 of a civil date (H. Hinnant's algorithm).
i64 days_from_civil(i64 y, i64 m, i64 d) {
    y -= m <= 2 ? 1 : 0;
    const i64 era = (y >= 0 ? y : y - 399) / 400;
    const i64 yoe = y - era * 400;
    const i64 doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

std::string escape_field(std::string_view s) {
    std::string out;
    for (const char c : s) out += c == '\t' || c == '\r' ? ' ' : c == '\n' ? ' ' : c;
    return out;
}

const Attempt* last_attempt(const InterviewBook& book, int question) {
    for (auto it = book.attempts.rbegin(); it != book.attempts.rend(); ++it)
        if (it->question == question) return &*it;
    return nullptr;
}

}  // namespace

Result<InterviewBook> load_book(const std::string& folder) {
    const std::string path = book_path(folder);
    InterviewBook book;
    std::error_code ec;
    if (!fs::exists(path, ec)) return book;
    OOMLAB_TRY(text, read_text_file(path));
    const auto j = nlohmann::json::parse(text, nullptr, false);
    const std::string remedy = path + " is not a book of this program; move it away to begin a new one";
    if (j.is_discarded() || !j.is_object()) return fail(Error::parse(remedy));
    try {
        if (j.value("version", 0) != kVersion) return fail(Error::parse(remedy));
        book.interview_day = j.value("interview_day", i64{-1});
        const auto& cards = j.at("cards");
        for (std::size_t i = 0; i < book.memory.size() && i < cards.size(); ++i) {
            book.memory[i].stability = std::clamp(cards[i].value("stability", 0.0), 0.0, 36500.0);
            book.memory[i].difficulty = std::clamp(cards[i].value("difficulty", 0.0), 0.0, 10.0);
            book.memory[i].last_day = cards[i].value("last_day", i64{0});
        }
        for (const auto& a : j.at("attempts")) {
            Attempt t;
            t.day = a.value("day", i64{0});
            t.question = std::clamp(a.value("question", 1), 1, kQuestions);
            t.score = std::clamp(a.value("score", 0.0), 0.0, 100.0);
            t.confidence = std::clamp(a.value("confidence", 0), 0, 3);
            t.seconds = std::max(0, a.value("seconds", 0));
            t.self_agreed = a.value("self_agreed", -1);
            t.mock = a.value("mock", false);
            book.attempts.push_back(t);
            if (book.attempts.size() > kMaxAttempts) book.attempts.erase(book.attempts.begin());
        }
    } catch (const nlohmann::json::exception&) {
        return fail(Error::parse(remedy));
    }
    return book;
}

Result<void> save_book(const std::string& folder, const InterviewBook& book) {
    nlohmann::ordered_json j;
    j["version"] = kVersion;
    j["interview_day"] = book.interview_day;
    j["cards"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < book.memory.size(); ++i)
        j["cards"].push_back({{"question", i + 1}, {"stability", book.memory[i].stability}, {"difficulty", book.memory[i].difficulty}, {"last_day", book.memory[i].last_day}});
    j["attempts"] = nlohmann::ordered_json::array();
    for (const Attempt& a : book.attempts)
        j["attempts"].push_back({{"day", a.day}, {"question", a.question}, {"score", a.score}, {"confidence", a.confidence}, {"seconds", a.seconds}, {"self_agreed", a.self_agreed}, {"mock", a.mock}});
    const std::string text = j.dump(1) + "\n";
    const std::string path = book_path(folder);
    const std::string temporary = path + ".new";
    std::error_code ec;
    fs::create_directories(folder + "/.oomlab", ec);
    std::FILE* out = std::fopen(temporary.c_str(), "wb");
    if (out == nullptr) return fail(Error::io(temporary + " cannot be written"));
    bool good = std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0 && fsync(fileno(out)) == 0;
    good = std::fclose(out) == 0 && good;
    if (!good) return fail(Error::io(temporary + " could not be written completely; the old book is untouched"));
    fs::rename(temporary, path, ec);
    if (ec) return fail(Error::io(path + ": " + ec.message()));
    return {};
}

Result<i64> parse_day(std::string_view text) {
    int y = 0, m = 0, d = 0, used = 0;
    const std::string s(text);
    const bool read = s.size() == 10 && std::sscanf(s.c_str(), "%4d-%2d-%2d%n", &y, &m, &d, &used) == 3 && used == 10;
    if (read && y >= 1970 && y <= 9999 && m >= 1 && m <= 12 && d >= 1 && d <= 31) {
        const i64 day = days_from_civil(y, m, d);
        if (format_day(day) == s) return day;
    }
    return fail(Error::usage(fmt::format("'{}' is no date: write it as 2027-03-15", printable(text, 40))));
}

std::string format_day(i64 day) {
    const i64 z = day + 719468;
    const i64 era = (z >= 0 ? z : z - 146096) / 146097;
    const i64 doe = z - era * 146097;
    const i64 yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const i64 doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const i64 mp = (5 * doy + 2) / 153;
    const i64 m = mp + (mp < 10 ? 3 : -9);
    return fmt::format("{:04}-{:02}-{:02}", yoe + era * 400 + (m <= 2 ? 1 : 0), m, doy - (153 * mp + 2) / 5 + 1);
}

Grade grade_of(const Mark& mark, double pass, int confidence, int seconds) {
    const bool denied = std::any_of(mark.concepts.begin(), mark.concepts.end(), [](const ConceptMark& c) { return c.state == State::contradicted; });
    if (mark.score < pass || denied) return Grade::again;
    if (mark.score < 80) return Grade::hard;
    return mark.score >= 95 && seconds <= kSecondsGood && confidence == 3 ? Grade::easy : Grade::good;
}

void record(InterviewBook& book, const Attempt& attempt, Grade grade) {
    OOMLAB_CHECK(attempt.question >= 1 && attempt.question <= kQuestions);
    Memory& m = book.memory[static_cast<std::size_t>(attempt.question - 1)];
    m = review(m, grade, attempt.day);
    book.attempts.push_back(attempt);
    if (book.attempts.size() > kMaxAttempts) book.attempts.erase(book.attempts.begin());
}

std::vector<int> due_questions(const InterviewBook& book, i64 today) {
    struct Due {
        int question;
        int rank;  // 0 confidently wrong, 1 due, 2 never asked
        double recall;
    };
    std::vector<Due> due;
    for (int q = 1; q <= kQuestions; ++q) {
        const Memory& m = book.memory[static_cast<std::size_t>(q - 1)];
        if (m.stability <= 0) {
            due.push_back({q, 2, 0});
            continue;
        }
        const Attempt* last = last_attempt(book, q);
        const bool sure_and_wrong = last != nullptr && last->confidence == 3 && last->score < 60 && last->day < today;
        if (sure_and_wrong || next_day(m, m.last_day, book.interview_day) <= today) due.push_back({q, sure_and_wrong ? 0 : 1, recall(m, today - m.last_day)});
    }
    std::stable_sort(due.begin(), due.end(), [](const Due& a, const Due& b) { return a.rank != b.rank ? a.rank < b.rank : a.recall < b.recall; });
    std::vector<int> out;
    for (const Due& d : due) out.push_back(d.question);
    return out;
}

int certainty_points(int confidence, bool right) {
    if (confidence < 1 || confidence > 3) return 0;
    constexpr int kWrong[] = {0, -2, -6};
    return right ? confidence : kWrong[confidence - 1];
}

std::string stats_text(const InterviewBook& book, i64 today) {
    std::string out;
    if (book.interview_day >= today)
        out += fmt::format("interview on {}: {} days left\n", format_day(book.interview_day), book.interview_day - today);
    else
        out += "no interview date set (oomlab interview date YYYY-MM-DD)\n";
    out += "question  attempts  last  best  recall  next\n";
    for (int q = 1; q <= kQuestions; ++q) {
        int n = 0;
        double last = 0, best = 0;
        for (const Attempt& a : book.attempts) {
            if (a.question != q) continue;
            ++n;
            last = a.score;
            best = std::max(best, a.score);
        }
        const Memory& m = book.memory[static_cast<std::size_t>(q - 1)];
        if (n == 0)
            out += fmt::format("{:>8}  {:>8}  never asked\n", q, 0);
        else
            out += fmt::format("{:>8}  {:>8}  {:>4.0f}  {:>4.0f}  {:>5.0f}%  {}\n", q, n, last, best, 100 * recall(m, today - m.last_day), format_day(next_day(m, m.last_day, book.interview_day)));
    }
    int points = 0;
    for (int c = 1; c <= 3; ++c) {
        int n = 0, right = 0;
        for (const Attempt& a : book.attempts) {
            if (a.confidence != c) continue;
            ++n;
            right += a.score >= 60 ? 1 : 0;
            points += certainty_points(c, a.score >= 60);
        }
        constexpr const char* kNames[] = {"unsure", "fairly sure", "sure"};
        if (n > 0) out += fmt::format("{:<12} {} times, right {} times ({:.0f}%)\n", kNames[c - 1], n, right, 100.0 * right / n);
    }
    out += fmt::format("points of certainty: {}\n", points);
    return out;
}

Result<std::string> anki_cards(const std::string& content_dir) {
    std::string out = "#separator:tab\n#html:false\n#deck:oomlab interview\n#tags column:3\n";
    for (int q = 1; q <= kQuestions; ++q) {
        OOMLAB_TRY(rubric, load_question(content_dir, q));
        out += fmt::format("{}\t{}\toomlab question-{}\n", escape_field(rubric->question), escape_field(rubric->model_answer), q);
        for (const Concept& c : rubric->concepts)
            if (!c.missing.empty()) out += fmt::format("{}\t{}\toomlab idea question-{}\n", escape_field(c.missing), escape_field(c.name), q);
    }
    return out;
}

}  // namespace oomlab::grader
