#include <fmt/format.h>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

#include "ui/window/platform/offscreen.hpp"

namespace oomlab::window {

Result<void> write_png(const std::string& path, int width, int height, const std::vector<std::uint32_t>& pixels) {
    // Alpha says nothing here: three bytes a pixel make a smaller file.
    std::vector<unsigned char> rgb;
    rgb.reserve(pixels.size() * 3);
    for (const std::uint32_t p : pixels)
        for (int shift = 0; shift < 24; shift += 8) rgb.push_back(static_cast<unsigned char>(p >> shift));
    stbi_write_png_compression_level = 9;
    if (stbi_write_png(path.c_str(), width, height, 3, rgb.data(), width * 3) == 0)
        return fail(Error::io(fmt::format("{}: cannot be written", path)));
    return {};
}

}  // namespace oomlab::window
