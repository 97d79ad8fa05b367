#include "ui/course_host/folder_course.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "grader/interview/marking.hpp"
#include "labs/catalog/content_dir.hpp"
#include "ui/view_model/live_trace.hpp"

namespace oomlab::window {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kMostFileBytes = 256 * kKiB;
constexpr int kRereadEveryTurns = 10;

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(kMostFileBytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return text;
}

// A neighbour and a rename: a file of the learner's is never half written.
bool write_file(const std::string& path, const std::string& text) {
    {
        std::ofstream file(path + ".new", std::ios::binary | std::ios::trunc);
        file << text;
        if (!file) return false;
    }
    std::error_code ec;
    fs::rename(path + ".new", path, ec);
    return !ec;
}

std::string word(const json& object, const char* key) {
    const auto at = object.find(key);
    if (at == object.end() || at->is_null()) return "";
    return at->is_string() ? at->get<std::string>() : at->dump();
}

CourseLine::State state_of(const std::string& text) {
    if (text == "pass" || text == "explained" || text == "claimed") return CourseLine::State::pass;
    if (text == "blocked" || text == "not_run") return CourseLine::State::blocked;
    if (text == "error") return CourseLine::State::error;
    return CourseLine::State::not_yet;
}

// `oomlab check --json`: a list of exercises with their checks.
std::vector<CourseLine> checks_of(const std::string& text) {
    std::vector<CourseLine> lines;
    const json list = json::parse(text, nullptr, false);
    if (!list.is_array()) return lines;
    for (const json& exercise : list) {
        const auto checks = exercise.is_object() ? exercise.find("checks") : exercise.end();
        if (!exercise.is_object() || checks == exercise.end() || !checks->is_array()) continue;
        for (const json& c : *checks) {
            if (!c.is_object()) continue;
            CourseLine line;
            line.id = word(c, "title");
            line.state = state_of(word(c, "state"));
            line.text = word(c, "saw");
            if (const std::string next = word(c, "next"); !next.empty() && line.state != CourseLine::State::pass)
                line.text += (line.text.empty() ? "" : "\n") + next;
            lines.push_back(std::move(line));
        }
    }
    return lines;
}

// `interview mark --json` and `runbook mark --json`: concepts, what is dangerous, and the feedback.
std::vector<CourseLine> marks_of(const std::string& text) {
    std::vector<CourseLine> lines;
    const json mark = json::parse(text, nullptr, false);
    if (!mark.is_object()) return lines;
    CourseLine head;
    head.text = fmt::format("{} of 100, {}", word(mark, "score"), mark.value("pass", false) ? "a pass" : "not yet");
    lines.push_back(head);
    const auto each = [&](const char* key, const auto& use) {
        const auto at = mark.find(key);
        if (at == mark.end() || !at->is_array()) return;
        for (const json& item : *at) use(item);
    };
    each("feedback", [&](const json& f) {
        CourseLine line;
        line.text = f.is_string() ? f.get<std::string>() : f.is_object() ? word(f, "text") : "";
        if (!line.text.empty()) lines.push_back(line);
    });
    each("dangerous", [&](const json& d) {
        if (!d.is_object()) return;
        CourseLine line;
        line.state = CourseLine::State::not_yet;
        line.id = fmt::format("dangerous, line {}", word(d, "line"));
        line.text = word(d, "why");
        lines.push_back(line);
    });
    each("concepts", [&](const json& c) {
        if (!c.is_object()) return;
        CourseLine line;
        line.id = word(c, "id");
        line.state = state_of(word(c, "state"));
        line.text = word(c, "where");
        lines.push_back(line);
    });
    return lines;
}

}  // namespace

Result<std::unique_ptr<FolderCourse>> FolderCourse::open(const std::string& from) {
    OOMLAB_TRY(folder, course::Folder::find(from));
    OOMLAB_TRY(exercises, course::load_course());
    if (exercises.empty()) return fail(Error::internal("the course has no exercise"));
    return std::unique_ptr<FolderCourse>(new FolderCourse(std::move(folder), std::move(exercises)));
}

FolderCourse::FolderCourse(course::Folder folder, std::vector<course::Exercise> exercises)
    : folder_(std::move(folder)), exercises_(std::move(exercises)) {
    page_.folder = folder_.root();
    std::size_t first = 0;
    while (first + 1 < exercises_.size() && folder_.progress(exercises_[first].id).passed) ++first;
    go_to(first);
}

void FolderCourse::go_to(std::size_t exercise) {
    page_.current = exercise;
    page_.hint.clear();
    page_.checks.clear();
    page_.output.clear();
    page_.prediction.clear();
    reread();
}

void FolderCourse::reread() {
    if (auto fresh = course::Folder::find(page_.folder)) folder_ = std::move(*fresh);
    page_.exercises.clear();
    for (const course::Exercise& e : exercises_) {
        const course::Progress& p = folder_.progress(e.id);
        page_.exercises.push_back({e.id, e.id + "  " + e.title,
                                   p.passed    ? CourseExercise::State::passed
                                   : p.started ? CourseExercise::State::begun
                                               : CourseExercise::State::not_started});
    }
    const course::Exercise& e = current();
    const course::Progress& p = folder_.progress(e.id);
    page_.title = e.title;
    page_.task = read_file(folder_.path(e, "README.md"));
    page_.wants_prediction = e.kind == "budget" || !e.predict.empty();
    page_.prediction_locked = p.prediction_locked;
    page_.prediction_path = e.kind == "budget" ? folder_.path(e, "budget.toml") : "";
    if (p.prediction_locked) {
        page_.prediction.clear();
        for (const auto& [key, value] : p.predicted) page_.prediction += key + " = " + value + "\n";
    } else if (page_.prediction.empty()) {
        if (e.kind == "budget") page_.prediction = read_file(folder_.path(e, "budget.toml"));
        else
            for (const course::PredictLine& line : e.predict) page_.prediction += "# " + line.ask + "\n" + line.key + " = \n";
    }
    if (page_.runbook.empty())
        for (const course::Exercise& x : exercises_)
            if (x.kind == "runbook") page_.runbook = read_file(folder_.path(x, "runbook.md"));
    const auto trace = view::find_trace(folder_.root() + "/.oomlab");
    page_.trace_path = trace ? *trace : "";
}

std::string FolderCourse::scenario() const {
    std::string newest;
    fs::file_time_type time{};
    for (const std::string& file : current().files) {
        const std::string path = folder_.path(current(), file);
        std::error_code ec;
        if (!file.ends_with(".toml") || file == "record.toml" || file == "budget.toml" || file == "answers.toml") continue;
        const auto at = fs::last_write_time(path, ec);
        if (ec || (!newest.empty() && at <= time)) continue;
        newest = path;
        time = at;
    }
    return newest;
}

void FolderCourse::begin(CourseVerb verb, const std::string& busy, const std::vector<std::string>& arguments,
                         const std::string& input) {
    if (verb_.running()) return;
    doing_ = verb;
    page_.busy = busy;
    if (!verb_.start(own_program(), arguments, page_.folder, input)) {
        page_.busy.clear();
        page_.output = verb_.problems();
    }
}

void FolderCourse::lock(const std::string& text) {
    const course::Exercise& e = current();
    if (e.kind == "budget") {
        if (!write_file(folder_.path(e, "budget.toml"), text)) {
            page_.output = "budget.toml cannot be written";
            return;
        }
        begin(CourseVerb::predict, "locking", {"predict", e.id});
        return;
    }
    // The terminal asks one question a line, in this order.
    std::string answers;
    for (const course::PredictLine& line : e.predict) {
        std::string answer;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            const std::string row = text.substr(at, end - at);
            at = end + 1;
            const std::size_t equals = row.find('=');
            if (equals == std::string::npos || row.starts_with('#')) continue;
            std::string key = row.substr(0, equals);
            key.erase(std::remove(key.begin(), key.end(), ' '), key.end());
            if (key == line.key) answer = row.substr(std::min(row.find_first_not_of(' ', equals + 1), row.size()));
        }
        answers += answer + "\n";
    }
    page_.prediction = text;
    begin(CourseVerb::predict, "locking", {"predict", e.id}, answers);
}

void FolderCourse::ask_next() {
    question_ = question_ % grader::kQuestions + 1;
    page_.marks.clear();
    page_.answer.clear();
    const auto content = content_dir();
    if (!content) {
        page_.question = content.error().message;
        return;
    }
    const auto rubric = grader::load_question(*content, question_);
    page_.question = rubric ? fmt::format("{}. {}", question_, (*rubric)->question) : rubric.error().message;
}

void FolderCourse::act(CourseVerb verb, const std::string& argument) {
    const course::Exercise& e = current();
    switch (verb) {
        case CourseVerb::run: {
            const std::string file = scenario();
            if (file.empty()) page_.output = "This exercise has no scenario to run; read its task.";
            else begin(verb, "running " + fs::path(file).filename().string(), {"run", "--plain", file});
            return;
        }
        case CourseVerb::check: begin(verb, "checking " + e.id, {"check", e.id, "--json"}); return;
        case CourseVerb::hint: begin(verb, "looking for a hint", {"hint", e.id}); return;
        case CourseVerb::reset: begin(verb, "resetting " + e.id, {"reset", e.id, "--yes"}); return;
        case CourseVerb::predict: lock(argument); return;
        case CourseVerb::next:
            for (std::size_t step = 1; step <= exercises_.size(); ++step) {
                const std::size_t at = (page_.current + step) % exercises_.size();
                if (folder_.progress(exercises_[at].id).passed) continue;
                go_to(at);
                return;
            }
            page_.output = "Everything is passed.";
            return;
        case CourseVerb::open:
            for (std::size_t i = 0; i < exercises_.size(); ++i)
                if (exercises_[i].id == argument) {
                    go_to(i);
                    return;
                }
            return;
        case CourseVerb::ask: ask_next(); return;
        case CourseVerb::answer:
            page_.answer = argument;
            begin(verb, "marking", {"interview", "mark", "--question", std::to_string(question_), "--json", "-"}, argument);
            return;
        case CourseVerb::lint: lint_wanted_ = argument; return;
        case CourseVerb::save_runbook:
            for (const course::Exercise& x : exercises_)
                if (x.kind == "runbook")
                    page_.output = write_file(folder_.path(x, "runbook.md"), argument) ? "saved" : "runbook.md cannot be written";
            page_.runbook = argument;
            return;
    }
}

void FolderCourse::ended(int status) {
    page_.busy.clear();
    const std::string said = verb_.output().empty() ? verb_.problems() : verb_.output();
    switch (doing_) {
        case CourseVerb::check:
            page_.checks = checks_of(verb_.output());
            page_.output = page_.checks.empty() ? said : status == 0 ? "Passed. N goes on." : "";
            break;
        case CourseVerb::hint: page_.hint = said; break;
        case CourseVerb::answer:
            page_.marks = marks_of(verb_.output());
            if (page_.marks.empty()) page_.output = said;
            break;
        case CourseVerb::lint: page_.lint = marks_of(verb_.output()); break;
        default: page_.output = said.substr(said.size() - std::min<std::size_t>(said.size(), 4000)); break;
    }
    reread();
}

bool FolderCourse::poll() {
    if (const auto status = verb_.poll()) {
        ended(*status);
        return true;
    }
    if (!verb_.running() && lint_wanted_ != lint_done_) {
        lint_done_ = lint_wanted_;
        begin(CourseVerb::lint, "reading the runbook", {"runbook", "mark", "--json", "-"}, lint_wanted_);
        return true;
    }
    // A run shows as soon as its trace is there; files change under an editor.
    if (++turns_ % kRereadEveryTurns != 0) return false;
    const std::string before = page_.trace_path + page_.task;
    reread();
    return before != page_.trace_path + page_.task;
}

}  // namespace oomlab::window
