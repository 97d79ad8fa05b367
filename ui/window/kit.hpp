// The small things that every panel draws with: text, buttons, shapes, panels. All of it can be
// written down in a Probe, so that a test sees what was drawn, where, and whether it was cut.
#pragma once

#include <imgui.h>

#include <string>
#include <string_view>
#include <vector>

#include "ui/view_model/model.hpp"
#include "ui/window/paint/theme.hpp"

namespace oomlab::window {

struct Rect {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    float width() const { return x1 - x0; }
    float height() const { return y1 - y0; }
    bool contains(float x, float y) const { return x >= x0 && x < x1 && y >= y0 && y < y1; }
};

// What was drawn in one frame. `clip` is what could be seen of it; `scrolls` says that the rest can
// be reached by scrolling, so that it is not lost.
struct Drawn {
    std::string id, text, panel;
    Rect rect, clip;
    bool scrolls = false;
};
struct Probe {
    std::vector<Drawn> items;
    const Drawn* find(std::string_view id) const;
    bool shows(std::string_view part) const;   // some text contains it
};

struct Fonts {
    ImFont* body = nullptr;
    ImFont* small = nullptr;
    ImFont* big = nullptr;
    float body_px = 16, small_px = 13, big_px = 40;
};
// Fills ImGui's atlas for a text scale. The system's DejaVu Sans where there is one, else ImGui's own.
Fonts build_fonts(int text_percent);

class Kit {
  public:
    Fonts fonts;
    paint::Palette palette;
    paint::Theme theme;
    Probe* probe = nullptr;
    float em = 16;            // the body text's height

    static ImU32 colour(paint::Rgb c, int alpha = 255) {
        return paint::pack(c, static_cast<std::uint8_t>(alpha));
    }
    static ImVec4 vec(paint::Rgb c) { return ImGui::ColorConvertU32ToFloat4(colour(c)); }
    void apply_style() const;   // ImGui's own widgets in the theme's colours

    // [PANELS] A window without decoration at a fixed place; the title is its first line.
    // `scrolls`: content may be longer than the panel. An overlay stands above the others.
    enum class Layer { panel, overlay };
    void begin_panel(const char* id, const char* title, const Rect& rect, bool scrolls, bool focused,
                     Layer layer = Layer::panel);
    void end_panel();
    Rect content() const;   // what is left below the title, in screen coordinates

    // [TEXT] In ImGui's flow, wrapped at the panel's edge.
    void text(const char* id, std::string_view s, paint::Rgb c);
    void text(const char* id, std::string_view s) { text(id, s, theme.text); }
    void note(const char* id, std::string_view s) { text(id, s, theme.secondary); }
    // At a place, on one line; elided with ".." when wider than `width` (0: never).
    // Returns the width that was taken.
    float text_at(const char* id, float x, float y, std::string_view s, paint::Rgb c,
                  ImFont* font = nullptr, float width = 0);
    float width_of(std::string_view s, ImFont* font = nullptr) const;
    float px_of(const ImFont* font) const;

    // [WIDGETS]
    bool button(const char* id, const char* label, bool enabled = true, bool lit = false);
    void same_line_if_fits(float width);   // else the next item begins a line
    bool text_box(const char* id, std::string& text, float height, bool focus_now);   // several lines
    bool text_line(const char* id, const char* hint, std::string& text, float width, bool focus_now);

    // [SHAPES]
    void health_shape(view::Health health, float x, float y, float radius, paint::Rgb c) const;
    paint::Rgb health_colour(view::Health health) const;
    void swatch(Owner owner, float x, float y, float size) const;

    void note_drawn(const char* id, std::string_view text, const Rect& rect);

  private:
    bool scrolls_ = false;
    std::string panel_;
};

std::string exact_bytes(u64 bytes);        // "1.50 GiB (1,610,612,736 B)"
std::string gib(u64 bytes);                // "18.64 GiB", the same width for neighbours
std::string clock_text(i64 time_us);       // "02:03.4", "1:00:03.4"

}  // namespace oomlab::window
