// The panels, one a file. Each draws itself into a rectangle from what it is handed and keeps only
// what it needs to draw the next frame faster.
#pragma once

#include <string>

#include "kernels/base/prng.hpp"
#include "ui/view_model/budget.hpp"
#include "ui/view_model/summary.hpp"
#include "ui/window/hosts.hpp"
#include "ui/window/keys.hpp"
#include "ui/window/kit.hpp"
#include "ui/window/paint/memory_map.hpp"
#include "ui/window/paint/timeline.hpp"
#include "ui/window/settings.hpp"
#include "ui/window/textures.hpp"
#include "ui/window/view_state.hpp"

namespace oomlab::window {

enum class PanelId : int { none, course, budget, timeline, map, why, events, count_ };

// Where the data come from, in words.
struct LinkState {
    bool live = false;
    bool coming = true;    // more may come: live, or nothing is open yet
    std::string text;      // "live", "finished", "reconnecting: last data at ..."
    std::string problem;   // damage, drops; "" when all is well
};

struct Ui {
    Kit& kit;
    TextureHost& textures;
    const view::Model& model;
    const view::Model* before;         // the run before, for comparison; may be null
    const view::Summary& summary;
    const view::Prediction& prediction;
    ViewState& state;
    const Settings& settings;
    const LinkState& link;
    CourseHost* course;
    ControlHost* control;
    PanelId focus;
    u64 revision;                      // of the model and everything that a picture depends on
    bool compact;                      // little room: leave out what can be found elsewhere
    Command said = Command::none;      // what a click asked for; the app does it after the frame
};

// [STATUS] Returns the height that it wants at a width.
float status_height(const Kit& kit, float width);
void draw_status(Ui& ui, const Rect& rect);

// [BUDGET]
float budget_height(const Ui& ui, float width);
void draw_budget(Ui& ui, const Rect& rect);

struct TimelinePanel {
    paint::Canvas stack, lanes, minimap;
    std::uintptr_t stack_texture = 0, lanes_texture = 0, minimap_texture = 0;
    u64 stack_key = 0, minimap_key = 0, samples_per_bucket = 1;
    bool selecting = false, panning = false, moving = false;
    i64 drag_from_us = 0;
    float last_x = 0;
    Rect plot;             // of the last frame
};
void draw_timeline(Ui& ui, TimelinePanel& panel, const Rect& rect);

struct MapPanel {
    paint::Canvas canvas;
    std::uintptr_t texture = 0;
    u64 key = 0;
    const std::byte* parsed = nullptr;   // the frame that is held below
    view::BlockMap blocks;
    view::MapFigures figures;
    view::KvMap kv;
    const std::byte* kv_parsed = nullptr;
    u64 figures_for = 0;
    paint::MapLayout layout;
    paint::KvLayout kv_layout;
    Rect image;
};
void draw_map(Ui& ui, MapPanel& panel, const Rect& rect);

struct EventsPanel {
    std::string typed;
    bool focus_filter = false;
    std::vector<u32> rows;               // indexes of the events that the filter lets through
    std::size_t looked_at = 0;           // events that were filtered into rows
    std::string filtered_text;
    u32 filtered_groups = ~0u;
    u64 filtered_model = 0;
    std::size_t first_row = 0;
    std::optional<std::size_t> shown_event;
    std::size_t visible_rows = 1;
    bool stick_to_end = true;
};
void draw_events(Ui& ui, EventsPanel& panel, const Rect& rect);
void scroll_events(EventsPanel& panel, Command command);

void draw_why(Ui& ui, const Rect& rect);

struct CoursePanel {
    std::string prediction, answer, runbook;
    std::string prediction_of, answer_of, runbook_of;   // what the texts belong to
    bool focus_text = false, show_list = false, ask_reset = false;
    enum class Tab { task, interview, runbook } tab = Tab::task;
};
void draw_course(Ui& ui, CoursePanel& panel, const Rect& rect);

struct ControlsPanel {
    bool open = false;                   // the knobs
    std::vector<Knob> knobs;
};
void draw_controls(Ui& ui, ControlsPanel& panel, const Rect& rect);

void draw_key_card(Ui& ui, float width, float height);

// Shared between panels: every owner that holds something, as swatch, name and bytes, in as many
// lines as the rectangle has room for. Returns the height that was taken.
float draw_legend(Ui& ui, const std::array<u64, kOwners>& bytes, const Rect& rect);

}  // namespace oomlab::window
