#include <fmt/format.h>

#include <cmath>

#include "ui/window/panels/panels.hpp"

namespace oomlab::window {
namespace {

// A field is two lines: what it is, small; its value below.
struct Field {
    const char* id;
    std::string label, value, rest;   // rest: smaller, behind the value
    paint::Rgb colour;
};

std::string per_minute(double bytes) {
    const double size = std::abs(bytes);
    const char sign = bytes < 0 ? '-' : '+';
    if (size < static_cast<double>(kMiB)) return fmt::format("{}{}", sign, human_bytes(static_cast<u64>(size)));
    return fmt::format("{}{:.1f} MiB", sign, size / static_cast<double>(kMiB));
}

std::string growth_value(const view::Summary& s) {
    const view::Growth& g = s.leading != nullptr ? *s.leading : s.allocated;
    if (s.leading == nullptr && s.floor_rises())
        return fmt::format("+{} a request", human_bytes(static_cast<u64>(std::max(0.0, s.floor.rise.bytes_per_request))));
    if (!g.known) return s.floor_known ? "flat so far" : "not yet known";
    if (s.leading == nullptr) return "flat";
    return per_minute(g.per_minute) + "/min";
}

std::string growth_rest(const view::Summary& s) {
    const view::Growth& g = s.leading != nullptr ? *s.leading : s.allocated;
    if (s.leading == nullptr && s.floor_rises())
        return fmt::format("over {} requests", s.floor.rise.completed);
    if (!g.known) return g.more_s > 0 ? fmt::format("sure in {:.0f} min", std::ceil(g.more_s / 60)) : "";
    if (s.leading == nullptr) return per_minute(g.per_minute) + "/min allocated";
    std::string rest = fmt::format("{} to {}", per_minute(g.low), per_minute(g.high));
    if (s.full_us >= 0 && s.failure == nullptr)
        rest += ", full at " + clock_text(s.full_us);
    return rest;
}

}  // namespace

float status_height(const Kit& kit, float width) {
    const float row = kit.fonts.big_px + kit.fonts.small_px + kit.em * 1.0f;
    const bool two_rows = width < kit.em * 66;
    return row + (two_rows ? kit.em * 1.6f + kit.fonts.small_px : 0);
}

void draw_status(Ui& ui, const Rect& rect) {
    Kit& kit = ui.kit;
    kit.begin_panel("status", "", rect, false, false);
    const view::Summary& s = ui.summary;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float em = kit.em;
    float x = rect.x0 + em * 0.7f;
    const float top = rect.y0 + em * 0.45f;
    const float big = kit.fonts.big_px, small = kit.fonts.small_px;

    // The pill: a shape and a word.
    const paint::Rgb ink = kit.health_colour(s.health);
    const char* word = view::health_word(s.health);
    const float pill_width = em * 2.3f + kit.width_of(word);
    const float middle = top + (small + big) / 2 + em * 0.1f;
    draw.AddRect({x, middle - em}, {x + pill_width, middle + em}, Kit::colour(ink), em, 0, 2);
    kit.health_shape(s.health, x + em * 1.0f, middle, em * 0.45f, ink);
    kit.text_at("status.word", x + em * 1.8f, middle - em * 0.5f, word, ink);
    x += pill_width + em * 1.2f;

    // Headroom: the biggest number on the screen.
    const std::string headroom = s.figures ? gib(s.figures->headroom_bytes()) : "-";
    kit.text_at("status.headroom.label", x, top, "headroom for the next request", kit.theme.secondary,
                kit.fonts.small);
    const float headroom_width =
        kit.text_at("status.headroom", x, top + small + em * 0.1f, headroom, kit.theme.text, kit.fonts.big);
    const Rect number{x, top, x + headroom_width, top + small + big};
    x += std::max(headroom_width, kit.width_of("headroom for the next request", kit.fonts.small)) + em * 1.4f;

    std::vector<Field> fields;
    if (s.figures) {
        const view::Figures& f = *s.figures;
        const double share = f.total_bytes == 0 ? 0 : 100.0 * static_cast<double>(f.used_bytes) /
                                                          static_cast<double>(f.total_bytes);
        fields.push_back({"status.used", "used / total",
                          fmt::format("{} / {}", gib(f.used_bytes), gib(f.total_bytes)),
                          fmt::format("{:.0f}%", share), kit.theme.text});
        fields.push_back({"status.gap", "reserved - allocated", gib(f.cached_bytes()),
                          fmt::format("largest: {}", paint::owner_look(s.largest).name), kit.theme.text});
    }
    fields.push_back({"status.growth",
                      s.leading != nullptr ? fmt::format("growing: {}", s.leading_name)
                      : s.floor_rises()
                          ? fmt::format("growing: {}", diagnosis::growing_name(s.floor.what)) : std::string("growth"),
                      growth_value(s), growth_rest(s),
                      s.leading != nullptr || s.floor_rises() ? kit.palette.fail() : kit.theme.text});
    const view::RunFacts& facts = ui.model.facts();
    fields.push_back({"status.device", facts.simulated ? "device, simulated" : "device",
                      facts.device_name.empty() ? "unknown" : facts.device_name, facts.model_name,
                      kit.theme.text});
    const trace::Phase phase = ui.model.phase_at(s.moment_us);
    fields.push_back({"status.time", ui.link.live ? "live" : ui.link.text, clock_text(s.moment_us),
                      trace::phase_name(phase), kit.theme.text});

    float y = top;
    const float right = rect.x1 - em * 0.5f;
    const float value_at = small + em * 0.25f;
    bool second_row = false;
    for (const Field& field : fields) {
        const float wide = std::max({kit.width_of(field.label, kit.fonts.small), kit.width_of(field.value),
                                     kit.width_of(field.rest, kit.fonts.small)});
        if (x + wide > right && !second_row && rect.height() > big + small * 2 + em * 2) {
            second_row = true;
            x = rect.x0 + em * 0.7f;
            y = top + small + big + em * 0.45f;
        }
        if (x + wide > right) continue;   // said in the panels below as well
        kit.text_at((std::string(field.id) + ".label").c_str(), x, y, field.label, kit.theme.secondary,
                    kit.fonts.small);
        kit.text_at(field.id, x, y + value_at, field.value, field.colour);
        if (!second_row)
            kit.text_at((std::string(field.id) + ".rest").c_str(), x, y + value_at + em * 1.2f, field.rest,
                        kit.theme.secondary, kit.fonts.small);
        x += wide + em * 1.4f;
    }

    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (s.figures && number.contains(mouse.x, mouse.y))
        ImGui::SetTooltip("%s\n= free on the device %s\n+ held by the cache %s",
                          exact_bytes(s.figures->headroom_bytes()).c_str(),
                          exact_bytes(s.figures->device_free_bytes()).c_str(),
                          exact_bytes(s.figures->cached_bytes()).c_str());
    kit.end_panel();
}

}  // namespace oomlab::window
