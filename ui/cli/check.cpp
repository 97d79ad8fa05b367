// check, grade: the same judgement, once for practice (unchanged runs are remembered) and once fresh.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <time.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "grader/report/report.hpp"
#include "labs/runner/run_scenario.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/course.hpp"

namespace oomlab::cli {

namespace {

double wall_s() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void remember(CourseHere& here, const course::Exercise& e, const course::CheckResult& r) {
    course::Progress& p = here.folder.progress(e.id);
    p.started = true;
    if (r.graded()) p.score = r.score();
    p.passed = p.passed || r.passed();
    p.last_check.clear();
    for (const course::CheckPoint& c : r.points) {
        if (c.state == course::CheckState::pass) continue;
        p.last_check = fmt::format("{}: {}", c.title, c.saw);
        break;
    }
}

// 0 all passed, 1 not, 3 when nothing could run here, 5 when the grader broke.
int status_of(const std::vector<course::CheckResult>& results) {
    bool passed = true, any = false, broke = false;
    for (const auto& r : results) {
        passed = passed && r.passed();
        for (const auto& p : r.points) {
            any = any || p.state == course::CheckState::pass || p.state == course::CheckState::fail || p.state == course::CheckState::blocked;
            broke = broke || p.state == course::CheckState::error;
        }
    }
    return broke ? 5 : passed ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("check", "Check an exercise: what was seen, what was asked, one next step");
    auto name = std::make_shared<std::string>();
    auto all = std::make_shared<bool>(false);
    auto json = std::make_shared<bool>(false);
    cmd->add_option("EXERCISE", *name, "a1 to a6, b, c, d, e, incident, interview; default: the one you are at");
    cmd->add_flag("--all", *all, "Every exercise");
    cmd->add_flag("--json", *json, "One JSON list");
    cmd->callback([=, &exit_status] {
        auto here = course_here();
        if (!here) {
            exit_status = report(here.error());
            return;
        }
        std::vector<const course::Exercise*> wanted;
        if (*all) {
            for (const course::Exercise& e : here->exercises) wanted.push_back(&e);
        } else {
            auto one = pick_exercise(*here, *name);
            if (!one) {
                exit_status = report(one.error());
                return;
            }
            wanted.push_back(*one);
        }
        course::CheckOptions options;
        options.say = [](const std::string& line) { fmt::print(stderr, "checking: {}\n", line); };
        std::vector<course::CheckResult> results;
        for (const course::Exercise* e : wanted) {
            auto r = course::check_exercise(*e, here->folder, options);
            if (!r) {
                exit_status = report(r.error());
                return;
            }
            remember(*here, *e, *r);
            if (!*json) fmt::print("{}", course::check_text(*r));
            results.push_back(std::move(*r));
        }
        if (auto saved = here->folder.save(); !saved) {
            exit_status = report(saved.error());
            return;
        }
        if (*json) fmt::print("{}\n", course::check_json(results));
        exit_status = status_of(results);
        if (*json || *all) return;
        if (exit_status == 0) {
            const course::Exercise* next = next_exercise(*here);
            fmt::print("\nPassed. The solution is open now: oomlab solution {}\n", wanted.front()->id);
            if (next != nullptr) fmt::print("Next: {}  {}   (oomlab next)\n", next->id, next->title);
        } else {
            fmt::print("\nNot yet. Stuck? oomlab hint {}\n", wanted.front()->id);
        }
    });
}

void add_grade(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("grade", "Grade a folder: everything deterministic is run again");
    auto dir = std::make_shared<std::string>(".");
    auto format = std::make_shared<std::string>("text");
    auto exit_rule = std::make_shared<std::string>("result");
    auto output = std::make_shared<std::string>();
    cmd->add_option("DIR", *dir, "The learner's folder");
    cmd->add_option("--format", *format, "text json gradescope junit classroom50 autolab csv");
    cmd->add_option("--exit", *exit_rule, "result: 0 all passed, 1 not; harness: 0 when the grader ran")->check(CLI::IsMember({"result", "harness"}));
    cmd->add_option("--output", *output, "Write to this file instead of the terminal");
    cmd->callback([=, &exit_status] {
        const bool harness = *exit_rule == "harness";
        const auto broke = [&](const Error& e) {
            const int code = report(e);
            exit_status = harness ? 5 : code;
        };
        auto probe = course::export_grade({}, *format);
        if (!probe) return broke(probe.error());
        auto folder = course::Folder::find(*dir);
        auto exercises = course::load_course();
        if (!folder || !exercises) return broke(!folder ? folder.error() : exercises.error());
        course::Grade grade;
        grade.folder_name = std::filesystem::path(folder->root()).filename().string();
        const double began = wall_s();
        course::CheckOptions options;
        options.fresh = true;
        std::size_t n = 0;
        for (const course::Exercise& e : *exercises) {
            ++n;
            options.say = [&](const std::string& line) { fmt::print(stderr, "grading {}/{}: {}\n", n, exercises->size(), line); };
            auto r = course::check_exercise(e, *folder, options);
            if (!r) {
                course::CheckResult broken;
                broken.exercise = e.id;
                broken.title = e.title;
                course::CheckPoint p;
                p.id = e.id + ".grader";
                p.title = e.title;
                p.max = e.points;
                p.state = course::CheckState::error;
                p.saw = r.error().message;
                broken.points.push_back(p);
                grade.results.push_back(broken);
                continue;
            }
            grade.results.push_back(std::move(*r));
        }
        grade.wall_s = wall_s() - began;
        auto text = course::export_grade(grade, *format);
        if (!text) return broke(text.error());
        if (output->empty()) {
            fmt::print("{}", *text);
        } else if (auto written = runner::write_file(*output, *text); !written) {
            return broke(written.error());
        } else {
            fmt::print(stderr, "written: {}\n", *output);
        }
        std::fflush(stdout);
        exit_status = harness ? 0 : status_of(grade.results);
    });
}

}  // namespace oomlab::cli
