#include "labs/field/picture/canvas.hpp"

#include <algorithm>
#include <cmath>

#include "labs/field/picture/font.hpp"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace oomlab::field {

Colour colour_of(std::string_view owner) {
    if (owner == "context") return {120, 120, 128};
    if (owner == "weights") return {66, 107, 171};
    if (owner == "kv") return {72, 150, 98};
    if (owner == "activations") return {222, 138, 56};
    if (owner == "graphs") return {146, 104, 178};
    if (owner == "communication") return {160, 110, 90};
    if (owner == "non_torch") return {172, 172, 96};
    if (owner == "headroom") return {232, 232, 236};
    return {200, 70, 70};
}

Canvas::Canvas(int width, int height, Colour background)
    : width_(std::clamp(width, 1, 8192)),
      height_(std::clamp(height, 1, 8192)),
      pixels_(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3) {
    fill(0, 0, width_, height_, background);
}

void Canvas::put(int x, int y, Colour c) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    unsigned char* p = &pixels_[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                                 static_cast<std::size_t>(x)) *
                                3];
    p[0] = c.r, p[1] = c.g, p[2] = c.b;
}

Colour Canvas::pixel(int x, int y) const {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return {};
    const unsigned char* p =
        &pixels_[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                  static_cast<std::size_t>(x)) *
                 3];
    return {p[0], p[1], p[2]};
}

void Canvas::fill(int x, int y, int w, int h, Colour c) {
    for (int j = std::max(0, y); j < std::min(height_, y + h); ++j)
        for (int i = std::max(0, x); i < std::min(width_, x + w); ++i) put(i, j, c);
}

void Canvas::frame(int x, int y, int w, int h, Colour c) {
    fill(x, y, w, 1, c);
    fill(x, y + h - 1, w, 1, c);
    fill(x, y, 1, h, c);
    fill(x + w - 1, y, 1, h, c);
}

void Canvas::line(double x0, double y0, double x1, double y1, Colour c) {
    const double length = std::max({1.0, std::fabs(x1 - x0), std::fabs(y1 - y0)});
    if (!(length < 1e5)) return;
    for (int i = 0; i <= static_cast<int>(length); ++i) {
        const double t = i / length;
        put(static_cast<int>(std::lround(x0 + t * (x1 - x0))),
            static_cast<int>(std::lround(y0 + t * (y1 - y0))), c);
    }
}

int Canvas::text(int x, int y, std::string_view text, Colour c, int scale) {
    for (char ch : text) {
        const std::size_t index = ch >= 32 && ch < 127 ? static_cast<std::size_t>(ch - 32)
                                                       : static_cast<std::size_t>('?' - 32);
        for (int row = 0; row < kGlyphHeight; ++row)
            for (int column = 0; column < kGlyphWidth; ++column)
                if ((kGlyphs[index] >>
                         ((kGlyphHeight - 1 - row) * kGlyphWidth + (kGlyphWidth - 1 - column)) &
                     1) != 0)
                    fill(x + column * scale, y + row * scale, scale, scale, c);
        x += 6 * scale;
    }
    return text_width(text, scale);
}

Result<void> Canvas::write_png(const std::string& path) const {
    if (stbi_write_png(path.c_str(), width_, height_, 3, pixels_.data(), width_ * 3) == 0)
        return fail(Error::io(path + ": the picture could not be written"));
    return {};
}

}  // namespace oomlab::field
