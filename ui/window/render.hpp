// `oomlab render`: a captioned picture of a trace, drawn without a display.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "ui/window/panels/panels.hpp"

namespace oomlab::window {

struct RenderOptions {
    std::string trace, png;
    std::vector<PanelId> panels;    // empty: the whole window
    std::string at;                 // "end", "failure", "12.5s", "event:N", "request:N"
    std::string prediction, before; // files; "" when none
    MapMode map_mode = MapMode::blocks;
    Settings settings;
};
// "timeline" -> PanelId::timeline. On failure: Error::usage with the names there are.
Result<PanelId> parse_panel(const std::string& name);

// Draws and writes the file. On failure: the trace's, the picture's or the machine's error.
Result<void> render_png(const RenderOptions& options);

}  // namespace oomlab::window
