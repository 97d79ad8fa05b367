// Where pictures go to be shown. One slot a picture; the null host of the tests keeps nothing.
#pragma once

#include <cstdint>

#include "ui/window/paint/canvas.hpp"

namespace oomlab::window {

enum class Slot : std::size_t { timeline, lanes, minimap, map, count_ };

class TextureHost {
  public:
    virtual ~TextureHost() = default;
    // Copies the canvas into the slot's texture and returns its number for ImGui; 0: cannot.
    virtual std::uintptr_t upload(Slot slot, const paint::Canvas& canvas) = 0;
};

class NullTextures final : public TextureHost {
  public:
    std::uintptr_t upload(Slot slot, const paint::Canvas&) override {
        ++uploads;
        return static_cast<std::uintptr_t>(slot) + 1;
    }
    int uploads = 0;
};

}  // namespace oomlab::window
