#include "ui/cli/course.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

namespace oomlab::cli {

namespace {
std::string here_path() {
    std::error_code ec;
    return std::filesystem::current_path(ec).string();
}
}  // namespace

Result<CourseHere> course_here() {
    OOMLAB_TRY(folder, course::Folder::find(here_path()));
    OOMLAB_TRY(exercises, course::load_course());
    return CourseHere{std::move(exercises), std::move(folder)};
}

const course::Exercise* next_exercise(CourseHere& here) {
    for (const course::Exercise& e : here.exercises) {
        if (!here.folder.progress(e.id).passed) return &e;
    }
    return nullptr;
}

Result<const course::Exercise*> pick_exercise(CourseHere& here, const std::string& name) {
    std::string wanted = name;
    while (!wanted.empty() && wanted.back() == '/') wanted.pop_back();
    if (wanted.empty()) {
        const std::string at = here_path();
        for (const course::Exercise& e : here.exercises) {
            if (at == here.folder.root() + "/" + e.id) wanted = e.id;
        }
    }
    if (wanted.empty()) {
        const course::Exercise* next = next_exercise(here);
        return next != nullptr ? next : &here.exercises.back();
    }
    std::string known;
    for (const course::Exercise& e : here.exercises) {
        if (e.id == wanted) return &e;
        known += " " + e.id;
    }
    return fail(Error::usage(fmt::format("no exercise {}; there are:{}", wanted, known)));
}

std::string listing(CourseHere& here) {
    std::string out;
    for (const course::Exercise& e : here.exercises) {
        const course::Progress& p = here.folder.progress(e.id);
        out += fmt::format("  {} {:10} {}{}\n", p.passed ? "[x]" : "[ ]", e.id, e.title, p.score >= 0 && !p.passed ? fmt::format("  ({:g} of {:g} points)", p.score, e.points) : "");
    }
    return out;
}

std::string standing(CourseHere& here) {
    std::size_t done = 0;
    for (const course::Exercise& e : here.exercises) done += here.folder.progress(e.id).passed ? 1 : 0;
    const std::size_t all = here.exercises.size();
    std::string bar;
    for (std::size_t i = 0; i < all; ++i) bar += i < done ? '#' : '-';
    std::string out = fmt::format("[{}] {} of {} exercises done\n\n", bar, done, all);
    const course::Exercise* next = next_exercise(here);
    if (next == nullptr) return out + "All done. Show it: oomlab grade. Keep it fresh: oomlab interview review.\n";
    const course::Progress& p = here.folder.progress(next->id);
    out += fmt::format("now: {}  {}\n", next->id, next->title);
    if (!p.last_check.empty()) out += fmt::format("last check: {}\n", p.last_check);
    out += fmt::format("\n  read     {}/README.md\n", next->id);
    if (!next->predict.empty() && p.predicted.empty()) out += fmt::format("  predict  oomlab predict {}\n", next->id);
    if (next->kind == "induce") out += fmt::format("  run      oomlab run {}/broken.toml\n", next->id);
    out += fmt::format("  check    oomlab check {}\n  stuck?   oomlab hint {}\n", next->id, next->id);
    return out;
}

}  // namespace oomlab::cli
