#include "ui/window/kit.hpp"

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ui/window/compat.hpp"

namespace oomlab::window {
namespace {

const char* system_font() {
    static constexpr const char* kPlaces[] = {
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/TTF/DejaVuSans.ttf",
        "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
        "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
        "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"};
    for (const char* place : kPlaces) {
        std::error_code ec;
        if (std::filesystem::is_regular_file(place, ec)) return place;
    }
    return nullptr;
}

}  // namespace

const Drawn* Probe::find(std::string_view id) const {
    for (const Drawn& d : items)
        if (d.id == id) return &d;
    return nullptr;
}

bool Probe::shows(std::string_view part) const {
    return std::any_of(items.begin(), items.end(),
                       [&](const Drawn& d) { return d.text.find(part) != std::string::npos; });
}

Fonts build_fonts(int text_percent) {
    Fonts fonts;
    fonts.body_px = std::round(16.0f * static_cast<float>(text_percent) / 100);
    fonts.small_px = std::round(fonts.body_px * 0.82f);
    fonts.big_px = fonts.body_px * 2.5f;
    ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
    atlas.Clear();
    const char* place = system_font();
    // Big text is figures and a unit: a few glyphs keep the atlas small at 300%.
    static const ImWchar kBigRange[] = {0x20, 0x7e, 0};
    const auto add = [&](float px, const ImWchar* range) {
        if (place != nullptr)
            if (ImFont* font = atlas.AddFontFromFileTTF(place, px, nullptr, range)) return font;
        ImFontConfig config;
        config.SizePixels = px;
        return atlas.AddFontDefault(&config);
    };
    fonts.body = add(fonts.body_px, atlas.GetGlyphRangesDefault());
    fonts.small = add(fonts.small_px, atlas.GetGlyphRangesDefault());
    fonts.big = add(fonts.big_px, kBigRange);
    return fonts;
}

void Kit::apply_style() const {
    ImGuiStyle& s = ImGui::GetStyle();
    s.WindowRounding = s.ChildRounding = 0;
    s.FrameRounding = em * 0.2f;
    s.WindowBorderSize = 1;
    s.FrameBorderSize = 1;
    s.WindowPadding = {em * 0.6f, em * 0.4f};
    s.FramePadding = {em * 0.5f, em * 0.2f};
    s.ItemSpacing = {em * 0.45f, em * 0.25f};
    s.ScrollbarSize = em * 0.8f;
    s.WindowMinSize = {1, 1};
    const auto set = [&](ImGuiCol which, paint::Rgb c, int alpha = 255) {
        s.Colors[which] = ImGui::ColorConvertU32ToFloat4(colour(c, alpha));
    };
    set(ImGuiCol_Text, theme.text);
    set(ImGuiCol_TextDisabled, theme.secondary);
    set(ImGuiCol_WindowBg, theme.panel);
    set(ImGuiCol_ChildBg, theme.panel);
    set(ImGuiCol_PopupBg, theme.panel);
    set(ImGuiCol_Border, theme.edge);
    set(ImGuiCol_FrameBg, theme.field);
    set(ImGuiCol_FrameBgHovered, theme.button);
    set(ImGuiCol_FrameBgActive, theme.button_hover);
    set(ImGuiCol_Button, theme.button);
    set(ImGuiCol_ButtonHovered, theme.button_hover);
    set(ImGuiCol_ButtonActive, theme.edge);
    set(ImGuiCol_ScrollbarBg, theme.panel);
    set(ImGuiCol_ScrollbarGrab, theme.edge);
    set(ImGuiCol_ScrollbarGrabHovered, theme.secondary);
    set(ImGuiCol_ScrollbarGrabActive, theme.secondary);
    set(ImGuiCol_TextSelectedBg, theme.accent, 110);
    set(ImGuiCol_NavHighlight, theme.accent);
    set(ImGuiCol_ModalWindowDimBg, theme.background, 170);
}

void Kit::begin_panel(const char* id, const char* title, const Rect& rect, bool scrolls, bool focused,
                      Layer layer) {
    ImGui::SetNextWindowPos({rect.x0, rect.y0});
    ImGui::SetNextWindowSize({std::max(rect.width(), 1.0f), std::max(rect.height(), 1.0f)});
    ImGuiWindowFlags flags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                             ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav;
    // The frame is cleared to the panels' colour: filling them again would cost a third of a frame
    // in software.
    if (layer == Layer::panel) flags |= ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoBackground;
    if (scrolls) flags &= ~ImGuiWindowFlags_NoScrollbar;
    else flags |= ImGuiWindowFlags_NoScrollWithMouse;
    ImGui::Begin(id, nullptr, flags);
    if (focused) {   // the ring is ours: a window without background has no border
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        draw.PushClipRectFullScreen();
        draw.AddRect({rect.x0 + 1, rect.y0 + 1}, {rect.x1 - 1, rect.y1 - 1}, colour(theme.accent), 0, 0, 2);
        draw.PopClipRect();
    }
    scrolls_ = scrolls;
    panel_ = id;
    note_drawn(id, "", rect);
    if (title[0] != '\0') {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float taken = text_at((std::string(id) + ".title").c_str(), at.x, at.y, title,
                                    focused ? theme.accent : theme.secondary, fonts.small);
        ImGui::Dummy({taken, fonts.small_px + em * 0.15f});
    }
}

void Kit::end_panel() {
    ImGui::End();
    scrolls_ = false;
}

Rect Kit::content() const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 left = ImGui::GetContentRegionAvail();
    return {at.x, at.y, at.x + left.x, at.y + left.y};
}

void Kit::note_drawn(const char* id, std::string_view text, const Rect& rect) {
    if (probe == nullptr) return;
    const ImVec2 low = ImGui::GetWindowDrawList()->GetClipRectMin();
    const ImVec2 high = ImGui::GetWindowDrawList()->GetClipRectMax();
    probe->items.push_back({id, std::string(text), panel_, rect, {low.x, low.y, high.x, high.y}, scrolls_});
}

void Kit::text(const char* id, std::string_view s, paint::Rgb c) {
    ImGui::PushStyleColor(ImGuiCol_Text, colour(c));
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(s.data(), s.data() + s.size());
    ImGui::PopTextWrapPos();
    ImGui::PopStyleColor();
    const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
    note_drawn(id, s, {low.x, low.y, high.x, high.y});
}

float Kit::px_of(const ImFont* font) const {
    if (font == fonts.big) return fonts.big_px;
    if (font == fonts.small) return fonts.small_px;
    return fonts.body_px;
}

float Kit::width_of(std::string_view s, ImFont* font) const {
    if (font == nullptr) font = fonts.body;
    return font->CalcTextSizeA(px_of(font), 1e9f, 0, s.data(), s.data() + s.size()).x;
}

float Kit::text_at(const char* id, float x, float y, std::string_view s, paint::Rgb c, ImFont* font,
                   float width) {
    if (font == nullptr) font = fonts.body;
    std::string shown(s);
    float taken = width_of(shown, font);
    if (width > 0 && taken > width) {
        while (!shown.empty() && width_of(shown + "..", font) > width) shown.pop_back();
        shown += "..";
        taken = width_of(shown, font);
    }
    ImGui::GetWindowDrawList()->AddText(font, px_of(font), {std::round(x), std::round(y)}, colour(c),
                                        shown.data(), shown.data() + shown.size());
    note_drawn(id, shown, {x, y, x + taken, y + px_of(font)});
    return taken;
}

bool Kit::button(const char* id, const char* label, bool enabled, bool lit) {
    const paint::Rgb text_colour = enabled ? theme.text : theme.secondary;
    ImGui::PushStyleColor(ImGuiCol_Text, colour(text_colour));
    ImGui::PushStyleColor(ImGuiCol_Border, colour(lit ? theme.accent : theme.edge));
    if (!enabled) {
        ImGui::PushStyleColor(ImGuiCol_Button, colour(theme.panel));
        ImGui::PushStyleColor(ImGuiCol_ButtonHovered, colour(theme.panel));
        ImGui::PushStyleColor(ImGuiCol_ButtonActive, colour(theme.panel));
    }
    const bool pressed = ImGui::Button((std::string(label) + "##" + id).c_str());
    ImGui::PopStyleColor(enabled ? 2 : 5);
    const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
    if (lit)
        ImGui::GetWindowDrawList()->AddRectFilled({low.x, high.y - em * 0.15f}, high,
                                                  colour(theme.accent));
    note_drawn(id, label, {low.x, low.y, high.x, high.y});
    return pressed && enabled;
}

void Kit::same_line_if_fits(float width) {
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    const float next = ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x;
    if (next + width <= right) ImGui::SameLine();
}

bool Kit::text_box(const char* id, std::string& text, float height, bool focus_now) {
    if (focus_now) ImGui::SetKeyboardFocusHere();
    const bool changed = ImGui::InputTextMultiline((std::string("##") + id).c_str(), &text,
                                                   {ImGui::GetContentRegionAvail().x, height});
    const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
    note_drawn(id, text, {low.x, low.y, high.x, high.y});
    return changed;
}

bool Kit::text_line(const char* id, const char* hint, std::string& text, float width, bool focus_now) {
    if (focus_now) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(width);
    const bool changed = ImGui::InputTextWithHint((std::string("##") + id).c_str(), hint, &text);
    const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
    note_drawn(id, text.empty() ? hint : text, {low.x, low.y, high.x, high.y});
    return changed;
}

void Kit::health_shape(view::Health health, float x, float y, float r, paint::Rgb c) const {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ImU32 ink = colour(c);
    const float thick = std::max(2.0f, r * 0.35f);
    switch (health) {
        case view::Health::ok: draw.AddCircleFilled({x, y}, r, ink, 24); break;
        case view::Health::tight:
            draw.AddTriangleFilled({x, y - r}, {x + r, y + r * 0.8f}, {x - r, y + r * 0.8f}, ink);
            break;
        case view::Health::oom:
            draw.AddLine({x - r, y - r}, {x + r, y + r}, ink, thick);
            draw.AddLine({x - r, y + r}, {x + r, y - r}, ink, thick);
            break;
        case view::Health::killed:
            draw.AddCircle({x, y}, r, ink, 24, thick * 0.7f);
            draw.AddLine({x - r * 0.6f, y - r * 0.6f}, {x + r * 0.6f, y + r * 0.6f}, ink, thick * 0.7f);
            draw.AddLine({x - r * 0.6f, y + r * 0.6f}, {x + r * 0.6f, y - r * 0.6f}, ink, thick * 0.7f);
            break;
        case view::Health::recovering: draw.AddCircle({x, y}, r, ink, 24, thick); break;
        case view::Health::error:
            draw.AddQuadFilled({x, y - r}, {x + r, y}, {x, y + r}, {x - r, y}, ink);
            break;
        case view::Health::refused:
            draw.AddCircleFilled({x, y}, r, ink, 24);
            draw.AddLine({x - r * 0.6f, y}, {x + r * 0.6f, y}, colour(theme.panel), thick);
            break;
        case view::Health::loading:
            for (int i = -1; i <= 1; ++i)
                draw.AddCircleFilled({x + static_cast<float>(i) * r * 0.8f, y}, r * 0.28f, ink, 12);
            break;
        case view::Health::ended: draw.AddRectFilled({x - r * 0.8f, y - r * 0.8f}, {x + r * 0.8f, y + r * 0.8f}, ink); break;
        case view::Health::no_data: draw.AddRect({x - r * 0.8f, y - r * 0.8f}, {x + r * 0.8f, y + r * 0.8f}, ink, 0, 0, 2); break;
    }
}

paint::Rgb Kit::health_colour(view::Health health) const {
    switch (health) {
        case view::Health::ok:
        case view::Health::ended: return palette.pass();
        case view::Health::tight:
        case view::Health::recovering: return palette.warn();
        case view::Health::oom:
        case view::Health::killed:
        case view::Health::error:
        case view::Health::refused: return palette.fail();
        case view::Health::loading:
        case view::Health::no_data: break;
    }
    return theme.secondary;
}

void Kit::swatch(Owner owner, float x, float y, float size) const {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled({x, y}, {x + size, y + size}, colour(palette.owner(owner)));
    const paint::Pattern pattern = paint::owner_look(owner).pattern;
    if (palette.patterns && pattern != paint::Pattern::none) {
        const ImU32 ink = colour(palette.see(paint::mix(paint::owner_look(owner).fill, paint::kBlack, 45)));
        const int side = static_cast<int>(size);
        for (int py = 0; py < side; ++py)
            for (int px = 0; px < side; ++px)
                if (paint::pattern_at(pattern, px, py, palette.unit)) {
                    int end = px;
                    while (end < side && paint::pattern_at(pattern, end, py, palette.unit)) ++end;
                    draw.AddRectFilled({x + static_cast<float>(px), y + static_cast<float>(py)},
                                       {x + static_cast<float>(end), y + static_cast<float>(py + 1)}, ink);
                    px = end;
                }
    }
    draw.AddRect({x, y}, {x + size, y + size}, colour(theme.outline == theme.plot ? theme.edge : theme.outline));
}

std::string exact_bytes(u64 bytes) {
    std::string digits = std::to_string(bytes);
    for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return human_bytes(bytes) + " (" + digits + " B)";
}

std::string gib(u64 bytes) {
    if (bytes < 100 * kMiB) return human_bytes(bytes);
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

std::string clock_text(i64 time_us) {
    const i64 tenths = (time_us < 0 ? 0 : time_us) / 100'000;
    const i64 seconds = tenths / 10;
    if (seconds >= 3600)
        return fmt::format("{}:{:02}:{:02}.{}", seconds / 3600, seconds / 60 % 60, seconds % 60, tenths % 10);
    return fmt::format("{:02}:{:02}.{}", seconds / 60, seconds % 60, tenths % 10);
}

}  // namespace oomlab::window
