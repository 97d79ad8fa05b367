// `oomlab view`, and whoever else opens the window (the course, `run --window`).
#pragma once

#include <string>

#include "kernels/base/result.hpp"
#include "ui/window/hosts.hpp"
#include "ui/window/settings.hpp"

namespace oomlab::window {

struct OpenOptions {
    std::string what = ".";           // a trace, a folder, or HOST:PORT
    std::string prediction, before;   // files; "" when none
    Settings settings;
    std::string settings_path;        // where they are kept; "": nowhere
    bool software = false;
    CourseHost* course = nullptr;     // borrowed for as long as the window is open
    ControlHost* control = nullptr;
};
// Returns when the window is closed. A folder without a trace opens a window that waits for one.
// On failure: the trace's error, or Error::environment without a display.
Result<void> open_window(const OpenOptions& options);

}  // namespace oomlab::window
