// Paints the timeline: owners stacked, with the smallest and largest value in every column, and thin
// lanes under it. One pass over the buckets that touch the range; no text.
#pragma once

#include "ui/view_model/model.hpp"
#include "ui/window/paint/canvas.hpp"

namespace oomlab::paint {

struct TimelineView {
    i64 from_us = 0, to_us = 1;   // REQUIRES: from_us < to_us
    u64 top_bytes = 1;            // what the upper edge stands for
    u64 base_bytes = 0;           // and the lower one; below it nothing is drawn
};

// Fills the whole canvas. Returns how many samples one bucket stood for.
u64 paint_stack(Canvas& canvas, const view::Model& model, const TimelineView& view,
                const Palette& palette);

// A run kept for comparison: the largest use as a faint line over a stack already painted.
void paint_ghost_line(Canvas& canvas, const view::Model& model, const TimelineView& view,
                      const Palette& palette);

enum class Lane { load, kv, preemptions, events, count_ };
const char* lane_name(Lane lane);
// One lane into rows [y0, y1).
void paint_lane(Canvas& canvas, int y0, int y1, Lane lane, const view::Model& model,
                const TimelineView& view, const Palette& palette);

}  // namespace oomlab::paint
