#include "ui/window/platform/gl_textures.hpp"

#include <GL/gl.h>

// In OpenGL since 1.2, in <GL/gl.h> only with extensions.
#ifndef GL_CLAMP_TO_EDGE
#define GL_CLAMP_TO_EDGE 0x812F
#endif

namespace oomlab::window {

GlTextures::~GlTextures() {
    for (Texture& t : textures_)
        if (t.id != 0) glDeleteTextures(1, &t.id);
}

std::uintptr_t GlTextures::upload(Slot slot, const paint::Canvas& canvas) {
    if (canvas.width() == 0 || canvas.height() == 0) return 0;
    Texture& t = textures_[static_cast<std::size_t>(slot)];
    if (t.id == 0) {
        glGenTextures(1, &t.id);
        glBindTexture(GL_TEXTURE_2D, t.id);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    }
    glBindTexture(GL_TEXTURE_2D, t.id);
    glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
    if (t.width != canvas.width() || t.height != canvas.height()) {
        t.width = canvas.width();
        t.height = canvas.height();
        glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, t.width, t.height, 0, GL_RGBA, GL_UNSIGNED_BYTE, canvas.data());
    } else {
        glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, t.width, t.height, GL_RGBA, GL_UNSIGNED_BYTE, canvas.data());
    }
    return t.id;
}

}  // namespace oomlab::window
