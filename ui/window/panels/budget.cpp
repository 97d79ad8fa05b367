#include <fmt/format.h>

#include "ui/window/panels/panels.hpp"

namespace oomlab::window {
namespace {

// One stacked bar; a ghost is outlines and light hatching, a measured one is solid.
void bar(Ui& ui, const char* id, const std::array<u64, kOwners>& bytes, u64 scale_bytes, const Rect& rect,
         bool ghost) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    u64 sum = 0;
    for (const Owner owner : view::stack_order()) {
        const u64 size = bytes[static_cast<std::size_t>(owner)];
        if (size == 0) continue;
        const auto at = [&](u64 b) {
            return rect.x0 + rect.width() * std::min(1.0f, static_cast<float>(static_cast<double>(b) /
                                                                              static_cast<double>(scale_bytes)));
        };
        const float x0 = at(sum);
        sum += size;
        const float x1 = std::max(at(sum), x0 + 1);
        const paint::OwnerLook& look = paint::owner_look(owner);
        const ImU32 ink = Kit::colour(kit.palette.owner(owner));
        if (ghost) {
            draw.PushClipRect({x0, rect.y0}, {x1, rect.y1}, true);
            for (float d = x0 - rect.height(); d < x1; d += kit.em * 0.55f)
                draw.AddLine({d, rect.y1}, {d + rect.height(), rect.y0}, ink, 1.5f);
            draw.PopClipRect();
            draw.AddRect({x0, rect.y0}, {x1, rect.y1}, ink, 0, 0, 1.5f);
        } else {
            draw.AddRectFilled({x0, rect.y0}, {x1, rect.y1}, ink);
            draw.AddLine({x1, rect.y0}, {x1, rect.y1}, Kit::colour(kit.theme.outline), 1.5f);
            if (kit.theme.outline != kit.theme.plot && x1 - x0 > 5)
                draw.AddRect({x0, rect.y0}, {x1, rect.y1}, Kit::colour(kit.theme.outline));
        }
        if (!ghost && x1 - x0 > kit.width_of(look.label, kit.fonts.small) + kit.em * 0.4f)
            kit.text_at((std::string(id) + "." + look.label).c_str(), x0 + kit.em * 0.2f,
                        (rect.y0 + rect.y1 - kit.fonts.small_px) / 2, look.label,
                        kit.palette.see(look.on_fill), kit.fonts.small);
        if (Rect{x0, rect.y0, x1, rect.y1}.contains(mouse.x, mouse.y))
            ImGui::SetTooltip("%s%s\n%s\n%.1f%% of the card", look.name, ghost ? ", predicted" : "",
                              exact_bytes(size).c_str(),
                              100.0 * static_cast<double>(size) / static_cast<double>(std::max<u64>(ui.model.total_bytes(), 1)));
    }
    kit.note_drawn(id, "", rect);
}

// The peak that the pool was sized with, beside the one that came.
void peaks(Ui& ui, const Rect& rect) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const u64 profiled = ui.model.budget() ? ui.model.budget()->activation_peak_bytes : 0;
    u64 real = ui.model.serving_activation_peak_bytes();
    const view::FailureNote* failure = ui.summary.failure;
    const u64 wanted = failure != nullptr ? failure->record.step_activation_bytes : 0;
    const bool asked = wanted > real;
    real = std::max(real, wanted);
    const u64 most = std::max<u64>({profiled, real, 1});
    const float line = kit.fonts.small_px + kit.em * 0.15f;
    const float label = kit.width_of("profiled peak", kit.fonts.small) + kit.em * 0.6f;
    const auto row = [&](const char* id, const char* name, u64 bytes, float y, bool over) {
        kit.text_at((std::string(id) + ".name").c_str(), rect.x0, y, name, kit.theme.secondary, kit.fonts.small);
        const std::string value = gib(bytes) + (over ? asked ? " asked: above the profile" : " above the profile" : "");
        const float room = rect.width() - label - kit.width_of(value, kit.fonts.small) - kit.em;
        const float wide = std::max(2.0f, room * static_cast<float>(bytes) / static_cast<float>(most));
        draw.AddRectFilled({rect.x0 + label, y + 1}, {rect.x0 + label + wide, y + kit.fonts.small_px - 1},
                           Kit::colour(kit.palette.owner(Owner::activations)));
        kit.text_at(id, rect.x0 + label + wide + kit.em * 0.4f, y, value,
                    over ? kit.palette.fail() : kit.theme.text, kit.fonts.small);
    };
    row("budget.profiled", "profiled peak", profiled, rect.y0, false);
    row("budget.real", "real peak", real, rect.y0 + line, profiled > 0 && real > profiled);
}

}  // namespace

// How many error lines stand side by side in a panel of this width, scrollbar or not.
static std::size_t columns_in(const Kit& kit, float panel_width) {
    return std::max<std::size_t>(1, static_cast<std::size_t>((panel_width - kit.em * 2.2f) / (kit.em * 20)));
}

float budget_height(const Ui& ui, float width) {
    const Kit& kit = ui.kit;
    const float line = kit.fonts.small_px + kit.em * 0.15f;
    float height = kit.em * 3.9f + kit.fonts.small_px * 2;   // title, capacity, measured
    if (!ui.prediction.empty()) {
        height += kit.em * 1.5f;
        const std::size_t lines = view::budget_lines(ui.prediction, ui.model.owner_peaks()).size();
        const std::size_t columns = columns_in(kit, width);
        height += line * static_cast<float>((lines + columns - 1) / columns);
    } else {
        height += line;
    }
    return height + line * 2 + kit.em * 0.4f;
}

void draw_budget(Ui& ui, const Rect& rect) {
    Kit& kit = ui.kit;
    const bool scrolls = budget_height(ui, rect.width()) > rect.height() + 1;
    kit.begin_panel("budget", "BUDGET", rect, scrolls, ui.focus == PanelId::budget);
    const Rect in = kit.content();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const u64 total = ui.model.total_bytes();
    if (total == 0) {
        kit.note("budget.empty", ui.link.coming ? "No sample yet: the server has not touched the device. It shows here as soon as it does."
                                              : "No sample: the server ended before it touched the device.");
        kit.end_panel();
        return;
    }
    std::array<u64, kOwners> predicted{};
    for (std::size_t o = 0; o < kOwners; ++o) predicted[o] = ui.prediction.owner_bytes[o].value_or(0);
    const u64 scale = std::max({total, ui.prediction.sum_bytes(), ui.model.used_peak_bytes()}) / 100 * 104;
    const bool ghost = !ui.prediction.empty();
    const float name = kit.width_of("predicted", kit.fonts.small) + kit.em * 0.6f;
    const float x0 = in.x0 + name;
    float y = in.y0;

    // The capacity, a line with its number above it.
    const float cap = x0 + (in.x1 - x0) * static_cast<float>(static_cast<double>(total) / static_cast<double>(scale));
    const std::string capacity = "capacity " + gib(total);
    const float capacity_width = kit.width_of(capacity, kit.fonts.small);
    kit.text_at("budget.capacity", std::min(cap, in.x1) - capacity_width, y, capacity, kit.theme.text, kit.fonts.small);
    y += kit.fonts.small_px + kit.em * 0.2f;
    const float bars = y;
    if (ghost) {
        kit.text_at("budget.predicted.name", in.x0, y + kit.em * 0.2f, "predicted", kit.theme.secondary, kit.fonts.small);
        bar(ui, "budget.predicted", predicted, scale, {x0, y, in.x1, y + kit.em * 1.2f}, true);
        y += kit.em * 1.5f;
    }
    const std::array<u64, kOwners> measured =
        ui.summary.figures ? ui.summary.figures->owner_bytes : std::array<u64, kOwners>{};
    kit.text_at("budget.measured.name", in.x0, y + kit.em * 0.35f, "measured", kit.theme.secondary, kit.fonts.small);
    bar(ui, "budget.measured", measured, scale, {x0, y, in.x1, y + kit.em * 1.5f}, false);
    y += kit.em * 1.5f;
    draw.AddLine({cap, bars - kit.em * 0.1f}, {cap, y + kit.em * 0.1f}, Kit::colour(kit.theme.text), 2);
    y += kit.em * 0.4f;

    const float line = kit.fonts.small_px + kit.em * 0.15f;
    if (ghost) {
        const auto lines = view::budget_lines(ui.prediction, ui.model.owner_peaks());
        const std::size_t columns = columns_in(kit, rect.width());
        const float wide = in.width() / static_cast<float>(columns);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const view::BudgetLine& l = lines[i];
            const float lx = in.x0 + wide * static_cast<float>(i % columns);
            const float ly = y + line * static_cast<float>(i / columns);
            const paint::OwnerLook& look = paint::owner_look(l.owner);
            kit.swatch(l.owner, lx, ly + 1, kit.fonts.small_px - 2);
            const std::string said =
                l.predicted_bytes && l.measured_bytes == 0
                    ? fmt::format("{}: {} predicted, none measured", look.name, gib(*l.predicted_bytes))
                : l.predicted_bytes
                    ? fmt::format("{} {}: {} ({:+.1f}%)", look.name, gib(l.measured_bytes),
                                  human_bytes_signed(l.error_bytes()), 100 * l.error_share())
                    : fmt::format("{} {}: not predicted", look.name, gib(l.measured_bytes));
            kit.text_at(fmt::format("budget.line.{}", look.label).c_str(), lx + kit.fonts.small_px + kit.em * 0.2f,
                        ly, said, kit.theme.text, kit.fonts.small, wide - kit.fonts.small_px - kit.em * 0.6f);
        }
        y += line * static_cast<float>((lines.size() + columns - 1) / columns);
    } else {
        kit.text_at("budget.no_ghost", in.x0, y,
                    "No locked prediction: predict first (Course), or open with --predict FILE.",
                    kit.theme.secondary, kit.fonts.small, in.width());
        y += line;
    }
    peaks(ui, {in.x0, y + kit.em * 0.2f, in.x1, in.y1});
    if (scrolls) {
        ImGui::SetCursorScreenPos({in.x0, y + kit.em * 0.2f + line * 2});
        ImGui::Dummy({1, 1});
    }
    kit.end_panel();
}

}  // namespace oomlab::window
