#include <fmt/format.h>

#include "ui/window/compat.hpp"
#include "ui/window/panels/panels.hpp"

namespace oomlab::window {
namespace {

std::string request_text(u32 request) {
    return request == trace::kNoRequest ? std::string("no single request") : fmt::format("request {}", request);
}

// Parses the frame for the moment when it is not the one that is held.
void refresh(Ui& ui, MapPanel& panel, u64 asked) {
    const i64 moment = ui.state.moment_us(ui.model);
    const view::MapFrame* frame = view::Model::nearest(ui.model.block_maps(), moment);
    if (frame != nullptr && (panel.parsed != frame->payload.data() || panel.figures_for != asked)) {
        if (panel.parsed != frame->payload.data())
            panel.blocks = view::parse_block_map(frame->time_us, frame->payload);
        panel.parsed = frame->payload.data();
        panel.figures_for = asked;
        panel.figures = view::map_figures(panel.blocks, asked);
    }
    const view::MapFrame* kv = view::Model::nearest(ui.model.kv_maps(), moment);
    if (kv != nullptr && panel.kv_parsed != kv->payload.data()) {
        panel.kv_parsed = kv->payload.data();
        panel.kv = view::parse_kv_map(kv->time_us, kv->payload);
    }
    if (frame == nullptr) panel.parsed = nullptr;
    if (kv == nullptr) panel.kv_parsed = nullptr;
}

void image(Ui& ui, MapPanel& panel, const Rect& rect, u64 asked) {
    const int w = static_cast<int>(rect.width()), h = static_cast<int>(rect.height());
    if (w < 8 || h < 4) return;
    const bool grid = ui.state.map_mode == MapMode::kv_grid;
    const void* frame = grid ? panel.kv_parsed : panel.parsed;
    const u64 key = stable_hash(fmt::format("{} {} {} {} {} {} {} {} {} {}", ui.state.map_split_only, static_cast<int>(ui.state.map_mode), frame, w, h,
                                            ui.state.map_zoom, ui.state.map_scroll, ui.state.request(), asked,
                                            ui.settings.patterns * 100 + static_cast<int>(ui.settings.theme) * 10 +
                                                static_cast<int>(ui.settings.vision)));
    if (key != panel.key) {
        panel.key = key;
        panel.canvas.resize(w, h);
        if (grid) {
            panel.kv_layout = paint::paint_kv_grid(panel.canvas, panel.kv, ui.state.request(), ui.kit.palette);
        } else {
            paint::MapView view;
            view.asked_bytes = asked;
            view.split_only = ui.state.map_split_only;
            view.zoom = ui.state.map_zoom;
            view.scroll = ui.state.map_scroll;
            view.highlight_request = ui.state.request();
            panel.layout = paint::paint_block_map(panel.canvas, panel.blocks, view, ui.kit.palette);
        }
        panel.texture = ui.textures.upload(Slot::map, panel.canvas);
    }
    ImGui::GetWindowDrawList()->AddImage(as_texture(panel.texture), {rect.x0, rect.y0}, {rect.x1, rect.y1});
    ui.kit.note_drawn("map.image", "", rect);
    panel.image = rect;
}

void block_tip(Ui& ui, const MapPanel& panel, int x, int y, u64 asked) {
    const auto hit = panel.layout.hit(panel.blocks, x, y);
    if (hit.segment < 0) return;
    const trace::MapSegment& s = panel.blocks.segments[static_cast<std::size_t>(hit.segment)];
    std::string tip;
    if (hit.block >= 0) {
        const trace::MapBlock& b = panel.blocks.blocks[static_cast<std::size_t>(hit.block)];
        switch (b.state) {
            case trace::BlockState::active:
                tip = fmt::format("{}\n{}\n{}", paint::owner_look(b.owner).name, exact_bytes(b.bytes), request_text(b.request));
                if (ImGui::IsMouseClicked(0) && b.request != trace::kNoRequest) ui.state.pin_request(b.request);
                break;
            case trace::BlockState::pending_free: tip = fmt::format("waiting for a stream\n{}", exact_bytes(b.bytes)); break;
            case trace::BlockState::free:
                tip = fmt::format("free, in the cache\n{}", exact_bytes(b.bytes));
                if (b.bytes < asked)
                    tip += fmt::format("\nuseless for what failed: it is {} too small", human_bytes(asked - b.bytes));
                break;
        }
        tip += fmt::format("\nat 0x{:x}", b.address);
    }
    tip += fmt::format("\nsegment {} of {}: {}{}, {} blocks", hit.segment + 1, panel.blocks.segments.size(), human_bytes(s.bytes),
                       s.small_pool != 0 ? ", small pool" : "", s.blocks);
    ImGui::SetTooltip("%s", tip.c_str());
}

void kv_tip(Ui& ui, const MapPanel& panel, int x, int y) {
    const u32 block = panel.kv_layout.block_at(x, y);
    if (block >= panel.kv.blocks_total) return;
    const int owner = paint::kv_owner_of(panel.kv, panel.kv_layout, block);
    if (owner == -1) {
        ImGui::SetTooltip("held by the prefix cache alone");
    } else if (owner == -2) {
        ImGui::SetTooltip("free");
    } else {
        const trace::KvOwner& o = panel.kv.owners[static_cast<std::size_t>(owner)];
        if (ImGui::IsMouseClicked(0)) ui.state.pin_request(o.request);
        ImGui::SetTooltip("request %u\n%u blocks", o.request, o.blocks);
    }
}

// Three sources side by side, and what none of them can name.
void figures_table(Ui& ui) {
    Kit& kit = ui.kit;
    if (!ui.summary.figures) {
        kit.note("map.figures.empty", "No sample yet.");
        return;
    }
    const view::Figures& f = *ui.summary.figures;
    const auto owner = [&](Owner o) { return f.owner_bytes[static_cast<std::size_t>(o)]; };
    const u64 named = f.used_bytes - std::min(f.used_bytes, owner(Owner::unattributed));
    struct Row {
        const char* id;
        const char* what;
        u64 bytes;
        bool strong;
    };
    const Row rows[] = {{"figures.driver", "the driver says used", f.used_bytes, true},
                        {"figures.reserved", "the allocator says reserved", f.reserved_bytes, false},
                        {"figures.allocated", "   of which allocated", f.allocated_bytes, false},
                        {"figures.split", "   of which free parts of split blocks", f.inactive_split_bytes, false},
                        {"figures.context", "context and libraries", owner(Owner::context), false},
                        {"figures.graphs", "graphs", owner(Owner::graphs), false},
                        {"figures.others", "other processes", owner(Owner::other_processes), false},
                        {"figures.viewer", "this viewer", owner(Owner::viewer), false},
                        {"figures.named", "named by an owner", named, true},
                        {"figures.left", "unattributed", owner(Owner::unattributed), true}};
    for (const Row& row : rows) {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const std::string value = exact_bytes(row.bytes);
        const float wide = ImGui::GetContentRegionAvail().x;
        kit.text_at((std::string(row.id) + ".name").c_str(), at.x, at.y, row.what,
                    row.strong ? kit.theme.text : kit.theme.secondary, nullptr, wide - kit.width_of(value) - kit.em);
        kit.text_at(row.id, at.x + wide - kit.width_of(value), at.y, value, kit.theme.text);
        ImGui::Dummy({wide, kit.em * 1.15f});
    }
    if (owner(Owner::unattributed) > f.total_bytes / 50)
        kit.text("figures.warning", "More than 2% of the card has no owner: do not trust a budget made from these figures.",
                 kit.palette.fail());
}

void legend(Ui& ui, const MapPanel& panel, float x, float y, float right, u64 asked) {
    Kit& kit = ui.kit;
    const float size = kit.fonts.small_px - 2;
    const auto item = [&](const char* id, const std::string& said, const auto& draw_swatch) {
        const float wide = size + kit.em + kit.width_of(said, kit.fonts.small);
        if (x + wide > right) return;
        draw_swatch(x, y + 1);
        kit.text_at(id, x + size + kit.em * 0.25f, y, said, kit.theme.secondary, kit.fonts.small);
        x += wide;
    };
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const auto plain = [&](paint::Rgb c) {
        return [&draw, c, size, &kit](float sx, float sy) {
            draw.AddRectFilled({sx, sy}, {sx + size, sy + size}, Kit::colour(c));
            draw.AddRect({sx, sy}, {sx + size, sy + size}, Kit::colour(kit.theme.edge));
        };
    };
    if (ui.state.map_mode == MapMode::blocks) {
        for (const Owner o : view::stack_order())
            if (panel.figures.owner_bytes[static_cast<std::size_t>(o)] > 0)
                item("map.legend", paint::owner_look(o).name, [&](float sx, float sy) { kit.swatch(o, sx, sy, size); });
        item("map.legend.free", "free", plain(paint::mix(kit.theme.plot, kit.theme.text, 10)));
        if (asked > 0)
            item("map.legend.useless", "free but useless for " + human_bytes(asked),
                 [&](float sx, float sy) { kit.swatch(Owner::cached, sx, sy, size); });
    } else {
        item("map.legend.kv", fmt::format("in use, a colour a request ({})", panel.kv.owners.size()),
             plain(kit.palette.owner(Owner::kv)));
        item("map.legend.kvc", fmt::format("prefix cache {}", panel.kv.blocks_cached), plain(paint::mix(kit.theme.plot, kit.theme.text, 35)));
        item("map.legend.kvf", "free", plain(paint::mix(kit.theme.plot, kit.theme.text, 12)));
        if (panel.kv_layout.blocks_per_cell > 1)
            item("map.legend.per", fmt::format("a cell is {} blocks", panel.kv_layout.blocks_per_cell), plain(kit.theme.plot));
    }
}

}  // namespace

void draw_map(Ui& ui, MapPanel& panel, const Rect& rect) {
    Kit& kit = ui.kit;
    const MapMode mode = ui.state.map_mode;
    const view::FailureNote* failure = ui.summary.failure;
    const u64 asked = failure != nullptr ? std::max(failure->record.rounded_bytes, failure->record.requested_bytes) : 0;
    refresh(ui, panel, asked);
    const bool grid = mode == MapMode::kv_grid;
    const i64 frame_us = grid ? panel.kv.time_us : panel.blocks.time_us;
    const char* name = mode == MapMode::blocks ? "MEMORY MAP  segments and blocks"
                       : grid                  ? "MEMORY MAP  KV pool by request"
                                               : "MEMORY MAP  figures, reconciled";
    const bool held = grid ? panel.kv_parsed != nullptr : panel.parsed != nullptr;
    const std::string title = mode == MapMode::figures || !held ? std::string(name)
                                                               : fmt::format("{}  as of {}", name, clock_text(frame_us));
    kit.begin_panel("map", title.c_str(), rect, mode == MapMode::figures, ui.focus == PanelId::map);
    static constexpr const char* kModes[] = {"Blocks", "KV grid", "Figures"};
    static constexpr const char* kIds[] = {"map.blocks", "map.kv", "map.figures"};
    for (int i = 0; i < 3; ++i) {
        if (i > 0) ImGui::SameLine();
        if (kit.button(kIds[i], kModes[i], true, static_cast<int>(mode) == i)) ui.state.map_mode = static_cast<MapMode>(i);
    }
    if (mode != MapMode::figures) {
        kit.same_line_if_fits(kit.em * 3);
        if (kit.button("map.previous", "<")) ui.said = Command::previous_map;
        ImGui::SameLine();
        if (kit.button("map.next", ">")) ui.said = Command::next_map;
        if (!grid) {
            kit.same_line_if_fits(kit.em * 7);
            if (kit.button("map.split", "Only with holes  Y", true, ui.state.map_split_only)) ui.said = Command::map_split;
        }
        if (ui.state.request() != trace::kNoRequest) {
            const std::string said = fmt::format("{} in white  [ ] step  Esc unpins", request_text(ui.state.request()));
            kit.same_line_if_fits(kit.width_of(said));
            kit.note("map.pinned", said);
        }
    }
    if (mode == MapMode::figures) {
        figures_table(ui);
        kit.end_panel();
        return;
    }
    const std::string& problem = grid ? panel.kv.problem : panel.blocks.problem;
    if (!held || !problem.empty()) {
        kit.note("map.empty", !problem.empty() ? std::string_view(problem)
                              : !ui.link.coming ? "No map in this trace: the server ended before there was one."
                              : grid           ? "No map of the KV pool yet: the first comes when the pool is made and a request runs."
                                               : "No map of blocks yet: the first comes when the server allocates, one comes with every failure.");
        kit.end_panel();
        return;
    }
    const Rect in = kit.content();
    const float line = kit.fonts.small_px + kit.em * 0.2f;
    std::string said;
    if (grid) {
        said = fmt::format("{} of {} blocks in use ({:.0f}%), prefix cache {}, {} requests", panel.kv.blocks_used, panel.kv.blocks_total,
                           100.0 * panel.kv.blocks_used / std::max(1u, panel.kv.blocks_total), panel.kv.blocks_cached,
                           panel.kv.owners.size());
    } else {
        const view::MapFigures& f = panel.figures;
        said = fmt::format("largest hole {}", human_bytes(f.largest_hole_bytes));
        if (asked > 0) said += fmt::format("   lost to a request of {}: {}", human_bytes(asked), human_bytes(f.lost_bytes));
        else said += fmt::format("   free in {} holes: {}", f.holes, human_bytes(f.free_bytes));
        said += fmt::format("   in use {} of {} reserved", gib(f.in_use_bytes), gib(f.reserved_bytes));
        if (panel.layout.left_out_bytes() > 0) said += fmt::format("   {} without a hole not drawn", gib(panel.layout.left_out_bytes()));
        if (panel.blocks.truncated_blocks > 0) said += fmt::format("   {} blocks not kept", panel.blocks.truncated_blocks);
    }
    kit.text_at("map.numbers", in.x0, in.y0, said, kit.theme.text, nullptr, in.width());
    const float top = in.y0 + kit.em * 1.3f;
    const Rect picture{in.x0, top, in.x1, in.y1 - line};
    image(ui, panel, picture, asked);
    legend(ui, panel, in.x0, in.y1 - line + kit.em * 0.1f, in.x1, asked);
    const ImGuiIO& io = ImGui::GetIO();
    if (ImGui::IsWindowHovered() && picture.contains(io.MousePos.x, io.MousePos.y)) {
        const int x = static_cast<int>(io.MousePos.x - picture.x0), y = static_cast<int>(io.MousePos.y - picture.y0);
        if (grid) kv_tip(ui, panel, x, y);
        else block_tip(ui, panel, x, y, asked);
        if (io.MouseWheel != 0 && !grid) {
            if (io.KeyCtrl) ui.state.map_zoom = std::clamp(ui.state.map_zoom * (io.MouseWheel > 0 ? 1.25 : 0.8), 1.0, 4096.0);
            else ui.state.map_scroll = std::clamp(ui.state.map_scroll - io.MouseWheel * 0.1, 0.0, 1.0);
        }
    }
    kit.end_panel();
}

}  // namespace oomlab::window
