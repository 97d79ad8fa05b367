#include "ui/window/platform/offscreen.hpp"

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/format.h>

#include <optional>

#include "ui/window/platform/gl_textures.hpp"

namespace oomlab::window {

struct Offscreen::Egl {
    EGLDisplay display = EGL_NO_DISPLAY;
    EGLSurface surface = EGL_NO_SURFACE;
    EGLContext context = EGL_NO_CONTEXT;
    std::optional<GlTextures> textures;
    bool imgui = false;

    ~Egl() {
        textures.reset();
        if (imgui) {
            ImGui_ImplOpenGL3_Shutdown();
            ImGui::DestroyContext();
        }
        if (display == EGL_NO_DISPLAY) return;
        eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        if (context != EGL_NO_CONTEXT) eglDestroyContext(display, context);
        if (surface != EGL_NO_SURFACE) eglDestroySurface(display, surface);
        eglTerminate(display);
    }
};

namespace {

Failure<Error> cannot(const char* what) {
    return fail(Error::environment(fmt::format(
        "cannot draw off-screen: {} (EGL error 0x{:x}); Mesa's software renderer does it: apt-get install libegl1 libgl1-mesa-dri",
        what, eglGetError())));
}

}  // namespace

Offscreen::Offscreen(std::unique_ptr<Egl> egl, int width, int height)
    : egl_(std::move(egl)), width_(width), height_(height) {}
Offscreen::~Offscreen() = default;

Result<std::unique_ptr<Offscreen>> Offscreen::create(int width, int height) {
    auto egl = std::make_unique<Egl>();
    const auto get_display = reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(eglGetProcAddress("eglGetPlatformDisplayEXT"));
    if (get_display != nullptr) egl->display = get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    if (egl->display == EGL_NO_DISPLAY) egl->display = eglGetDisplay(EGL_DEFAULT_DISPLAY);
    if (egl->display == EGL_NO_DISPLAY || eglInitialize(egl->display, nullptr, nullptr) != EGL_TRUE) {
        egl->display = EGL_NO_DISPLAY;
        return cannot("EGL does not start");
    }
    const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_RED_SIZE, 8,
                             EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8, EGL_ALPHA_SIZE, 8, EGL_NONE};
    EGLConfig config = nullptr;
    EGLint configs = 0;
    if (eglChooseConfig(egl->display, wanted, &config, 1, &configs) != EGL_TRUE || configs == 0) return cannot("no configuration");
    eglBindAPI(EGL_OPENGL_API);
    const EGLint size[] = {EGL_WIDTH, width, EGL_HEIGHT, height, EGL_NONE};
    egl->surface = eglCreatePbufferSurface(egl->display, config, size);
    if (egl->surface == EGL_NO_SURFACE) return cannot("no surface of this size");
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 3, EGL_CONTEXT_OPENGL_PROFILE_MASK,
                              EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
    egl->context = eglCreateContext(egl->display, config, EGL_NO_CONTEXT, version);
    if (egl->context == EGL_NO_CONTEXT || eglMakeCurrent(egl->display, egl->surface, egl->surface, egl->context) != EGL_TRUE)
        return cannot("no OpenGL 3.3");
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    egl->imgui = ImGui_ImplOpenGL3_Init("#version 330");
    if (!egl->imgui) {
        ImGui::DestroyContext();
        return cannot("ImGui's OpenGL backend does not start");
    }
    egl->textures.emplace();
    return std::unique_ptr<Offscreen>(new Offscreen(std::move(egl), width, height));
}

TextureHost& Offscreen::textures() { return *egl_->textures; }

const char* Offscreen::renderer() const { return reinterpret_cast<const char*>(glGetString(GL_RENDERER)); }

void Offscreen::frame(App& app, Probe* probe) {
    if (app.rebuild_fonts()) {
        ImGui_ImplOpenGL3_DestroyDeviceObjects();
        ImGui_ImplOpenGL3_CreateDeviceObjects();
    }
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(width_), static_cast<float>(height_)};
    io.DeltaTime = 1.0f / 60;
    ImGui_ImplOpenGL3_NewFrame();
    ImGui::NewFrame();
    app.draw(io.DisplaySize.x, io.DisplaySize.y, probe);
    ImGui::Render();
    const ImVec4 ground = Kit::vec(app.kit().theme.panel);
    glViewport(0, 0, width_, height_);
    glClearColor(ground.x, ground.y, ground.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glFinish();
}

std::vector<std::uint32_t> Offscreen::pixels() const {
    const auto w = static_cast<std::size_t>(width_), h = static_cast<std::size_t>(height_);
    std::vector<std::uint32_t> flipped(w * h), out(w * h);
    glPixelStorei(GL_PACK_ALIGNMENT, 4);
    glReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, flipped.data());
    for (std::size_t y = 0; y < h; ++y)
        for (std::size_t x = 0; x < w; ++x) out[y * w + x] = flipped[(h - 1 - y) * w + x] | 0xff000000u;
    return out;
}

}  // namespace oomlab::window
