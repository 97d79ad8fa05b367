// A real window: GLFW and OpenGL 3. Draws only when something changed; idle it sleeps.
#pragma once

#include <memory>
#include <string>

#include "kernels/base/result.hpp"
#include "ui/window/app.hpp"

namespace oomlab::window {

class GlfwWindow {
  public:
    enum class Renderer { any, software };   // software: no byte of the card under test is taken
    // On failure: Error::environment: no display, no OpenGL, with what to use instead.
    static Result<std::unique_ptr<GlfwWindow>> create(const Settings& settings, const std::string& title,
                                                      Renderer renderer);
    ~GlfwWindow();
    GlfwWindow(const GlfwWindow&) = delete;
    GlfwWindow& operator=(const GlfwWindow&) = delete;

    TextureHost& textures();
    // Until the person closes it. The window's size is written back into the app's settings.
    void run(App& app);

  private:
    struct State;
    explicit GlfwWindow(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace oomlab::window
