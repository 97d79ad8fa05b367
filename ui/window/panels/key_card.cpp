#include "ui/window/panels/panels.hpp"

namespace oomlab::window {

void draw_key_card(Ui& ui, float width, float height) {
    Kit& kit = ui.kit;
    const float em = kit.em;
    float keys = 0, help = 0;
    std::size_t rows = 0;
    const char* group = "";
    for (const Binding& b : bindings()) {
        if (b.keys == nullptr) continue;
        keys = std::max(keys, kit.width_of(b.keys));
        help = std::max(help, kit.width_of(b.help, kit.fonts.small));
        ++rows;
        if (std::string_view(group) != b.group) rows += 2;
        group = b.group;
    }
    const float line = em * 1.2f;
    const float column = keys + help + em * 2.2f;
    const std::size_t columns = std::max<std::size_t>(1, std::min<std::size_t>(3, static_cast<std::size_t>((width - em * 3) / column)));
    const std::size_t per = (rows + columns - 1) / columns + 1;
    const float wide = std::min(column * static_cast<float>(columns) + em * 1.5f, width - em);
    const float high = std::min(line * static_cast<float>(per) + em * 4.2f, height - em);
    const Rect rect{(width - wide) / 2, (height - high) / 2, (width + wide) / 2, (height + high) / 2};
    kit.begin_panel("key_card", "KEYS  any key closes", rect, true, true, Kit::Layer::overlay);
    const Rect in = kit.content();
    std::size_t row = 0, at_column = 0;
    group = "";
    for (const Binding& b : bindings()) {
        if (b.keys == nullptr) continue;
        const bool begins = std::string_view(group) != b.group;
        if (row + (begins ? 3 : 1) > per && at_column + 1 < columns) {
            ++at_column;
            row = 0;
        }
        const float x = in.x0 + column * static_cast<float>(at_column);
        if (begins) {
            if (row > 0) ++row;
            kit.text_at("keys.group", x, in.y0 + line * static_cast<float>(row), b.group, kit.theme.accent);
            ++row;
            group = b.group;
        }
        const float y = in.y0 + line * static_cast<float>(row);
        kit.text_at("keys.key", x, y, b.keys, kit.theme.text);
        kit.text_at("keys.help", x + keys + em * 0.8f, y + (em - kit.fonts.small_px), b.help, kit.theme.secondary, kit.fonts.small);
        ++row;
    }
    ImGui::Dummy({wide - em * 2, line * static_cast<float>(columns == 1 ? row : per)});
    kit.end_panel();
}

}  // namespace oomlab::window
