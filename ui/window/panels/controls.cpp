#include <fmt/format.h>

#include "ui/window/panels/panels.hpp"

namespace oomlab::window {

void draw_controls(Ui& ui, ControlsPanel& panel, const Rect& rect) {
    Kit& kit = ui.kit;
    kit.begin_panel("controls", "", rect, false, false);
    const auto fits = [&](const char* label) { kit.same_line_if_fits(kit.width_of(label) + kit.em * 1.1f); };
    if (kit.button("controls.follow", ui.state.following() ? "Freeze  Space" : "Follow  Space")) ui.said = Command::follow;
    fits("Keys  ?");
    if (kit.button("controls.keys", "Keys  ?")) ui.said = Command::key_card;
    if (!ui.model.failures().empty()) {
        fits("Last failure  G");
        if (kit.button("controls.oom", "Last failure  G")) ui.said = Command::last_oom;
    }
    fits("Theme  K");
    if (kit.button("controls.theme", "Theme  K")) ui.said = Command::theme;
    if (ui.settings.vision != paint::Vision::normal) {
        const std::string seen = fmt::format("seen as {}  V", paint::vision_name(ui.settings.vision));
        fits(seen.c_str());
        if (kit.button("controls.vision", seen.c_str())) ui.said = Command::vision;
    }
    if (ui.control != nullptr) {
        const ControlState& c = ui.control->state();
        if (c.attached && c.can_pace) {
            fits("Continue  B");
            if (kit.button("controls.pause", c.paused ? "Continue  B" : "Pause  B", c.running)) ui.said = Command::pause;
            fits("Step  J");
            if (kit.button("controls.step", "Step  J", c.running && c.paused)) ui.said = Command::step;
            fits("Slower  <");
            if (kit.button("controls.slower", "Slower  <", c.running)) ui.said = Command::slower;
            fits("Faster  >");
            if (kit.button("controls.faster", "Faster  >", c.running)) ui.said = Command::faster;
            const std::string pace = c.speed > 0 ? fmt::format("{:g} s a second", c.speed) : std::string("as fast as it goes");
            kit.same_line_if_fits(kit.width_of(pace));
            kit.note("controls.pace", pace);
        } else if (!c.why_not.empty()) {
            kit.same_line_if_fits(kit.width_of(c.why_not));
            kit.note("controls.why_not", c.why_not);
        }
        if (!c.knobs.empty()) {
            fits("Change and run again");
            if (kit.button("controls.knobs", "Change and run again", !c.running, panel.open)) {
                panel.open = !panel.open;
                panel.knobs = c.knobs;
            }
        }
    }
    const std::string said = ui.link.problem.empty() ? ui.link.text : ui.link.text + ": " + ui.link.problem;
    kit.same_line_if_fits(kit.width_of(said));
    const bool bad = !ui.link.problem.empty();
    kit.text("controls.link", said, bad ? kit.palette.fail() : kit.theme.secondary);
    kit.end_panel();

    if (!panel.open || ui.control == nullptr) return;
    const float high = std::min(kit.em * (4.5f + 1.9f * static_cast<float>(panel.knobs.size())), rect.y0 - kit.em);
    kit.begin_panel("knobs", "CHANGE AND RUN AGAIN  the last run stays as a dashed line",
                    {rect.x0 + kit.em, rect.y0 - high, rect.x0 + kit.em * 29, rect.y0}, true, true, Kit::Layer::overlay);
    for (std::size_t i = 0; i < panel.knobs.size(); ++i) {
        Knob& knob = panel.knobs[i];
        const ImVec2 at = ImGui::GetCursorScreenPos();
        kit.text_at(fmt::format("knob{}.name", i).c_str(), at.x, at.y + kit.em * 0.2f, knob.name, kit.theme.text);
        ImGui::SetCursorScreenPos({at.x + kit.em * 15, at.y});
        kit.text_line(fmt::format("knob{}", i).c_str(), "", knob.value, kit.em * 10, false);
    }
    if (kit.button("knobs.run", "Run again")) {
        ui.control->run_again(panel.knobs);
        panel.open = false;
    }
    ImGui::SameLine();
    if (kit.button("knobs.close", "Close")) panel.open = false;
    kit.end_panel();
}

}  // namespace oomlab::window
