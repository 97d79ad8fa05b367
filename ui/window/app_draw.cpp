#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ui/window/app.hpp"

namespace oomlab::window {

// Where everything stands in one frame. A panel that has no room has an empty rectangle.
struct App::Layout {
    Rect status, controls, tabs, caption;
    std::array<Rect, static_cast<std::size_t>(PanelId::count_)> panel{};
    bool one_at_a_time = false;   // little room: the tab's panel alone
    float left_edge = 0, right_edge = 0, middle_edge = 0;   // where the splitters are; 0: none
    Rect& at(PanelId id) { return panel[static_cast<std::size_t>(id)]; }
};

App::Layout App::layout(float width, float height, const Ui& ui) const {
    Layout l;
    const float em = kit_.em, gap = std::round(em * 0.35f);
    const float line = em * 2.1f;
    float y = status_height(kit_, width);
    l.status = {0, 0, width, y};
    y += gap;
    float bottom = height;
    if (!only_.empty()) {
        const float low = kit_.fonts.small_px + em * 0.8f;
        l.caption = {0, bottom - low, width, bottom};
        bottom -= low + gap;
        float wanted = 0, flexible = 0;
        for (const PanelId id : only_) {
            if (id == PanelId::budget) wanted += budget_height(ui, width) + gap;
            else flexible += 1;
        }
        const float each = flexible > 0 ? (bottom - y - wanted) / flexible : 0;
        for (const PanelId id : only_) {
            const float high = id == PanelId::budget && flexible > 0 ? budget_height(ui, width) : each > 0 ? each - gap : bottom - y;
            l.at(id) = {0, y, width, y + high};
            y += high + gap;
        }
        return l;
    }
    l.one_at_a_time = !present_ && (width < em * 66 || height < em * 34);
    // With little room the keys do what the bar does.
    if (!present_ && !(l.one_at_a_time && height < em * 26 && control_ == nullptr)) {
        l.controls = {0, bottom - line, width, bottom};
        bottom -= line + gap;
    }
    if (present_) {
        const float budget = std::min(budget_height(ui, width), (bottom - y) * 0.45f);
        l.at(PanelId::budget) = {0, y, width, y + budget};
        l.at(PanelId::timeline) = {0, y + budget + gap, width, bottom};
        return l;
    }
    if (l.one_at_a_time) {
        l.tabs = {0, y, width, y + line};
        l.at(tab_ == PanelId::none ? PanelId::timeline : tab_) = {0, y + line + gap, width, bottom};
        return l;
    }
    float left = 0, right = width;
    if (course_ != nullptr) {
        left = std::round(std::clamp(width * static_cast<float>(settings_.left_permille) / 1000, em * 14, width * 0.4f));
        l.at(PanelId::course) = {0, y, left, bottom};
        l.left_edge = left;
        left += gap;
    }
    right = std::round(width - std::clamp(width * static_cast<float>(settings_.right_permille) / 1000, em * 17, width * 0.4f));
    l.right_edge = right;
    const float why = ui.summary.chart.type == 0 && ui.summary.failure == nullptr ? 0.22f : height < em * 50 ? 0.7f : 0.64f;
    const float split = std::round(y + (bottom - y) * why);
    l.at(PanelId::why) = {right + gap, y, width, split};
    l.at(PanelId::events) = {right + gap, split + gap, width, bottom};
    const float budget = std::min(budget_height(ui, right - left), (bottom - y) * 0.4f);
    l.at(PanelId::budget) = {left, y, right, y + budget};
    y += budget + gap;
    l.middle_edge = std::round(y + (bottom - y) * static_cast<float>(settings_.middle_permille) / 1000);
    l.at(PanelId::timeline) = {left, y, right, l.middle_edge};
    l.at(PanelId::map) = {left, l.middle_edge + gap, right, bottom};
    return l;
}

void App::draw_panel(Ui& ui, PanelId id, const Rect& rect) {
    if (rect.width() < 1 || rect.height() < 1) return;
    switch (id) {
        case PanelId::course: draw_course(ui, course_panel_, rect); return;
        case PanelId::budget: draw_budget(ui, rect); return;
        case PanelId::timeline: draw_timeline(ui, timeline_, rect); return;
        case PanelId::map: draw_map(ui, map_, rect); return;
        case PanelId::why: draw_why(ui, rect); return;
        case PanelId::events: draw_events(ui, events_, rect); return;
        case PanelId::none:
        case PanelId::count_: return;
    }
}

void App::draw_tabs(Ui& ui, const Rect& rect) {
    kit_.begin_panel("tabs", "", rect, false, false);
    static constexpr const char* kLabels[] = {"", "1 Course", "2 Budget", "3 Time", "4 Map", "5 Why", "6 Events"};
    for (int i = 1; i < static_cast<int>(PanelId::count_); ++i) {
        if (i == 1 && course_ == nullptr) continue;
        if (i > 1) kit_.same_line_if_fits(kit_.width_of(kLabels[i]) + kit_.em);
        const auto id = static_cast<PanelId>(i);
        if (kit_.button(fmt::format("tab.{}", panel_name(id)).c_str(), kLabels[i], true, tab_ == id)) tab_ = focus_ = id;
    }
    kit_.same_line_if_fits(kit_.em * 4);
    if (kit_.button("tab.keys", "Keys ?")) ui.said = Command::key_card;
    kit_.end_panel();
}

void App::draw_empty(Ui& ui, const Rect& rect) {
    kit_.begin_panel("empty", "", rect, false, false);
    const float middle = rect.y0 + rect.height() * 0.35f;
    ImGui::SetCursorScreenPos({rect.x0 + kit_.em * 3, middle});
    kit_.text_at("empty.title", rect.x0 + kit_.em * 3, middle, "Nothing to see yet", ui.kit.theme.text, kit_.fonts.big,
                 rect.width() - kit_.em * 4);
    ImGui::SetCursorScreenPos({rect.x0 + kit_.em * 3, middle + kit_.fonts.big_px + kit_.em});
    kit_.text("empty.why", waiting_.empty() ? "No trace is open. Run a lab with: oomlab run, or open one with: oomlab view FILE."
                                            : std::string_view(waiting_));
    kit_.end_panel();
}

void App::splitters(const Layout& l, float width) {
    const ImGuiIO& io = ImGui::GetIO();
    const float near = kit_.em * 0.45f;
    const float x = io.MousePos.x, y = io.MousePos.y;
    int over = 0;
    if (y > l.status.y1) {
        if (l.left_edge > 0 && x > l.left_edge - 1 && x < l.left_edge + near) over = 1;
        if (l.right_edge > 0 && x > l.right_edge - 1 && x < l.right_edge + near) over = 2;
        if (l.middle_edge > 0 && x < l.right_edge && x > l.left_edge + near && y > l.middle_edge - 1 && y < l.middle_edge + near)
            over = 3;
    }
    if (over != 0 && ImGui::IsMouseClicked(0)) dragging_ = over;
    if (!ImGui::IsMouseDown(0)) dragging_ = 0;
    const int which = dragging_ != 0 ? dragging_ : over;
    if (which != 0) ImGui::SetMouseCursor(which == 3 ? ImGuiMouseCursor_ResizeNS : ImGuiMouseCursor_ResizeEW);
    const auto permille = [](float share) { return std::clamp(static_cast<int>(share * 1000), 120, 800); };
    if (dragging_ == 1) settings_.left_permille = std::min(permille(x / width), 450);
    if (dragging_ == 2) settings_.right_permille = std::min(permille(1 - x / width), 450);
    if (dragging_ == 3) {
        const Rect& t = l.panel[static_cast<std::size_t>(PanelId::timeline)];
        const Rect& m = l.panel[static_cast<std::size_t>(PanelId::map)];
        settings_.middle_permille = std::max(250, permille((y - t.y0) / (m.y1 - t.y0)));
    }
}

void App::draw(float width, float height, Probe* probe) {
    if (frames_wanted_ > 0) --frames_wanted_;
    kit_.probe = probe;
    prepare();
    const LinkState link = link_state();
    const u64 revision = model().revision() * 31 + changes_ * 0x9e3779b97f4a7c15ull +
                         (before_ ? before_->model().revision() : 0);
    Ui ui{kit_, textures_, model(), before_ ? &before_->model() : nullptr, summary_, prediction_, state_,
          settings_, link, course_, control_, focus_, revision, false, Command::none};
    Layout l = layout(width, height, ui);
    ui.compact = l.one_at_a_time;

    // The gaps between the panels, and what no panel covers.
    const float gap = std::round(kit_.em * 0.35f);
    ImDrawList& ground = *ImGui::GetBackgroundDrawList();
    const auto edge = [&](const Rect& r) {
        if (r.width() < 1 || r.height() < 1) return;
        const ImU32 ink = Kit::colour(kit_.theme.background);
        ground.AddRectFilled({r.x1, r.y0 - gap}, {r.x1 + gap, r.y1 + gap}, ink);
        ground.AddRectFilled({r.x0, r.y1}, {r.x1, r.y1 + gap}, ink);
        ground.AddRectFilled({r.x0, r.y0 - gap}, {r.x1, r.y0}, ink);
    };
    for (const Rect* r : {&l.status, &l.tabs, &l.controls, &l.caption}) edge(*r);
    for (const Rect& r : l.panel) edge(r);

    draw_status(ui, l.status);
    if (l.one_at_a_time) draw_tabs(ui, l.tabs);
    const bool nothing = !trace_ || model().revision() == 0;
    if (nothing && course_ == nullptr) {
        draw_empty(ui, {0, l.status.y1 + kit_.em * 0.35f, width, l.controls.y0 > 0 ? l.controls.y0 - kit_.em * 0.35f : height});
    } else {
        for (int i = 1; i < static_cast<int>(PanelId::count_); ++i)
            draw_panel(ui, static_cast<PanelId>(i), l.panel[static_cast<std::size_t>(i)]);
    }
    if (l.controls.height() > 0) draw_controls(ui, controls_, l.controls);
    if (l.caption.height() > 0) {
        kit_.begin_panel("caption", "", l.caption, false, false);
        kit_.text_at("caption.text", kit_.em * 0.7f, l.caption.y0 + kit_.em * 0.4f, caption_, kit_.theme.secondary,
                     kit_.fonts.small, width - kit_.em * 1.4f);
        kit_.end_panel();
    }
    if (key_card_) draw_key_card(ui, width, height);
    splitters(l, width);

    if (ImGui::IsMouseClicked(0)) {
        frames_wanted_ = std::max(frames_wanted_, 2);
        key_card_ = false;
        const ImVec2 at = ImGui::GetIO().MousePos;
        for (int i = 1; i < static_cast<int>(PanelId::count_); ++i)
            if (l.panel[static_cast<std::size_t>(i)].contains(at.x, at.y)) focus_ = static_cast<PanelId>(i);
    }
    if (ui.said != Command::none) {
        frames_wanted_ = std::max(frames_wanted_, 2);
        obey(ui.said, 0);
    }
}

}  // namespace oomlab::window
