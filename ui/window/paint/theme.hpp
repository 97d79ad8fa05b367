// Colours, patterns and their checks, in one place and without ImGui: a test recomputes every
// contrast that the palette promises from this file.
//
// The owners' colours are Okabe and Ito's, stacked in the order whose worst neighbours still differ
// most in lightness and for colour-vision types. Colour is the third signal, after place and words:
// every band has a pattern and a short label as well.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/device/owner.hpp"

namespace oomlab::paint {

struct Rgb {
    std::uint8_t r = 0, g = 0, b = 0;
    friend bool operator==(const Rgb&, const Rgb&) = default;
};
constexpr Rgb rgb(std::uint32_t hex) {
    return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8),
            static_cast<std::uint8_t>(hex)};
}
// As a texture and as ImGui hold it: red in the lowest byte.
constexpr std::uint32_t pack(Rgb c, std::uint8_t alpha = 255) {
    return static_cast<std::uint32_t>(c.r) | static_cast<std::uint32_t>(c.g) << 8 |
           static_cast<std::uint32_t>(c.b) << 16 | static_cast<std::uint32_t>(alpha) << 24;
}
constexpr Rgb mix(Rgb a, Rgb b, int percent_b) {
    const auto one = [&](int x, int y) {
        return static_cast<std::uint8_t>((x * (100 - percent_b) + y * percent_b) / 100);
    };
    return {one(a.r, b.r), one(a.g, b.g), one(a.b, b.b)};
}

// WCAG 2.2: relative luminance and contrast ratio, 1 to 21.
double luminance(Rgb c);
double contrast(Rgb a, Rgb b);

enum class Vision { normal, protan, deutan, tritan, greyscale, count_ };
const char* vision_name(Vision v);
Rgb view_as(Rgb c, Vision v);

enum class Pattern { none, diagonal, dots, crosshatch, horizontal, vertical, back_diagonal };
// Whether the stroke of the pattern passes through the pixel. `unit` is 1 at 100% text.
bool pattern_at(Pattern p, int x, int y, int unit);

enum class ThemeName { dark, light, high_contrast, count_ };
const char* theme_name(ThemeName t);
struct Theme {
    Rgb background, panel, edge;   // behind the panels, in them, around them
    Rgb text, secondary;
    Rgb plot;                      // behind the bands
    Rgb outline;                   // between bands; in the light theme what makes them visible
    Rgb grid;                      // thin lines behind
    Rgb accent;                    // focus ring, cursor, selection
    Rgb button, button_hover, field;
};
const Theme& theme(ThemeName name);

inline constexpr Rgb kGrey = rgb(0x999999), kBlue = rgb(0x0072B2), kOrange = rgb(0xE69F00),
                     kVermillion = rgb(0xD55E00), kSky = rgb(0x56B4E9), kYellow = rgb(0xF0E442),
                     kPurple = rgb(0xCC79A7), kGreen = rgb(0x009E73), kPale = rgb(0xDDE1E6),
                     kBlack = rgb(0x000000), kWhite = rgb(0xFFFFFF);

struct OwnerLook {
    Rgb fill;
    Rgb on_fill;          // text on it
    Pattern pattern;
    const char* label;    // three or four letters
    const char* name;     // for people
};
const OwnerLook& owner_look(Owner owner);

// Theme, vision and patterns as chosen: what every painter asks.
struct Palette {
    ThemeName name = ThemeName::dark;
    Vision vision = Vision::normal;
    bool patterns = true;
    int unit = 1;   // of patterns and lines, with the text's scale

    Rgb see(Rgb c) const { return vision == Vision::normal ? c : view_as(c, vision); }
    Theme theme() const;
    Rgb owner(Owner o) const { return see(owner_look(o).fill); }
    // The pixel of a band: its fill, or the darker stroke of its pattern.
    Rgb owner_pixel(Owner o, int x, int y) const;
    // Word and tick or cross go with these, always.
    Rgb pass() const { return see(name == ThemeName::light ? rgb(0x00734F) : rgb(0x19B88A)); }
    Rgb fail() const { return see(name == ThemeName::light ? rgb(0xA84300) : rgb(0xF07B2E)); }
    Rgb warn() const { return see(name == ThemeName::light ? rgb(0x7A5A00) : kYellow); }
};

}  // namespace oomlab::paint
