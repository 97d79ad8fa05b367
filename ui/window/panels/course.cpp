#include <fmt/format.h>

#include "ui/window/panels/panels.hpp"

namespace oomlab::window {
namespace {

void check_lines(Ui& ui, const char* id, const std::vector<CourseLine>& lines) {
    Kit& kit = ui.kit;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const CourseLine& l = lines[i];
        const char* word = "";
        paint::Rgb ink = kit.theme.secondary;
        switch (l.state) {
            case CourseLine::State::pass: word = "passed"; ink = kit.palette.pass(); break;
            case CourseLine::State::not_yet: word = "not yet"; ink = kit.palette.fail(); break;
            case CourseLine::State::blocked: word = "blocked"; break;
            case CourseLine::State::error: word = "error"; ink = kit.palette.fail(); break;
            case CourseLine::State::info: break;
        }
        const std::string name = fmt::format("{}{}", id, i);
        if (word[0] != '\0') {
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const float r = kit.em * 0.28f, y = at.y + kit.em * 0.5f;
            ImDrawList& draw = *ImGui::GetWindowDrawList();
            if (l.state == CourseLine::State::pass) {   // a tick
                draw.AddLine({at.x, y}, {at.x + r, y + r}, Kit::colour(ink), 2.5f);
                draw.AddLine({at.x + r, y + r}, {at.x + r * 2.6f, y - r}, Kit::colour(ink), 2.5f);
            } else if (l.state == CourseLine::State::blocked) {
                kit.health_shape(view::Health::no_data, at.x + r, y, r, ink);
            } else {
                kit.health_shape(view::Health::oom, at.x + r, y, r, ink);
            }
            ImGui::SetCursorScreenPos({at.x + kit.em * 1.0f, at.y});
            kit.text((name + ".word").c_str(), fmt::format("{}  {}", word, l.id), ink);
        }
        if (!l.text.empty()) kit.text(name.c_str(), l.text);
        if (l.trace_us >= 0 && kit.button((name + ".go").c_str(), ("Go to " + clock_text(l.trace_us)).c_str()))
            ui.state.put_cursor(l.trace_us);
    }
}

void list_of_exercises(Ui& ui, CoursePanel& panel, const CoursePage& page) {
    Kit& kit = ui.kit;
    for (std::size_t i = 0; i < page.exercises.size(); ++i) {
        const CourseExercise& e = page.exercises[i];
        const char* state = e.state == CourseExercise::State::passed ? "passed"
                            : e.state == CourseExercise::State::begun ? "begun" : "";
        const std::string label = state[0] == '\0' ? e.title : fmt::format("{} ({})", e.title, state);
        if (kit.button(fmt::format("course.open{}", i).c_str(), label.c_str(), true, i == page.current)) {
            ui.course->act(CourseVerb::open, e.id);
            panel.show_list = false;
        }
    }
}

void task(Ui& ui, CoursePanel& panel, const CoursePage& page) {
    Kit& kit = ui.kit;
    kit.text("course.title", page.title, kit.theme.accent);
    if (!page.task.empty()) kit.text("course.task", page.task);
    if (page.wants_prediction) {
        ImGui::Dummy({1, kit.em * 0.2f});
        if (panel.prediction_of != page.title) {
            panel.prediction_of = page.title;
            panel.prediction = page.prediction;
        }
        if (page.prediction_locked) {
            kit.note("course.locked", "Your prediction is locked: it is the ghost in the budget bar.");
            kit.text("course.prediction", page.prediction);
        } else {
            kit.note("course.predict.title", "Predict first. What you write is locked before the run.");
            kit.text_box("course.predict.box", panel.prediction, kit.em * 7, panel.focus_text);
            panel.focus_text = false;
            if (kit.button("course.lock", "Lock the prediction", !panel.prediction.empty()))
                ui.course->act(CourseVerb::predict, panel.prediction);
        }
    }
    if (!page.hint.empty()) {
        ImGui::Dummy({1, kit.em * 0.2f});
        kit.note("course.hint.title", "Hint");
        kit.text("course.hint", page.hint);
    }
    if (!page.checks.empty()) {
        ImGui::Dummy({1, kit.em * 0.2f});
        kit.note("course.checks.title", "Checks");
        check_lines(ui, "course.check", page.checks);
    }
    if (!page.output.empty()) {
        ImGui::Dummy({1, kit.em * 0.2f});
        kit.note("course.output", page.output);
    }
}

void interview(Ui& ui, CoursePanel& panel, const CoursePage& page) {
    Kit& kit = ui.kit;
    if (page.question.empty()) {
        kit.note("course.question.empty", "No question asked yet: press I, or the button, and answer in 40 to 180 words.");
    } else {
        kit.text("course.question", page.question, kit.theme.accent);
        if (panel.answer_of != page.question) {
            panel.answer_of = page.question;
            panel.answer = page.answer;
        }
        kit.text_box("course.answer.box", panel.answer, kit.em * 12, panel.focus_text);
        panel.focus_text = false;
        std::size_t words = 0;
        bool inside = false;
        for (const char c : panel.answer) {
            const bool letter = c != ' ' && c != '\n' && c != '\t';
            if (letter && !inside) ++words;
            inside = letter;
        }
        kit.note("course.words", fmt::format("{} words", words));
        if (kit.button("course.hand_in", "Hand in the answer", words > 0)) ui.course->act(CourseVerb::answer, panel.answer);
        check_lines(ui, "course.mark", page.marks);
    }
    if (kit.button("course.ask", page.question.empty() ? "Ask me  I" : "Next question  I")) ui.said = Command::ask;
}

void runbook(Ui& ui, CoursePanel& panel, const CoursePage& page) {
    Kit& kit = ui.kit;
    if (panel.runbook_of != page.folder + "#") {
        panel.runbook_of = page.folder + "#";
        panel.runbook = page.runbook;
    }
    const float room = std::max(kit.em * 10, ImGui::GetContentRegionAvail().y - kit.em * 8);
    if (kit.text_box("course.runbook.box", panel.runbook, room, panel.focus_text))
        ui.course->act(CourseVerb::lint, panel.runbook);
    panel.focus_text = false;
    if (kit.button("course.runbook.save", "Save")) ui.course->act(CourseVerb::save_runbook, panel.runbook);
    if (page.lint.empty()) kit.note("course.lint.empty", "The lint has nothing to say.");
    check_lines(ui, "course.lint", page.lint);
}

}  // namespace

void draw_course(Ui& ui, CoursePanel& panel, const Rect& rect) {
    Kit& kit = ui.kit;
    kit.begin_panel("course", "COURSE", rect, true, ui.focus == PanelId::course);
    if (ui.course == nullptr) {
        kit.note("course.empty", "No learner's folder here. Make one with: oomlab start DIR, and open the window inside it.");
        kit.end_panel();
        return;
    }
    const CoursePage& page = ui.course->page();
    static constexpr const char* kTabs[] = {"Task", "Interview", "Runbook"};
    static constexpr const char* kIds[] = {"course.tab.task", "course.tab.interview", "course.tab.runbook"};
    for (int i = 0; i < 3; ++i) {
        if (i > 0) kit.same_line_if_fits(kit.width_of(kTabs[i]) + kit.em * 1.1f);
        if (kit.button(kIds[i], kTabs[i], true, static_cast<int>(panel.tab) == i)) panel.tab = static_cast<CoursePanel::Tab>(i);
    }
    const bool idle = page.busy.empty();
    const bool may_run = !page.wants_prediction || page.prediction_locked;
    struct Verb {
        const char* id;
        const char* label;
        Command command;
        bool enabled;
    };
    const Verb verbs[] = {{"course.run", "Run  R", Command::run, idle && may_run},
                          {"course.check", "Check  C", Command::check, idle},
                          {"course.hint", "Hint  H", Command::hint, idle},
                          {"course.next", "Next  N", Command::next, idle},
                          {"course.list", "List  L", Command::list, true},
                          {"course.reset", "Reset  X", Command::reset, idle}};
    bool first = true;
    for (const Verb& v : verbs) {
        if (!first) kit.same_line_if_fits(kit.width_of(v.label) + kit.em * 1.1f);
        first = false;
        if (kit.button(v.id, v.label, v.enabled)) ui.said = v.command;
    }
    if (!idle) kit.text("course.busy", page.busy + " ...", kit.palette.warn());
    else if (!may_run) kit.note("course.may_run", "Run is open once the prediction is locked.");
    if (panel.ask_reset) {
        kit.text("course.reset.ask", "Reset this exercise's files to how they were? Runs and grades are kept.", kit.palette.warn());
        if (kit.button("course.reset.yes", "Yes, reset")) {
            ui.course->act(CourseVerb::reset, "");
            panel.ask_reset = false;
        }
        ImGui::SameLine();
        if (kit.button("course.reset.no", "No")) panel.ask_reset = false;
    }
    ImGui::Dummy({1, kit.em * 0.1f});
    if (panel.show_list) list_of_exercises(ui, panel, page);
    else if (panel.tab == CoursePanel::Tab::task) task(ui, panel, page);
    else if (panel.tab == CoursePanel::Tab::interview) interview(ui, panel, page);
    else runbook(ui, panel, page);
    kit.end_panel();
}

}  // namespace oomlab::window
