// list, next, hint, solution, reset, predict: small verbs of the course, one screen each.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <algorithm>
#include <functional>
#include <memory>

#include "labs/catalog/text_file.hpp"
#include "labs/catalog/toml_reader.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/course.hpp"

namespace oomlab::cli {

namespace {

using Work = std::function<int(CourseHere&, const course::Exercise&)>;

void verb(CLI::App& app, int& exit_status, const char* name, const char* summary, Work work) {
    auto* cmd = app.add_subcommand(name, summary);
    auto exercise = std::make_shared<std::string>();
    cmd->add_option("EXERCISE", *exercise, "a1 to a6, b, c, d, e, incident, interview; default: the one you are at");
    cmd->callback([=, &exit_status] {
        auto here = course_here();
        if (!here) {
            exit_status = report(here.error());
            return;
        }
        auto e = pick_exercise(*here, *exercise);
        exit_status = e ? work(*here, **e) : report(e.error());
    });
}

int saved(CourseHere& here) {
    auto s = here.folder.save();
    return s ? 0 : report(s.error());
}

std::string ask(const std::string& question) {
    fmt::print("{} ", question);
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) return "";
    return line.substr(0, 1000);
}

int hint(CourseHere& here, const course::Exercise& e) {
    static constexpr const char* kSteps[] = {"nudge", "hint", "fill in", "tell"};
    course::Progress& p = here.folder.progress(e.id);
    const int step = std::min(p.hints, 3);
    if (!p.last_check.empty()) fmt::print("your last check: {}\n\n", p.last_check);
    for (int i = 0; i <= step; ++i) fmt::print("{} of 4, {}: {}\n", i + 1, kSteps[i], here.folder.instantiate(e, e.hints[static_cast<std::size_t>(i)]));
    if (step < 3) fmt::print("\nAsk again for the next step.\n");
    p.hints = std::min(p.hints + 1, 4);
    return saved(here);
}

int solution(CourseHere& here, const course::Exercise& e) {
    course::Progress& p = here.folder.progress(e.id);
    if (!p.passed) {
        fmt::print("The solution of {} opens after you pass it. Until then: oomlab hint {}\n", e.id, e.id);
        return 1;
    }
    std::error_code ec;
    std::vector<std::string> files;
    for (const auto& f : std::filesystem::directory_iterator(e.folder + "/solution", ec)) files.push_back(f.path().string());
    std::sort(files.begin(), files.end());
    for (const std::string& f : files) {
        auto text = read_text_file(f);
        if (!text) return report(text.error());
        fmt::print("--- {}\n{}\n", std::filesystem::path(f).filename().string(), here.folder.instantiate(e, *text));
    }
    p.solution_seen = true;
    return saved(here);
}

// What a budget locks: the whole of budget.toml; elsewhere the questions of the task.
int lock_budget(CourseHere& here, const course::Exercise& e) {
    auto text = read_text_file(here.folder.path(e, "budget.toml"));
    if (!text) return report(text.error());
    auto root = parse_toml(*text, e.id + "/budget.toml");
    if (!root) return report(root.error());
    course::Progress& p = here.folder.progress(e.id);
    std::map<std::string, std::string> lines;
    for (const auto& [section, value] : *root) {
        const toml::table* t = value.as_table();
        if (t == nullptr) continue;
        const auto size = (*t)["size"].value<std::string>().value_or("");
        if (size.empty()) return report(Error::parse(fmt::format("{}/budget.toml: [{}] has no size yet", e.id, std::string(section.str()))));
        if (auto bytes = parse_bytes(size); !bytes) return report(Error::parse(fmt::format("{}/budget.toml: [{}] size: {}", e.id, std::string(section.str()), bytes.error().message)));
        lines[std::string(section.str()) + ".size"] = size;
    }
    p.predicted = lines;
    p.prediction_locked = true;
    fmt::print("locked: {} lines. What counts is what stands here now. Check: oomlab check {}\n", lines.size(), e.id);
    return saved(here);
}

int predict(CourseHere& here, const course::Exercise& e) {
    course::Progress& p = here.folder.progress(e.id);
    if (p.prediction_locked && !p.predicted.empty()) {
        fmt::print("Your prediction is locked, since the run has been made:\n");
        for (const auto& [key, value] : p.predicted) fmt::print("  {} = {}\n", key, value);
        return 0;
    }
    if (e.kind == "budget") return lock_budget(here, e);
    if (e.predict.empty()) {
        fmt::print("{} asks for no prediction.\n", e.id);
        return 0;
    }
    fmt::print("Before you measure: what do you expect? It is kept and shown beside the result; a wrong guess costs nothing.\n");
    for (const course::PredictLine& line : e.predict) {
        while (true) {
            const std::string answer = ask(line.ask);
            if (std::cin.eof() && answer.empty()) {
                fmt::print("\n");
                return report(Error::usage("the prediction was not finished; nothing was kept"));
            }
            if (line.unit == "bytes" && !parse_bytes(answer)) {
                fmt::print("  a size, please: 512MiB, 6GiB\n");
                continue;
            }
            if (answer.empty()) continue;
            p.predicted[line.key] = answer;
            break;
        }
    }
    fmt::print("Kept. It is locked by the first check.\n");
    return saved(here);
}

}  // namespace

void add_hint(CLI::App& app, int& exit_status) {
    verb(app, exit_status, "hint", "Help in four steps: nudge, hint, fill in, tell", hint);
}
void add_solution(CLI::App& app, int& exit_status) {
    verb(app, exit_status, "solution", "The solution, once you have passed", solution);
}
void add_predict(CLI::App& app, int& exit_status) {
    verb(app, exit_status, "predict", "Say what you expect, before you measure", predict);
}
void add_next(CLI::App& app, int& exit_status) {
    verb(app, exit_status, "next", "What to do now", [](CourseHere& here, const course::Exercise&) {
        const course::Exercise* e = next_exercise(here);
        if (e == nullptr) {
            fmt::print("{}", standing(here));
            return 0;
        }
        auto text = read_text_file(here.folder.path(*e, "README.md"));
        if (!text) return report(text.error());
        fmt::print("{}", *text);
        return 0;
    });
}
void add_list(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("list", "All exercises and where you stand");
    cmd->callback([&exit_status] {
        auto here = course_here();
        if (!here) {
            exit_status = report(here.error());
            return;
        }
        fmt::print("{}", listing(*here));
        exit_status = 0;
    });
}
void add_reset(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("reset", "Start an exercise again; what was there is kept as evidence");
    auto name = std::make_shared<std::string>();
    auto yes = std::make_shared<bool>(false);
    cmd->add_option("EXERCISE", *name, "Which one")->required();
    cmd->add_flag("--yes", *yes, "Do not ask");
    cmd->callback([=, &exit_status] {
        auto here = course_here();
        if (!here) {
            exit_status = report(here.error());
            return;
        }
        auto e = pick_exercise(*here, *name);
        if (!e) {
            exit_status = report(e.error());
            return;
        }
        if (!*yes && ask(fmt::format("Start {} again? Your files move to .oomlab/evidence. [y/N]", (*e)->id)) != "y") {
            fmt::print("nothing was changed\n");
            exit_status = 0;
            return;
        }
        auto kept = here->folder.reset(**e);
        if (!kept) {
            exit_status = report(kept.error());
            return;
        }
        fmt::print("{} is as it was handed out; your files are in {}\n", (*e)->id, *kept);
        exit_status = 0;
    });
}

}  // namespace oomlab::cli
