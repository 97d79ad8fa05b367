// A small picture in memory: rectangles, lines, text, and a PNG file at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace oomlab::field {

struct Colour {
    unsigned char r = 0, g = 0, b = 0;
};

// Colours of the owners of memory, the same in every picture.
Colour colour_of(std::string_view owner);

class Canvas {
  public:
    Canvas(int width, int height, Colour background = {255, 255, 255});
    int width() const { return width_; }
    int height() const { return height_; }
    void fill(int x, int y, int w, int h, Colour c);
    void frame(int x, int y, int w, int h, Colour c);
    void line(double x0, double y0, double x1, double y1, Colour c);
    // Returns the width in pixels. Bytes outside of printable ASCII are drawn as '?'.
    int text(int x, int y, std::string_view text, Colour c, int scale = 2);
    static int text_width(std::string_view text, int scale = 2) {
        return static_cast<int>(text.size()) * 6 * scale;
    }
    Colour pixel(int x, int y) const;
    // On failure: Error::io naming the file.
    Result<void> write_png(const std::string& path) const;

  private:
    void put(int x, int y, Colour c);
    int width_, height_;
    std::vector<unsigned char> pixels_;
};

}  // namespace oomlab::field
