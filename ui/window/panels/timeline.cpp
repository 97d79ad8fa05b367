#include "ui/window/panels/panels.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ui/window/compat.hpp"

namespace oomlab::window {
namespace {

struct Scale {
    TimeRange range;
    Rect plot;
    u64 top_bytes, base_bytes;
    float x(i64 t) const {
        return plot.x0 + plot.width() * static_cast<float>(static_cast<double>(t - range.from_us) /
                                                           static_cast<double>(range.length()));
    }
    i64 time(float px) const {
        return range.from_us + static_cast<i64>(static_cast<double>((px - plot.x0) / plot.width()) *
                                                static_cast<double>(range.length()));
    }
    float y(double bytes) const {
        return plot.y1 - plot.height() * static_cast<float>((bytes - static_cast<double>(base_bytes)) /
                                                            static_cast<double>(top_bytes - base_bytes));
    }
};

// A round step so that labels stand about `apart` of the range.
i64 round_step_us(double wanted_us) {
    static constexpr double kSteps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
    static constexpr double kSeconds[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
                                          14400, 43200, 86400};
    for (const double scale : {1.0, 1000.0})
        for (const double step : kSteps)
            if (step * scale >= wanted_us) return static_cast<i64>(step * scale);
    for (const double s : kSeconds)
        if (s * 1e6 >= wanted_us) return static_cast<i64>(s * 1e6);
    return static_cast<i64>(std::ceil(wanted_us / 86400e6) * 86400e6);
}

void axes(Ui& ui, const Scale& s, float label_y) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    // Round figures: about one label every three lines of text.
    const double top_gib = static_cast<double>(s.top_bytes) / static_cast<double>(kGiB);
    const double base_gib = static_cast<double>(s.base_bytes) / static_cast<double>(kGiB);
    double step_gib = 0.125;
    while ((top_gib - base_gib) / step_gib > s.plot.height() / (kit.em * 2.6f)) step_gib *= step_gib < 1 || step_gib >= 4 ? 2 : step_gib < 2 ? 2 : 2.5;
    int count = 0;
    for (double at = std::ceil(base_gib / step_gib) * step_gib; at <= top_gib; at += step_gib, ++count) {
        const std::string label = fmt::format("{:g}", at);
        const float middle = s.y(at * static_cast<double>(kGiB));
        const float y = std::clamp(middle - kit.fonts.small_px * 0.5f, s.plot.y0, s.plot.y1 - kit.fonts.small_px);
        draw.AddLine({s.plot.x0 - kit.em * 0.2f, middle}, {s.plot.x0, middle}, Kit::colour(kit.theme.secondary));
        kit.text_at(fmt::format("timeline.y{}", count).c_str(),
                    s.plot.x0 - kit.em * 0.4f - kit.width_of(label, kit.fonts.small), y, label,
                    kit.theme.secondary, kit.fonts.small);
    }
    kit.text_at("timeline.unit", s.plot.x0 - kit.em * 3.4f, s.plot.y0 - kit.fonts.small_px - 3, "GiB",
                kit.theme.secondary, kit.fonts.small);
    const double wanted = static_cast<double>(s.range.length()) * kit.em * 6 / s.plot.width();
    const i64 step = round_step_us(wanted);
    float free_from = s.plot.x0;
    for (i64 t = (s.range.from_us / step) * step; t <= s.range.to_us; t += step) {
        if (t < s.range.from_us || t < 0) continue;
        const float x = s.x(t);
        std::string label = clock_text(t);
        if (step % 1'000'000 == 0) label = label.substr(0, label.size() - 2);
        if (step < 100'000) label = fmt::format("{:.3f} s", static_cast<double>(t) / 1e6);
        const float wide = kit.width_of(label, kit.fonts.small);
        if (x < free_from || x + wide > s.plot.x1) continue;
        draw.AddLine({x, label_y}, {x, label_y + kit.em * 0.25f}, Kit::colour(kit.theme.secondary));
        kit.text_at("timeline.t", x + kit.em * 0.2f, label_y, label, kit.theme.secondary, kit.fonts.small);
        free_from = x + wide + kit.em;
    }
}

void phases(Ui& ui, const Scale& s, float y) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const auto& marks = ui.model.phases();
    for (std::size_t i = 0; i < marks.size(); ++i) {
        const i64 until = i + 1 < marks.size() ? marks[i + 1].time_us : ui.model.last_us();
        const float x0 = std::max(s.x(marks[i].time_us), s.plot.x0);
        const float x1 = std::min(s.x(until), s.plot.x1);
        if (x1 <= s.plot.x0 || x0 >= s.plot.x1 || x1 - x0 < 1) continue;
        draw.AddRectFilled({x0, y}, {x1 - 1, y + kit.fonts.small_px + 1},
                           Kit::colour(i % 2 == 0 ? kit.theme.button : kit.theme.field));
        const char* name = trace::phase_name(marks[i].phase);
        if (kit.width_of(name, kit.fonts.small) + kit.em * 0.4f < x1 - x0)
            kit.text_at("timeline.phase", x0 + kit.em * 0.2f, y, name, kit.theme.secondary, kit.fonts.small);
    }
}

void dashed(ImDrawList& draw, float x0, float y0, float x1, float y1, ImU32 ink, float dash, float thick) {
    const float dx = x1 - x0, dy = y1 - y0;
    const float length = std::sqrt(dx * dx + dy * dy);
    if (!(length > 0) || length > 1e6f) return;
    for (float at = 0; at < length; at += dash * 2) {
        const float a = at / length, b = std::min(at + dash, length) / length;
        draw.AddLine({x0 + dx * a, y0 + dy * a}, {x0 + dx * b, y0 + dy * b}, ink, thick);
    }
}

// Capacity, the prediction's sum, the trend with its interval and where it ends.
void lines(Ui& ui, const Scale& s) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.PushClipRect({s.plot.x0, s.plot.y0}, {s.plot.x1, s.plot.y1}, true);
    const u64 total = ui.model.total_bytes();
    const float cap = s.y(static_cast<double>(total));
    draw.AddLine({s.plot.x0, cap}, {s.plot.x1, cap}, Kit::colour(kit.theme.text), 2);
    float chip_x = s.plot.x0 + kit.em * 0.3f;
    const auto chip = [&](const char* id, float y, const std::string& said) {
        const float wide = kit.width_of(said, kit.fonts.small) + kit.em * 0.4f;
        draw.AddRectFilled({chip_x, y + 2}, {chip_x + wide, y + kit.fonts.small_px + 4}, Kit::colour(kit.theme.panel));
        kit.text_at(id, chip_x + kit.em * 0.2f, y + 2, said, kit.theme.text, kit.fonts.small);
        chip_x += wide + kit.em * 0.4f;
    };
    if (!ui.prediction.empty()) {
        const float y = s.y(static_cast<double>(ui.prediction.sum_bytes()));
        dashed(draw, s.plot.x0, y, s.plot.x1, y, Kit::colour(kit.theme.text), kit.em * 0.5f, 1.5f);
        chip("timeline.capacity", cap, "capacity " + gib(total));
        chip("timeline.predicted", y, "predicted " + gib(ui.prediction.sum_bytes()));
    } else {
        chip("timeline.capacity", cap, "capacity " + gib(total));
    }
    const view::Growth* g = ui.summary.leading;
    if (g != nullptr && ui.summary.figures) {
        // Drawn at the top of the stack, where it will meet the capacity.
        const double used = static_cast<double>(ui.summary.figures->used_bytes) -
                            static_cast<double>(ui.summary.figures->cached_bytes());
        const double lift = used - g->value_at(g->end_us);
        const i64 far = std::max(s.range.to_us, g->end_us);
        const auto point = [&](i64 t, double slope) {
            const double pivot = g->value_at(g->end_us) + lift;
            return ImVec2(s.x(t), s.y(pivot + slope * static_cast<double>(t - g->end_us) / 60e6));
        };
        const ImVec2 now = point(g->end_us, g->per_minute);
        const ImU32 ink = Kit::colour(kit.theme.accent);
        draw.AddTriangleFilled(now, point(far, g->high), point(far, g->low), Kit::colour(kit.theme.accent, 50));
        const ImVec2 begin = point(g->begin_us, g->per_minute), end = point(far, g->per_minute);
        draw.AddLine(begin, now, ink, 2.5f);
        dashed(draw, now.x, now.y, end.x, end.y, ink, kit.em * 0.4f, 2.5f);
    }
    draw.PopClipRect();
}

void failures(Ui& ui, const Scale& s) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    float free_from = -1e9f;
    for (const view::FailureNote& f : ui.model.failures()) {
        if (f.time_us < s.range.from_us || f.time_us > s.range.to_us) continue;
        const float x = s.x(f.time_us);
        const bool memory = f.record.kind == trace::FailureKind::allocator_oom ||
                            f.record.kind == trace::FailureKind::device_oom;
        const std::string said = std::string(memory ? "OOM " : "ERROR ") + owner_name(f.record.owner).data();
        const float wide = kit.width_of(said) + kit.em * 2.0f;
        const float left = x - wide < s.plot.x0 ? x : x - wide;
        if (left < free_from) continue;
        const float y = s.plot.y0 + std::min(kit.em * 1.4f, std::max(0.0f, (s.plot.height() - kit.em * 1.5f) / 2));
        draw.AddRectFilled({left, y}, {left + wide, y + kit.em * 1.5f}, Kit::colour(kit.theme.panel));
        draw.AddRect({left, y}, {left + wide, y + kit.em * 1.5f}, Kit::colour(kit.palette.fail()), 0, 0, 2);
        kit.health_shape(memory ? view::Health::oom : view::Health::error, left + kit.em * 0.9f, y + kit.em * 0.75f,
                         kit.em * 0.35f, kit.palette.fail());
        kit.text_at("timeline.oom", left + kit.em * 1.6f, y + kit.em * 0.22f, said, kit.theme.text);
        free_from = left + wide + kit.em * 0.3f;
    }
}

// The least that was held, the cache left out, while the server was past loading.
u64 lowest_use(const view::Model& model, const TimeRange& range) {
    i64 from = range.from_us, until = range.to_us;
    bool serving = false;
    for (const view::PhaseMark& mark : model.phases()) {
        if (serving) until = std::min(until, mark.time_us);   // shutting down lets everything go
        serving = mark.phase == trace::Phase::serving;
        if (serving) {
            from = std::max(range.from_us, mark.time_us);
            until = range.to_us;
        }
    }
    const auto slice = model.tiers().slice(from, until, 512);
    u64 lowest = UINT64_MAX;
    for (const view::Bucket& b : slice.buckets) {
        const u64 used = b.value[view::kDeviceUsed].now, cached = b.value[static_cast<std::size_t>(Owner::cached)].now;
        if (b.begin_us >= from && b.end_us <= until) lowest = std::min(lowest, used - std::min(used, cached));
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

void hover_tip(Ui& ui, i64 time_us) {
    const auto f = ui.model.figures_at(time_us);
    if (!f) return;
    std::string tip = clock_text(time_us) + "  " + trace::phase_name(ui.model.phase_at(time_us));
    const auto& order = view::stack_order();
    for (std::size_t i = order.size(); i-- > 0;) {
        const u64 bytes = f->owner_bytes[static_cast<std::size_t>(order[i])];
        if (bytes > 0) tip += fmt::format("\n{}  {}", paint::owner_look(order[i]).name, exact_bytes(bytes));
    }
    tip += fmt::format("\nused  {}\nheadroom  {}", exact_bytes(f->used_bytes), exact_bytes(f->headroom_bytes()));
    tip += fmt::format("\nrunning {}, waiting {}, KV {}/{}", f->running, f->waiting, f->kv_blocks_used, f->kv_blocks_total);
    ImGui::SetTooltip("%s", tip.c_str());
}

// Start, end and change by owner for the selection, over the plot.
void selection_table(Ui& ui, const Scale& s) {
    const auto& range = ui.state.selection();
    if (!range) return;
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float x0 = std::clamp(s.x(range->from_us), s.plot.x0, s.plot.x1);
    const float x1 = std::clamp(s.x(range->to_us), s.plot.x0, s.plot.x1);
    draw.AddRectFilled({x0, s.plot.y0}, {x1, s.plot.y1}, Kit::colour(kit.theme.accent, 36));
    draw.AddLine({x0, s.plot.y0}, {x0, s.plot.y1}, Kit::colour(kit.theme.accent), 1.5f);
    draw.AddLine({x1, s.plot.y0}, {x1, s.plot.y1}, Kit::colour(kit.theme.accent), 1.5f);
    const auto begin = ui.model.figures_at(range->from_us), end = ui.model.figures_at(range->to_us);
    if (!begin || !end) return;
    struct Row {
        std::string name, from, to, change;
    };
    std::vector<Row> rows = {{fmt::format("{:.1f} s", static_cast<double>(range->length()) / 1e6), "start", "end", "change"}};
    const auto add = [&](const char* name, u64 a, u64 b) {
        if (a == 0 && b == 0) return;
        rows.push_back({name, gib(a), gib(b), a == b ? "0" : human_bytes_signed(static_cast<i64>(b) - static_cast<i64>(a))});
    };
    for (const Owner o : view::stack_order())
        add(paint::owner_look(o).name, begin->owner_bytes[static_cast<std::size_t>(o)],
            end->owner_bytes[static_cast<std::size_t>(o)]);
    add("used", begin->used_bytes, end->used_bytes);
    const float column[] = {kit.em * 8.2f, kit.em * 5.4f, kit.em * 5.4f, kit.em * 5.6f};
    const float wide = column[0] + column[1] + column[2] + column[3] + kit.em * 0.8f;
    const float line = kit.fonts.small_px + kit.em * 0.12f;
    const float high = line * static_cast<float>(rows.size()) + kit.em * 0.6f;
    if (wide > s.plot.width() || high > s.plot.height()) return;   // the events panel still has them
    float x = x1 + kit.em * 0.4f;
    if (x + wide > s.plot.x1) x = std::max(s.plot.x0, x0 - wide - kit.em * 0.4f);
    const float y = s.plot.y1 - high - kit.em * 0.3f;
    draw.AddRectFilled({x, y}, {x + wide, y + high}, Kit::colour(kit.theme.panel, 240));
    draw.AddRect({x, y}, {x + wide, y + high}, Kit::colour(kit.theme.accent));
    for (std::size_t r = 0; r < rows.size(); ++r) {
        float cx = x + kit.em * 0.4f;
        const float cy = y + kit.em * 0.3f + line * static_cast<float>(r);
        const std::string* cells[] = {&rows[r].name, &rows[r].from, &rows[r].to, &rows[r].change};
        for (std::size_t c = 0; c < 4; ++c) {
            const float shift = c == 0 ? 0 : column[c] - kit.em * 0.4f - kit.width_of(*cells[c], kit.fonts.small);
            kit.text_at(r == 0 ? "timeline.delta.head" : "timeline.delta", cx + shift, cy, *cells[c],
                        r == 0 ? kit.theme.secondary : kit.theme.text, kit.fonts.small);
            cx += column[c];
        }
    }
}

void minimap(Ui& ui, TimelinePanel& panel, const Rect& rect) {
    Kit& kit = ui.kit;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const i64 first = ui.model.first_us();
    const i64 last = std::max(ui.model.last_us(), first + 1000);
    const paint::TimelineView all{first, last, std::max<u64>(ui.model.total_bytes(), 1), 0};
    const int w = static_cast<int>(rect.width()), h = static_cast<int>(rect.height());
    const u64 key = stable_hash(fmt::format("{} {} {}", ui.revision, w, h));
    if (key != panel.minimap_key) {
        panel.minimap_key = key;
        panel.minimap.resize(w, h);
        paint::paint_stack(panel.minimap, ui.model, all, kit.palette);
        panel.minimap_texture = ui.textures.upload(Slot::minimap, panel.minimap);
    }
    draw.AddImage(as_texture(panel.minimap_texture), {rect.x0, rect.y0}, {rect.x1, rect.y1});
    const auto x_of = [&](i64 t) {
        return std::clamp(rect.x0 + rect.width() * static_cast<float>(static_cast<double>(t - first) /
                                                                      static_cast<double>(last - first)),
                          rect.x0, rect.x1);
    };
    const float x0 = x_of(ui.state.range().from_us), x1 = std::max(x_of(ui.state.range().to_us), x0 + 3);
    draw.AddRectFilled({rect.x0, rect.y0}, {x0, rect.y1}, Kit::colour(kit.theme.background, 150));
    draw.AddRectFilled({x1, rect.y0}, {rect.x1, rect.y1}, Kit::colour(kit.theme.background, 150));
    draw.AddRect({x0, rect.y0}, {x1, rect.y1}, Kit::colour(kit.theme.accent), 0, 0, 1.5f);
    kit.note_drawn("timeline.minimap", "", rect);
    const ImGuiIO& io = ImGui::GetIO();
    if (ImGui::IsWindowHovered() && rect.contains(io.MousePos.x, io.MousePos.y) && ImGui::IsMouseClicked(0)) panel.moving = true;
    if (!ImGui::IsMouseDown(0)) panel.moving = false;
    if (panel.moving) {
        const double share = (io.MousePos.x - rect.x0) / rect.width();
        const i64 middle = first + static_cast<i64>(share * static_cast<double>(last - first));
        const i64 half = ui.state.range().length() / 2;
        ui.state.show({middle - half, middle + half});
    }
}

void mouse(Ui& ui, TimelinePanel& panel, const Scale& s, const Rect& area) {
    const ImGuiIO& io = ImGui::GetIO();
    const bool inside = ImGui::IsWindowHovered() && area.contains(io.MousePos.x, io.MousePos.y);
    const i64 here = s.time(io.MousePos.x);
    if (inside && io.MouseWheel != 0)
        ui.state.zoom(io.MouseWheel > 0 ? 0.8 : 1.25, (io.MousePos.x - s.plot.x0) / s.plot.width());
    if (inside && ImGui::IsMouseClicked(0)) {
        panel.selecting = true;
        panel.drag_from_us = here;
    }
    if (inside && (ImGui::IsMouseClicked(1) || ImGui::IsMouseClicked(2))) {
        panel.panning = true;
        panel.last_x = io.MousePos.x;
    }
    if (panel.panning) {
        if (ImGui::IsMouseDown(1) || ImGui::IsMouseDown(2)) {
            if (io.MousePos.x != panel.last_x)
                ui.state.pan((panel.last_x - io.MousePos.x) / s.plot.width());
            panel.last_x = io.MousePos.x;
        } else {
            panel.panning = false;
        }
    }
    if (panel.selecting) {
        const float moved = std::abs(io.MousePos.x - s.x(panel.drag_from_us));
        if (ImGui::IsMouseDown(0)) {
            if (moved > ui.kit.em * 0.4f)
                ui.state.select({std::min(panel.drag_from_us, here), std::max(panel.drag_from_us, here)});
        } else {
            panel.selecting = false;
            if (moved <= ui.kit.em * 0.4f) ui.state.put_cursor(std::clamp(here, ui.model.first_us(), ui.model.last_us()));
        }
    } else if (inside && s.plot.contains(io.MousePos.x, io.MousePos.y)) {
        ImGui::GetWindowDrawList()->AddLine({io.MousePos.x, s.plot.y0}, {io.MousePos.x, area.y1},
                                            Kit::colour(ui.kit.theme.secondary));
        hover_tip(ui, here);
    }
}

}  // namespace

void draw_timeline(Ui& ui, TimelinePanel& panel, const Rect& rect) {
    Kit& kit = ui.kit;
    const bool follow = ui.state.following();
    const std::string title = fmt::format("TIMELINE  {}{}{}", ui.state.stretched ? "stretched, does not begin at 0 (Z), " : "", follow ? "following the newest" : "frozen (Space follows)",
                                          panel.samples_per_bucket > 1
                                              ? fmt::format(", smallest and largest of {} samples", panel.samples_per_bucket)
                                              : "");
    kit.begin_panel("timeline", title.c_str(), rect, false, ui.focus == PanelId::timeline);
    const Rect in = kit.content();
    if (ui.model.tiers().samples() == 0) {
        kit.note("timeline.empty", ui.link.coming
                                       ? "No sample yet. The first one shows here by itself, as soon as a run begins."
                                       : "This trace holds no samples: the server ended before it touched the device.");
        kit.end_panel();
        return;
    }
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float line = kit.fonts.small_px + kit.em * 0.15f;
    float y = in.y0;
    if (ui.summary.figures) {
        const float room = in.height() > kit.em * 15 ? line * 2 : line;
        y += draw_legend(ui, ui.summary.figures->owner_bytes, {in.x0, y, in.x1, y + room});
    }
    y += kit.em * 0.15f;
    const float phase_y = y;
    y += kit.fonts.small_px + 3;
    const float gutter = kit.em * 3.6f;
    const bool roomy = in.height() > kit.em * 13, tiny = in.height() < kit.em * 10;
    const float lane = roomy ? kit.em * 0.95f : kit.em * 0.7f;
    const int lanes = in.height() > kit.em * 9 ? static_cast<int>(paint::Lane::count_) : 2;
    const float overview = roomy ? kit.em * 1.7f : tiny ? 0 : kit.em * 1.1f;
    const float below = lane * static_cast<float>(lanes) + line + overview + kit.em * 0.4f;
    Scale s{ui.state.range(), {in.x0 + gutter, y, in.x1, std::max(in.y1 - below, y + 10)}, 1, 0};
    const u64 top = std::max<u64>({ui.model.total_bytes(), ui.model.used_peak_bytes(), 100});
    if (ui.state.stretched) s.base_bytes = std::min(lowest_use(ui.model, s.range) / 100 * 98, top / 2 * 2 - 1);
    s.top_bytes = top + (top - s.base_bytes) / 25;
    panel.plot = s.plot;

    const int w = static_cast<int>(s.plot.width()), h = static_cast<int>(s.plot.height());
    const int lanes_h = static_cast<int>(lane * static_cast<float>(lanes));
    const u64 key = stable_hash(fmt::format("{} {} {} {} {} {}", ui.revision, s.range.from_us, s.range.to_us, w, h, s.base_bytes));
    if (key != panel.stack_key && w > 0 && h > 0) {
        panel.stack_key = key;
        const paint::TimelineView view{s.range.from_us, s.range.to_us, s.top_bytes, s.base_bytes};
        panel.stack.resize(w, h);
        panel.samples_per_bucket = paint::paint_stack(panel.stack, ui.model, view, kit.palette);
        if (ui.before != nullptr) paint::paint_ghost_line(panel.stack, *ui.before, view, kit.palette);
        panel.stack_texture = ui.textures.upload(Slot::timeline, panel.stack);
        panel.lanes.resize(w, lanes_h);
        for (int i = 0; i < lanes; ++i)
            paint::paint_lane(panel.lanes, lanes_h * i / lanes, lanes_h * (i + 1) / lanes,
                              static_cast<paint::Lane>(i), ui.model, view, kit.palette);
        panel.lanes_texture = ui.textures.upload(Slot::lanes, panel.lanes);
    }
    draw.AddImage(as_texture(panel.stack_texture), {s.plot.x0, s.plot.y0}, {s.plot.x1, s.plot.y1});
    kit.note_drawn("timeline.plot", "", s.plot);
    phases(ui, s, phase_y);
    lines(ui, s);
    const Rect lane_rect{s.plot.x0, s.plot.y1 + 2, s.plot.x1, s.plot.y1 + 2 + static_cast<float>(lanes_h)};
    draw.AddImage(as_texture(panel.lanes_texture), {lane_rect.x0, lane_rect.y0}, {lane_rect.x1, lane_rect.y1});
    kit.note_drawn("timeline.lanes", "", lane_rect);
    for (int i = 0; i < lanes; ++i) {
        const char* name = paint::lane_name(static_cast<paint::Lane>(i));
        kit.text_at(fmt::format("timeline.lane{}", i).c_str(),
                    s.plot.x0 - kit.em * 0.3f - kit.width_of(name, kit.fonts.small),
                    lane_rect.y0 + lane * static_cast<float>(i), name, kit.theme.secondary, kit.fonts.small);
    }
    axes(ui, s, lane_rect.y1 + 1);
    failures(ui, s);
    selection_table(ui, s);
    if (!ui.state.at_end()) {
        const float x = s.x(ui.state.moment_us(ui.model));
        if (x >= s.plot.x0 && x <= s.plot.x1)
            draw.AddLine({x, s.plot.y0}, {x, lane_rect.y1}, Kit::colour(kit.theme.accent), 2);
    }
    mouse(ui, panel, s, {s.plot.x0, s.plot.y0, s.plot.x1, lane_rect.y1});
    if (!tiny) minimap(ui, panel, {s.plot.x0, lane_rect.y1 + line + kit.em * 0.15f, s.plot.x1, in.y1});
    kit.end_panel();
}

}  // namespace oomlab::window
