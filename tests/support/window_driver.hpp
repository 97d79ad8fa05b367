// Drives the window without a window: ImGui with no backend, the mouse and keys fed by hand, and every
// text and button that was drawn written down.
#pragma once

#include <string>
#include <vector>

#include "ui/window/app.hpp"

namespace oomlab::testing {

class WindowDriver {
  public:
    WindowDriver(int width, int height, const window::Settings& settings = {});
    ~WindowDriver();
    WindowDriver(const WindowDriver&) = delete;
    WindowDriver& operator=(const WindowDriver&) = delete;

    window::App& app() { return *app_; }
    const window::Probe& seen() const { return probe_; }
    void frames(int count = 3);

    void move(float x, float y);
    void click(const std::string& id);                 // the middle of what was drawn under the name
    void click_at(float x, float y);
    void drag(float x0, float y0, float x1, float y1, int button = 0);
    void wheel(float up);
    void key(int code, bool ctrl = false, bool shift = false, bool alt = false);
    void type(const std::string& text);                // into the text box that has the focus

    // Everything that is wrong with the last frame to a reader's eye: text cut off at a panel's edge,
    // text over text. Empty when all is well.
    std::vector<std::string> faults() const;
    int uploads() const { return textures_.uploads; }

  private:
    window::NullTextures textures_;
    std::unique_ptr<window::App> app_;
    window::Probe probe_;
    int width_, height_;
};

}  // namespace oomlab::testing
