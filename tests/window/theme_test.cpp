// Recomputes what the palette promises from the theme itself: 4.5:1 for text, 3:1 for graphics, and
// neighbours in the stack that stay apart for everybody.
#include <doctest/doctest.h>

#include "ui/view_model/budget.hpp"
#include "ui/window/paint/theme.hpp"

using namespace oomlab;
using namespace oomlab::paint;

TEST_CASE("contrast: black and white are 21 to 1, in either order") {
    CHECK(contrast(kBlack, kWhite) == doctest::Approx(21));
    CHECK(contrast(kWhite, kBlack) == doctest::Approx(21));
    CHECK(contrast(kBlue, kBlue) == doctest::Approx(1));
}

TEST_CASE("contrast: the table of owners' colours on both dark grounds and on white") {
    struct Row {
        Rgb colour;
        double dark, panel, white;
    };
    const Row rows[] = {{kBlue, 3.6, 3.2, 5.2},   {kVermillion, 4.8, 4.3, 3.9}, {kGreen, 5.4, 4.8, 3.4},
                        {kPurple, 6.0, 5.4, 3.1}, {kGrey, 6.5, 5.8, 2.9},       {kSky, 8.0, 7.2, 2.3},
                        {kOrange, 8.2, 7.4, 2.3}, {kYellow, 14.0, 12.5, 1.3}};
    const Theme& dark = theme(ThemeName::dark);
    for (const Row& row : rows) {
        CHECK(std::abs(contrast(row.colour, dark.background) - row.dark) < 0.06);
        CHECK(std::abs(contrast(row.colour, dark.panel) - row.panel) < 0.06);
        CHECK(std::abs(contrast(row.colour, kWhite) - row.white) < 0.06);
    }
}

TEST_CASE("contrast: text reads at 4.5 to 1 in every theme, on every ground that it stands on") {
    for (std::size_t i = 0; i < static_cast<std::size_t>(ThemeName::count_); ++i) {
        const Theme& t = theme(static_cast<ThemeName>(i));
        Palette p;
        p.name = static_cast<ThemeName>(i);
        CAPTURE(theme_name(p.name));
        for (const Rgb ground : {t.background, t.panel, t.plot, t.button, t.button_hover, t.field}) {
            CHECK(contrast(t.text, ground) >= 4.5);
            CHECK(contrast(t.secondary, ground) >= 4.5);
        }
        for (const Rgb ground : {t.panel, t.background}) {
            CHECK(contrast(p.pass(), ground) >= 4.5);
            CHECK(contrast(p.fail(), ground) >= 4.5);
            CHECK(contrast(p.warn(), ground) >= 4.5);
            CHECK(contrast(t.accent, ground) >= 4.5);
        }
    }
}

TEST_CASE("contrast: every band is visible at 3 to 1, by its fill or by its outline") {
    for (std::size_t i = 0; i < static_cast<std::size_t>(ThemeName::count_); ++i) {
        const Theme& t = theme(static_cast<ThemeName>(i));
        for (std::size_t o = 0; o < kOwners; ++o) {
            const OwnerLook& look = owner_look(static_cast<Owner>(o));
            CAPTURE(look.label);
            CHECK(std::max(contrast(look.fill, t.plot), contrast(t.outline, t.plot)) >= 3.0);
            CHECK(contrast(look.on_fill, look.fill) >= 4.5);
        }
    }
}

TEST_CASE("contrast: neighbours in the stack differ in lightness, or in pattern as well, in every vision") {
    const auto& order = view::stack_order();
    for (std::size_t v = 0; v < static_cast<std::size_t>(Vision::count_); ++v) {
        for (std::size_t i = 1; i < order.size(); ++i) {
            const OwnerLook& below = owner_look(order[i - 1]);
            const OwnerLook& above = owner_look(order[i]);
            if (below.fill == above.fill) continue;   // one group on the screen
            CAPTURE(below.label);
            CAPTURE(above.label);
            const double ratio = contrast(view_as(below.fill, static_cast<Vision>(v)),
                                          view_as(above.fill, static_cast<Vision>(v)));
            CHECK((ratio >= 1.6 || (below.pattern != above.pattern && ratio >= 1.2)));
        }
    }
}

TEST_CASE("vision: grey stays grey, white stays white") {
    for (std::size_t v = 0; v < static_cast<std::size_t>(Vision::count_); ++v) {
        const Rgb white = view_as(kWhite, static_cast<Vision>(v));
        CHECK(white.r >= 253);
        CHECK(white.g >= 253);
        CHECK(white.b >= 253);
    }
    const Rgb grey = view_as(kVermillion, Vision::greyscale);
    CHECK(grey.r == grey.g);
    CHECK(grey.g == grey.b);
}

TEST_CASE("patterns: strokes cover some of the band and never all of it") {
    for (const Pattern p : {Pattern::diagonal, Pattern::dots, Pattern::crosshatch, Pattern::horizontal,
                            Pattern::vertical, Pattern::back_diagonal}) {
        int covered = 0;
        for (int y = 0; y < 70; ++y)
            for (int x = 0; x < 70; ++x) covered += pattern_at(p, x, y, 1) ? 1 : 0;
        CHECK(covered > 4900 / 20);
        CHECK(covered < 4900 / 3);
    }
}
