// Textures of the current OpenGL context. Created on first use, updated in place while the size holds.
#pragma once

#include <array>

#include "ui/window/textures.hpp"

namespace oomlab::window {

class GlTextures final : public TextureHost {
  public:
    ~GlTextures() override;
    std::uintptr_t upload(Slot slot, const paint::Canvas& canvas) override;

  private:
    struct Texture {
        unsigned id = 0;
        int width = 0, height = 0;
    };
    std::array<Texture, static_cast<std::size_t>(Slot::count_)> textures_{};
};

}  // namespace oomlab::window
