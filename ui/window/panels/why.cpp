#include <fmt/format.h>

#include "ui/window/panels/panels.hpp"

namespace oomlab::window {
namespace {

// The chapter's chart as a ladder: one question a row, the way that was taken drawn bright.
void chart(Ui& ui) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const view::Chart& c = ui.summary.chart;
    const float wide = ImGui::GetContentRegionAvail().x;
    const float row = kit.fonts.small_px + kit.em * 0.55f;
    const bool both = wide > kit.em * 20;   // question and type beside each other
    const float question = both ? wide * 0.52f : wide;
    const auto box = [&](const char* id, const Rect& r, std::string_view text, bool lit, bool dim) {
        draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, Kit::colour(lit ? kit.theme.button_hover : kit.theme.field));
        draw.AddRect({r.x0, r.y0}, {r.x1, r.y1}, Kit::colour(lit ? kit.theme.accent : kit.theme.edge), 0, 0, lit ? 2.0f : 1.0f);
        kit.text_at(id, r.x0 + kit.em * 0.3f, r.y0 + kit.em * 0.16f, text, dim ? kit.theme.secondary : kit.theme.text,
                    kit.fonts.small, r.width() - kit.em * 0.6f);
    };
    const auto rung = [&](const char* id, const std::string& q, const std::string& type, bool asked, bool yes, bool plain) {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const Rect left{at.x, at.y, at.x + question - (both ? kit.em * 2.4f : 0), at.y + row};
        if (!plain) box(id, left, q, asked, !asked);
        if (both) {
            const Rect right{at.x + question, at.y, at.x + wide, at.y + row};
            box((std::string(id) + ".type").c_str(), right, type, yes, !yes);
            if (!plain) {
                const float middle = at.y + row / 2;
                const ImU32 ink = Kit::colour(yes ? kit.theme.accent : kit.theme.edge);
                draw.AddLine({left.x1, middle}, {right.x0, middle}, ink, yes ? 3.0f : 1.0f);
                kit.text_at((std::string(id) + ".answer").c_str(), left.x1 + kit.em * 0.35f, middle - kit.fonts.small_px - 1,
                            yes ? "yes" : asked ? "no" : "", yes ? kit.theme.text : kit.theme.secondary, kit.fonts.small);
            }
        } else if (yes) {
            const Rect under{at.x + kit.em, at.y + row + 2, at.x + wide, at.y + row * 2 + 2};
            box((std::string(id) + ".type").c_str(), under, "yes: " + type, true, false);
            ImGui::Dummy({wide, row});
        }
        ImGui::Dummy({wide, row - ImGui::GetStyle().ItemSpacing.y + kit.em * 0.2f});
    };
    for (std::size_t i = 0; i < c.nodes.size(); ++i) {
        const view::ChartNode& n = c.nodes[i];
        const bool asked = n.answer != view::ChartNode::Answer::not_asked;
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const std::string id = fmt::format("why.chart{}", i);
        rung(id.c_str(), n.question, n.yes, asked, n.answer == view::ChartNode::Answer::yes, false);
        if (asked && ImGui::IsMouseHoveringRect({at.x, at.y}, {at.x + wide, at.y + row})) ImGui::SetTooltip("%s", n.because.c_str());
    }
    rung("why.chart.else", "none of these", c.otherwise, c.type == 3, c.type == 3, !both && c.type != 3);
    const diagnosis::Diagnosis& d = ui.summary.diagnosis;
    if (!d.summary.empty()) kit.text("why.because", d.summary);
}

void remedies(Ui& ui) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const diagnosis::Diagnosis& e = ui.summary.diagnosis;
    if (e.remedies.empty()) return;
    ImGui::Dummy({1, kit.em * 0.2f});
    kit.note("why.remedies.title", fmt::format("What would have made it fit ({} were missing)", human_bytes(e.short_by_bytes)));
    const u64 most = std::max<u64>(1, e.remedies.front().bytes);
    for (std::size_t i = 0; i < e.remedies.size(); ++i) {
        const diagnosis::Remedy& r = e.remedies[i];
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float wide = ImGui::GetContentRegionAvail().x;
        const float full = kit.em * 6;
        const float length = std::max(3.0f, full * static_cast<float>(r.bytes) / static_cast<float>(most));
        const paint::Rgb ink = r.enough ? kit.palette.pass() : kit.theme.secondary;
        draw.AddRectFilled({at.x, at.y + kit.em * 0.25f}, {at.x + length, at.y + kit.em * 0.75f}, Kit::colour(ink));
        kit.text_at(fmt::format("why.remedy{}.bytes", i).c_str(), at.x + length + kit.em * 0.4f, at.y,
                    gib(r.bytes) + (r.enough ? ", enough" : ", not enough alone"), ink, nullptr,
                    wide - length - kit.em * 0.4f);
        ImGui::Dummy({wide, kit.em});
        kit.text(fmt::format("why.remedy{}", i).c_str(), r.what);
    }
}

void evidence(Ui& ui) {
    const diagnosis::Diagnosis& d = ui.summary.diagnosis;
    if (d.evidence.empty()) return;
    ImGui::Dummy({1, ui.kit.em * 0.2f});
    ui.kit.note("why.evidence.title", "What proves it");
    for (std::size_t i = 0; i < d.evidence.size() && i < 6; ++i)
        ui.kit.text(fmt::format("why.evidence{}", i).c_str(), d.evidence[i]);
}

}  // namespace

void draw_why(Ui& ui, const Rect& rect) {
    Kit& kit = ui.kit;
    const view::Summary& s = ui.summary;
    const bool killed = s.health == view::Health::killed;
    const bool failed = s.failure != nullptr || s.chart.type != 0 || killed;
    kit.begin_panel("why", failed ? "WHY IT FAILED" : "WHY IT FAILED  (it has not)", rect, true, ui.focus == PanelId::why);
    if (!failed) {
        if (s.health == view::Health::ended)
            kit.note("why.empty", s.leading == nullptr
                                      ? "It ended by itself, with exit status 0. Nothing failed."
                                      : fmt::format("It ended by itself before it failed, but {} rose all the while: {}",
                                                    s.leading_name, s.full_us >= 0 ? "the card would have been full at " + clock_text(s.full_us) + "."
                                                                                   : std::string("look at the timeline.")));
        else if (s.leading != nullptr)
            kit.note("why.empty", fmt::format("Nothing has failed yet, but {} rises: {}", s.leading_name,
                                              s.full_us >= 0 ? "at this rate the card is full at " + clock_text(s.full_us) + "."
                                                             : std::string("watch it.")));
        else
            kit.note("why.empty", "Nothing has failed. After a failure this says what was asked, what was there, which of the six types it is, "
                                  "and what would have made it fit.");
        kit.end_panel();
        return;
    }
    if (s.failure == nullptr) {
        kit.text("why.headline", ui.model.host_oom()
                                     ? "The kernel killed the server: SIGKILL, exit status 137. There is no traceback; this is the host's "
                                       "memory, not the GPU's."
                                     : "The server was killed: SIGKILL, exit status 137, and not by the kernel's own rule. Practice for type "
                                       "5, or somebody's kill: no proof of either.");
        if (ui.model.host())
            kit.note("why.host", fmt::format("last seen: {} resident, {} of a limit of {} in the cgroup",
                                             human_bytes(ui.model.host()->rss_bytes), human_bytes(ui.model.host()->cgroup_current_bytes),
                                             human_bytes(ui.model.host()->cgroup_limit_bytes)));
    } else {
        kit.text("why.headline", s.why.headline);
        ImGui::Dummy({1, kit.em * 0.1f});
        for (std::size_t i = 0; i < s.why.lines.size(); ++i) {
            const view::WhyLine& l = s.why.lines[i];
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const float wide = ImGui::GetContentRegionAvail().x;
            const std::string value = gib(l.bytes);
            const float value_width = kit.width_of(value, kit.fonts.small);
            kit.text_at(fmt::format("why.line{}.name", i).c_str(), at.x, at.y, l.label, kit.theme.secondary, kit.fonts.small,
                        wide - value_width - kit.em * 0.5f);
            kit.text_at(fmt::format("why.line{}", i).c_str(), at.x + wide - value_width, at.y, value, kit.theme.text,
                        kit.fonts.small);
            ImGui::Dummy({wide, kit.fonts.small_px});
            if (ImGui::IsMouseHoveringRect({at.x, at.y}, {at.x + wide, at.y + kit.em}))
                ImGui::SetTooltip("%s\n%s\n%s", l.label.c_str(), exact_bytes(l.bytes).c_str(), l.note.c_str());
        }
    }
    ImGui::Dummy({1, kit.em * 0.2f});
    chart(ui);
    if (s.failure != nullptr) remedies(ui);
    evidence(ui);
    if (s.failure != nullptr && !s.failure->text.empty()) {
        ImGui::Dummy({1, kit.em * 0.2f});
        kit.note("why.message.title", "The message that people see");
        kit.text("why.message", std::string_view(s.failure->text).substr(0, 1500));
    }
    kit.end_panel();
}

}  // namespace oomlab::window
