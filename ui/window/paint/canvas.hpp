// A picture in memory: what the painters fill and a texture or a PNG shows. Row 0 is the top.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ui/window/paint/theme.hpp"

namespace oomlab::paint {

class Canvas {
  public:
    // Keeps the pixels' memory when it is large enough; the content is undefined afterwards.
    void resize(int width, int height) {
        width_ = std::max(width, 0);
        height_ = std::max(height, 0);
        pixels_.resize(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_));
    }
    int width() const { return width_; }
    int height() const { return height_; }
    const std::uint32_t* data() const { return pixels_.data(); }
    std::uint32_t* row(int y) { return pixels_.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width_); }
    std::uint32_t at(int x, int y) const {
        return pixels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)];
    }
    void set(int x, int y, std::uint32_t colour) {
        if (x >= 0 && y >= 0 && x < width_ && y < height_) row(y)[x] = colour;
    }
    // Clipped to the canvas.
    void fill(int x0, int y0, int x1, int y1, std::uint32_t colour) {
        x0 = std::max(x0, 0);
        y0 = std::max(y0, 0);
        x1 = std::min(x1, width_);
        y1 = std::min(y1, height_);
        for (int y = y0; y < y1; ++y) std::fill(row(y) + x0, row(y) + std::max(x0, x1), colour);
    }
    void clear(std::uint32_t colour) { std::fill(pixels_.begin(), pixels_.end(), colour); }

  private:
    int width_ = 0, height_ = 0;
    std::vector<std::uint32_t> pixels_;
};

}  // namespace oomlab::paint
