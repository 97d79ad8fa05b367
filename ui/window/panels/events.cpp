#include <fmt/format.h>

#include "ui/window/panels/panels.hpp"

namespace oomlab::window {
namespace {

// Brings `rows` up to date: from where it stopped when only new events came, else anew.
void refilter(Ui& ui, EventsPanel& panel) {
    const auto& events = ui.model.events();
    const view::EventFilter& filter = ui.state.filter;
    const u64 model = reinterpret_cast<std::uintptr_t>(&ui.model);
    if (filter.text() != panel.filtered_text || filter.groups != panel.filtered_groups ||
        model != panel.filtered_model || events.size() < panel.looked_at) {
        panel.rows.clear();
        panel.looked_at = 0;
        panel.filtered_text = filter.text();
        panel.filtered_groups = filter.groups;
        panel.filtered_model = model;
        panel.stick_to_end = !ui.state.event();
        panel.shown_event.reset();
    }
    for (; panel.looked_at < events.size(); ++panel.looked_at)
        if (filter.matches(events[panel.looked_at])) panel.rows.push_back(static_cast<u32>(panel.looked_at));
}

bool serious(view::EventKind kind) { return view::event_group(kind) == view::EventGroup::failures; }

void one_row(Ui& ui, const view::Event& e, const Rect& row, bool selected, bool narrow) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    if (selected) {
        draw.AddRectFilled({row.x0, row.y0}, {row.x1, row.y1}, Kit::colour(kit.theme.button_hover));
        draw.AddRectFilled({row.x0, row.y0}, {row.x0 + kit.em * 0.2f, row.y1}, Kit::colour(kit.theme.accent));
    }
    const float y = row.y0 + (row.height() - kit.fonts.small_px) / 2;
    float x = row.x0 + kit.em * 0.35f;
    kit.text_at("events.time", x, y, clock_text(e.time_us), kit.theme.secondary, kit.fonts.small);
    x += kit.width_of(ui.model.last_us() >= 3'600'000'000 ? "0:00:00.0" : "00:00.0", kit.fonts.small) + kit.em * 0.4f;
    if (serious(e.kind))
        kit.health_shape(e.kind == view::EventKind::rejection ? view::Health::refused : view::Health::oom,
                         x + kit.em * 0.35f, (row.y0 + row.y1) / 2, kit.em * 0.26f, kit.palette.fail());
    else if (e.kind == view::EventKind::preemption || e.kind == view::EventKind::retry)
        kit.health_shape(view::Health::tight, x + kit.em * 0.35f, (row.y0 + row.y1) / 2, kit.em * 0.26f, kit.palette.warn());
    x += kit.em * 0.85f;
    std::string what = view::event_kind_name(e.kind);
    if (e.request != trace::kNoRequest) what += fmt::format(" #{}", e.request);
    kit.text_at("events.kind", x, y, what, serious(e.kind) ? kit.palette.fail() : kit.theme.text, kit.fonts.small,
                narrow ? row.x1 - x : 0);
    x += std::max(kit.em * 6.6f, kit.width_of(what, kit.fonts.small) + kit.em * 0.5f);
    if (x < row.x1 - kit.em * 3)
        kit.text_at("events.text", x, y, ui.model.describe(e), kit.theme.secondary, kit.fonts.small, row.x1 - x);
}

void scrollbar(Ui& ui, EventsPanel& panel, const Rect& track) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const std::size_t total = panel.rows.size();
    if (total <= panel.visible_rows) return;
    draw.AddRectFilled({track.x0, track.y0}, {track.x1, track.y1}, Kit::colour(kit.theme.field));
    const float most = static_cast<float>(total - panel.visible_rows);
    const float high = std::max(kit.em, track.height() * static_cast<float>(panel.visible_rows) / static_cast<float>(total));
    const float at = track.y0 + (track.height() - high) * static_cast<float>(panel.first_row) / most;
    // Failures are marked on the bar.
    for (const view::FailureNote& f : ui.model.failures()) {
        const auto row = std::lower_bound(panel.rows.begin(), panel.rows.end(), static_cast<u32>(f.event));
        if (row == panel.rows.end() || *row != f.event) continue;
        const float y = track.y0 + track.height() * static_cast<float>(row - panel.rows.begin()) / static_cast<float>(total);
        draw.AddRectFilled({track.x0, y - 1}, {track.x1, y + 2}, Kit::colour(kit.palette.fail()));
    }
    draw.AddRectFilled({track.x0 + 2, at}, {track.x1 - 2, at + high}, Kit::colour(kit.theme.secondary));
    const ImGuiIO& io = ImGui::GetIO();
    if (ImGui::IsWindowFocused() && ImGui::IsMouseDown(0) && track.contains(io.MousePos.x, io.MousePos.y)) {
        const float share = std::clamp((io.MousePos.y - track.y0 - high / 2) / std::max(1.0f, track.height() - high), 0.0f, 1.0f);
        panel.first_row = static_cast<std::size_t>(share * most);
        panel.stick_to_end = panel.first_row + panel.visible_rows >= total;
    }
}

}  // namespace

void scroll_events(EventsPanel& panel, Command command) {
    const std::size_t page = std::max<std::size_t>(1, panel.visible_rows - 1);
    const std::size_t most = panel.rows.size() > panel.visible_rows ? panel.rows.size() - panel.visible_rows : 0;
    if (command == Command::page_up) panel.first_row -= std::min(panel.first_row, page);
    if (command == Command::page_down) panel.first_row += page;
    if (command == Command::list_home) panel.first_row = 0;
    if (command == Command::list_end) panel.first_row = most;
    panel.first_row = std::min(panel.first_row, most);
    panel.stick_to_end = panel.first_row == most;
}

void draw_events(Ui& ui, EventsPanel& panel, const Rect& rect) {
    Kit& kit = ui.kit;
    refilter(ui, panel);
    const std::size_t all = ui.model.events().size();
    const std::string title = panel.rows.size() == all ? fmt::format("EVENTS  {}", all)
                                                       : fmt::format("EVENTS  {} of {}", panel.rows.size(), all);
    kit.begin_panel("events", title.c_str(), rect, false, ui.focus == PanelId::events);
    if (kit.text_line("events.filter", "filter: retry  req:17  owner:kv  >1GiB", panel.typed,
                      ImGui::GetContentRegionAvail().x, panel.focus_filter))
        ui.state.filter.set_text(panel.typed);
    panel.focus_filter = false;
    for (u32 g = 0; g < static_cast<u32>(view::EventGroup::count_); ++g) {
        const char* name = view::event_group_name(static_cast<view::EventGroup>(g));
        if (g > 0) kit.same_line_if_fits(kit.width_of(name) + kit.em * 1.1f);
        if (kit.button(fmt::format("events.group{}", g).c_str(), name, true, (ui.state.filter.groups >> g & 1u) != 0))
            ui.state.filter.groups ^= 1u << g;
    }
    if (!ui.state.filter.problem().empty()) kit.text("events.problem", ui.state.filter.problem(), kit.palette.fail());
    if (panel.rows.empty()) {
        if (all == 0) {
            kit.note("events.empty", "No event yet: phases, requests, preemptions and failures are listed here as they happen.");
        } else {
            kit.note("events.hidden", fmt::format("{} events, all hidden by the filter.", all));
            if (kit.button("events.clear", "Clear the filter")) {
                panel.typed.clear();
                ui.state.filter = view::EventFilter();
            }
        }
        kit.end_panel();
        return;
    }

    const Rect in = kit.content();
    const float row_height = kit.fonts.small_px + kit.em * 0.3f;
    panel.visible_rows = std::max<std::size_t>(1, static_cast<std::size_t>(in.height() / row_height));
    const std::size_t most = panel.rows.size() > panel.visible_rows ? panel.rows.size() - panel.visible_rows : 0;
    // A newly selected event comes into view; without one the newest stay there.
    if (ui.state.event() != panel.shown_event) {
        panel.shown_event = ui.state.event();
        if (panel.shown_event) {
            const auto at = std::lower_bound(panel.rows.begin(), panel.rows.end(), static_cast<u32>(*panel.shown_event));
            const std::size_t row = static_cast<std::size_t>(at - panel.rows.begin());
            if (row < panel.first_row || row >= panel.first_row + panel.visible_rows)
                panel.first_row = row - std::min(row, panel.visible_rows / 2);
            panel.stick_to_end = false;
        } else {
            panel.stick_to_end = true;
        }
    }
    if (panel.stick_to_end && ui.state.following()) panel.first_row = most;
    panel.first_row = std::min(panel.first_row, most);

    const ImGuiIO& io = ImGui::GetIO();
    const bool inside = ImGui::IsWindowHovered() && in.contains(io.MousePos.x, io.MousePos.y);
    if (inside && io.MouseWheel != 0) {
        const std::size_t by = 3;
        if (io.MouseWheel > 0) panel.first_row -= std::min(panel.first_row, by);
        else panel.first_row = std::min(panel.first_row + by, most);
        panel.stick_to_end = panel.first_row == most;
    }
    const float bar = kit.em * 0.7f;
    for (std::size_t i = 0; i < panel.visible_rows && panel.first_row + i < panel.rows.size(); ++i) {
        const std::size_t index = panel.rows[panel.first_row + i];
        const view::Event& e = ui.model.events()[index];
        const Rect row{in.x0, in.y0 + row_height * static_cast<float>(i), in.x1 - bar - kit.em * 0.2f,
                       in.y0 + row_height * static_cast<float>(i + 1)};
        const bool selected = ui.state.event() == index;
        one_row(ui, e, row, selected, rect.width() < kit.em * 20);
        if (!inside || !row.contains(io.MousePos.x, io.MousePos.y)) continue;
        ImGui::GetWindowDrawList()->AddRect({row.x0, row.y0}, {row.x1, row.y1}, Kit::colour(kit.theme.edge));
        if (ImGui::IsMouseClicked(0)) ui.state.select_event(ui.model, index);
        const std::string_view text = ui.model.text_of(e);
        ImGui::SetTooltip("%s  %s\n%s", clock_text(e.time_us).c_str(), view::event_kind_name(e.kind),
                          text.empty() ? (ui.model.describe(e) + (e.bytes > 0 && e.owner != Owner::kv ? "\n" + exact_bytes(e.bytes) : "")).c_str()
                                       : std::string(text.substr(0, 1200)).c_str());
    }
    scrollbar(ui, panel, {in.x1 - bar, in.y0, in.x1, in.y1});
    kit.end_panel();
}

}  // namespace oomlab::window
