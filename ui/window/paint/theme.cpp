#include "ui/window/paint/theme.hpp"

#include <algorithm>
#include <cmath>

namespace oomlab::paint {
namespace {

double linear(std::uint8_t c) {
    const double v = c / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}
std::uint8_t encoded(double v) {
    v = std::clamp(v, 0.0, 1.0);
    const double s = v <= 0.0031308 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
    return static_cast<std::uint8_t>(std::lround(s * 255));
}

// Full severity, in linear light (Machado, Oliveira and Fernandes 2009).
constexpr double kProtan[9] = {0.152286, 1.052583, -0.204868, 0.114503, 0.786281,
                               0.099216, -0.003882, -0.048116, 1.051998};
constexpr double kDeutan[9] = {0.367322, 0.860646, -0.227968, 0.280085, 0.672501,
                               0.047413, -0.011820, 0.042940, 0.968881};
constexpr double kTritan[9] = {1.255528, -0.076749, -0.178779, -0.078411, 0.930809,
                               0.147602, 0.004733, 0.691367, 0.303900};

constexpr Theme kDark = {rgb(0x111418), rgb(0x1B1F24), rgb(0x343B44), rgb(0xE6E8EB), rgb(0xA8B0BA),
                         rgb(0x111418), rgb(0x111418), rgb(0x2A3038), rgb(0x7CC4FF),
                         rgb(0x2C333C), rgb(0x3A434E), rgb(0x242A31)};
constexpr Theme kLight = {rgb(0xECEEF1), rgb(0xFFFFFF), rgb(0xC3C8CF), rgb(0x1A1D21), rgb(0x4A5058),
                          rgb(0xFFFFFF), rgb(0x1A1D21), rgb(0xDDE1E6), rgb(0x005A9C),
                          rgb(0xE3E7EC), rgb(0xD2D8DF), rgb(0xF4F6F8)};
constexpr Theme kHigh = {rgb(0x000000), rgb(0x000000), rgb(0xFFFFFF), rgb(0xFFFFFF), rgb(0xE6E8EB),
                         rgb(0x000000), rgb(0x000000), rgb(0x4A5058), rgb(0xFFE800),
                         rgb(0x1A1D21), rgb(0x3A434E), rgb(0x101214)};

constexpr OwnerLook kLooks[kOwners] = {
    {kGrey, kBlack, Pattern::none, "CTX", "context"},
    {kBlue, kWhite, Pattern::none, "WGT", "weights"},
    {kOrange, kBlack, Pattern::none, "KV", "KV cache"},
    {kVermillion, kBlack, Pattern::diagonal, "ACT", "activations"},
    {kSky, kBlack, Pattern::dots, "WRK", "workspace"},
    {kSky, kBlack, Pattern::dots, "GRA", "graphs"},
    {kSky, kBlack, Pattern::dots, "COM", "communication"},
    {kYellow, kBlack, Pattern::crosshatch, "FRG", "cached"},
    {kPale, kBlack, Pattern::back_diagonal, "OTH", "other processes"},
    {kWhite, kBlack, Pattern::vertical, "VIEW", "viewer"},
    {kPurple, kBlack, Pattern::horizontal, "???", "unattributed"},
};

}  // namespace

double luminance(Rgb c) {
    return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

double contrast(Rgb a, Rgb b) {
    const double la = luminance(a), lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

const char* vision_name(Vision v) {
    switch (v) {
        case Vision::protan: return "protan";
        case Vision::deutan: return "deutan";
        case Vision::tritan: return "tritan";
        case Vision::greyscale: return "greyscale";
        case Vision::normal:
        case Vision::count_: break;
    }
    return "normal";
}

Rgb view_as(Rgb c, Vision v) {
    const double* m = nullptr;
    switch (v) {
        case Vision::normal:
        case Vision::count_: return c;
        case Vision::greyscale: {
            const std::uint8_t y = encoded(luminance(c));
            return {y, y, y};
        }
        case Vision::protan: m = kProtan; break;
        case Vision::deutan: m = kDeutan; break;
        case Vision::tritan: m = kTritan; break;
    }
    const double r = linear(c.r), g = linear(c.g), b = linear(c.b);
    return {encoded(m[0] * r + m[1] * g + m[2] * b), encoded(m[3] * r + m[4] * g + m[5] * b),
            encoded(m[6] * r + m[7] * g + m[8] * b)};
}

bool pattern_at(Pattern p, int x, int y, int unit) {
    const int step = 7 * unit, stroke = unit;
    const auto every = [&](int v) { return ((v % step) + step) % step < stroke; };
    switch (p) {
        case Pattern::none: return false;
        case Pattern::diagonal: return every(x + y);
        case Pattern::back_diagonal: return every(x - y);
        case Pattern::crosshatch: return every(x + y) || every(x - y);
        case Pattern::horizontal: return every(y);
        case Pattern::vertical: return every(x);
        case Pattern::dots: {
            const int dot = 5 * unit;
            return x % dot < 2 * unit && y % dot < 2 * unit;
        }
    }
    return false;
}

const char* theme_name(ThemeName t) {
    switch (t) {
        case ThemeName::light: return "light";
        case ThemeName::high_contrast: return "high contrast";
        case ThemeName::dark:
        case ThemeName::count_: break;
    }
    return "dark";
}

const Theme& theme(ThemeName name) {
    switch (name) {
        case ThemeName::light: return kLight;
        case ThemeName::high_contrast: return kHigh;
        case ThemeName::dark:
        case ThemeName::count_: break;
    }
    return kDark;
}

const OwnerLook& owner_look(Owner owner) { return kLooks[static_cast<std::size_t>(owner)]; }

Theme Palette::theme() const {
    Theme t = paint::theme(name);
    if (vision == Vision::normal) return t;
    for (Rgb* c : {&t.background, &t.panel, &t.edge, &t.text, &t.secondary, &t.plot, &t.outline,
                   &t.grid, &t.accent, &t.button, &t.button_hover, &t.field})
        *c = see(*c);
    return t;
}

Rgb Palette::owner_pixel(Owner o, int x, int y) const {
    const OwnerLook& look = owner_look(o);
    if (patterns && pattern_at(look.pattern, x, y, unit)) return see(mix(look.fill, kBlack, 45));
    return see(look.fill);
}

}  // namespace oomlab::paint
