// Flags that `view` and `render` share.
#pragma once

#include <string>

#include "kernels/base/result.hpp"
#ifdef OOMLAB_HAVE_WINDOW
#include "ui/window/settings.hpp"
#endif

namespace CLI {
class App;
}

namespace oomlab::cli {

struct WindowFlags {
    std::string theme, view_as, size, prediction, before;
    int text = 0;   // 0: as saved
};
void add_window_flags(CLI::App& cmd, WindowFlags& flags);

#ifdef OOMLAB_HAVE_WINDOW
// `base` with what the flags say. On failure: Error::usage with what is accepted.
Result<window::Settings> settings_of(const WindowFlags& flags, window::Settings base);
#endif

// What `view` and `render` say in a build without the window.
Error no_window();

}  // namespace oomlab::cli
