// A picture without a display: an OpenGL context on EGL's surfaceless platform, which works where
// GLFW does not start (containers, SSH, CI). Software rendering is what it takes there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "ui/window/app.hpp"

namespace oomlab::window {

class Offscreen {
  public:
    // On failure: Error::environment with what was missing and which package brings it.
    static Result<std::unique_ptr<Offscreen>> create(int width, int height);
    ~Offscreen();
    Offscreen(const Offscreen&) = delete;
    Offscreen& operator=(const Offscreen&) = delete;

    TextureHost& textures();
    // One whole frame: fonts, input as it stands in ImGui's io, drawing, waiting for the pixels.
    void frame(App& app, Probe* probe = nullptr);
    std::vector<std::uint32_t> pixels() const;   // rows from the top, RGBA
    int width() const { return width_; }
    int height() const { return height_; }
    const char* renderer() const;

  private:
    struct Egl;
    Offscreen(std::unique_ptr<Egl> egl, int width, int height);
    std::unique_ptr<Egl> egl_;
    int width_, height_;
};

// On failure: Error::io.
Result<void> write_png(const std::string& path, int width, int height, const std::vector<std::uint32_t>& pixels);

}  // namespace oomlab::window
