#include "ui/window/panels/panels.hpp"

namespace oomlab::window {

float draw_legend(Ui& ui, const std::array<u64, kOwners>& bytes, const Rect& rect) {
    Kit& kit = ui.kit;
    float x = rect.x0, y = rect.y0;
    const float line = kit.fonts.small_px + kit.em * 0.15f;
    const float size = kit.fonts.small_px - 2;
    int left_out = 0;
    for (const Owner owner : view::stack_order()) {
        const u64 held = bytes[static_cast<std::size_t>(owner)];
        if (held == 0) continue;
        const paint::OwnerLook& look = paint::owner_look(owner);
        const std::string said = std::string(look.name) + " " + gib(held);
        const float wide = size + kit.em * 1.1f + kit.width_of(said, kit.fonts.small);
        if (x + wide > rect.x1 && y + line * 1.9f <= rect.y1) {
            x = rect.x0;
            y += line;
        }
        if (x + wide > rect.x1) {
            ++left_out;
            continue;
        }
        kit.swatch(owner, x, y + 1, size);
        kit.text_at((std::string("legend.") + look.label).c_str(), x + size + kit.em * 0.25f, y, said,
                    kit.theme.text, kit.fonts.small);
        x += wide;
    }
    if (left_out > 0) {
        const std::string said = "+" + std::to_string(left_out) + " more";
        if (x + kit.width_of(said, kit.fonts.small) <= rect.x1)
            kit.text_at("legend.more", x, y, said, kit.theme.secondary, kit.fonts.small);
    }
    return y + line - rect.y0;
}

}  // namespace oomlab::window
