#include "ui/window/platform/glfw_window.hpp"

#define GLFW_INCLUDE_NONE
#include <GL/gl.h>
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "ui/window/platform/gl_textures.hpp"

namespace oomlab::window {

struct GlfwWindow::State {
    GLFWwindow* window = nullptr;
    std::optional<GlTextures> textures;
    App* app = nullptr;
    bool touched = true, imgui = false;

    static State& of(GLFWwindow* w) { return *static_cast<State*>(glfwGetWindowUserPointer(w)); }
    ~State() {
        textures.reset();
        if (imgui) {
            ImGui_ImplOpenGL3_Shutdown();
            ImGui_ImplGlfw_Shutdown();
            ImGui::DestroyContext();
        }
        if (window != nullptr) glfwDestroyWindow(window);
        glfwTerminate();
    }
    void frame(App& running);
};

namespace {

std::string glfw_problem() {
    const char* text = nullptr;
    glfwGetError(&text);
    return text == nullptr ? "unknown" : text;
}

// Letters by the layout's own names, so that W is where the keyboard says W. Punctuation comes as a
// character (on_char), because where it stands differs between layouts.
std::optional<Key> key_of(int key, int scancode, int mods) {
    Key k;
    k.code = key;
    k.ctrl = (mods & GLFW_MOD_CONTROL) != 0;
    k.shift = (mods & GLFW_MOD_SHIFT) != 0;
    k.alt = (mods & GLFW_MOD_ALT) != 0;
    if (key >= GLFW_KEY_A && key <= GLFW_KEY_Z) {
        const char* name = glfwGetKeyName(key, scancode);
        if (name != nullptr && name[0] >= 'a' && name[0] <= 'z' && name[1] == '\0') k.code = name[0] - 'a' + 'A';
    }
    const bool letter = k.code >= 'A' && k.code <= 'Z', digit = k.code >= '0' && k.code <= '9';
    if (k.code < kKeyEscape && !letter && !digit && !k.ctrl && !k.alt) return std::nullopt;
    return k;
}

std::optional<Key> key_of_char(unsigned c) {
    Key k;
    switch (c) {
        case '?': k = {'/', false, true, false}; break;
        case '<': k = {',', false, true, false}; break;
        case '>': k = {'.', false, true, false}; break;
        case ' ':
        case ',':
        case '.':
        case '/':
        case '[':
        case ']':
        case '-':
        case '=': k.code = static_cast<int>(c); break;
        default: return std::nullopt;
    }
    return k;
}

}  // namespace

GlfwWindow::GlfwWindow(std::unique_ptr<State> state) : state_(std::move(state)) {}
GlfwWindow::~GlfwWindow() = default;
TextureHost& GlfwWindow::textures() { return *state_->textures; }

Result<std::unique_ptr<GlfwWindow>> GlfwWindow::create(const Settings& settings, const std::string& title,
                                                       Renderer renderer) {
    if (renderer == Renderer::software) ::setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
    if (glfwInit() == GLFW_FALSE)
        return fail(Error::environment(fmt::format(
            "no window can be opened here ({}); use: oomlab watch, oomlab render, or oomlab serve with oomlab view on another machine",
            glfw_problem())));
    auto state = std::make_unique<State>();
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    state->window = glfwCreateWindow(settings.width, settings.height, title.c_str(), nullptr, nullptr);
    if (state->window == nullptr)
        return fail(Error::environment(fmt::format("no OpenGL 3.3 window can be opened here ({}); try --software", glfw_problem())));
    GLFWwindow* w = state->window;
    glfwSetWindowUserPointer(w, state.get());
    glfwMakeContextCurrent(w);
    glfwSwapInterval(1);
    // Ours first: ImGui's backend calls on to what was there before it.
    const auto touch = [](GLFWwindow* at) { State::of(at).touched = true; };
    glfwSetCursorPosCallback(w, [](GLFWwindow* at, double, double) { State::of(at).touched = true; });
    glfwSetMouseButtonCallback(w, [](GLFWwindow* at, int, int, int) { State::of(at).touched = true; });
    glfwSetScrollCallback(w, [](GLFWwindow* at, double, double) { State::of(at).touched = true; });
    glfwSetWindowRefreshCallback(w, touch);
    glfwSetFramebufferSizeCallback(w, [](GLFWwindow* at, int, int) { State::of(at).touched = true; });
    glfwSetWindowFocusCallback(w, [](GLFWwindow* at, int) { State::of(at).touched = true; });
    glfwSetKeyCallback(w, [](GLFWwindow* at, int key, int scancode, int action, int mods) {
        State& s = State::of(at);
        s.touched = true;
        if (action == GLFW_RELEASE || s.app == nullptr) return;
        if (const auto k = key_of(key, scancode, mods)) s.app->key(*k, ImGui::GetIO().WantTextInput);
    });
    glfwSetCharCallback(w, [](GLFWwindow* at, unsigned c) {
        State& s = State::of(at);
        s.touched = true;
        if (s.app == nullptr || ImGui::GetIO().WantTextInput) return;
        if (const auto k = key_of_char(c)) s.app->key(*k, false);
    });
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    state->imgui = true;
    if (!ImGui_ImplGlfw_InitForOpenGL(w, true) || !ImGui_ImplOpenGL3_Init("#version 330"))
        return fail(Error::environment("ImGui's OpenGL backend does not start here; try --software"));
    state->textures.emplace();
    return std::unique_ptr<GlfwWindow>(new GlfwWindow(std::move(state)));
}

void GlfwWindow::State::frame(App& running) {
    if (running.rebuild_fonts()) {
        ImGui_ImplOpenGL3_DestroyDeviceObjects();
        ImGui_ImplOpenGL3_CreateDeviceObjects();
    }
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    ImGui::NewFrame();
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    if (size.x > 0 && size.y > 0) running.draw(size.x, size.y);
    ImGui::Render();
    int width = 0, height = 0;
    glfwGetFramebufferSize(window, &width, &height);
    const ImVec4 ground = Kit::vec(running.kit().theme.panel);
    glViewport(0, 0, width, height);
    glClearColor(ground.x, ground.y, ground.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glfwSwapBuffers(window);
}

void GlfwWindow::run(App& app) {
    constexpr double kPollEvery = 0.1, kUnfocusedFrame = 1.0 / 30;
    State& s = *state_;
    s.app = &app;
    double polled = -1, drawn = -1;
    while (glfwWindowShouldClose(s.window) == GLFW_FALSE && !app.wants_quit()) {
        if (s.touched || app.wants_frame()) glfwPollEvents();
        else glfwWaitEventsTimeout(kPollEvery);
        const double now = glfwGetTime();
        bool changed = false;
        if (now - polled >= kPollEvery) {
            polled = now;
            changed = app.poll(now);
        }
        if (!s.touched && !changed && !app.wants_frame()) continue;
        const bool focused = glfwGetWindowAttrib(s.window, GLFW_FOCUSED) == GLFW_TRUE;
        if (!focused && now - drawn < kUnfocusedFrame) {
            glfwWaitEventsTimeout(kUnfocusedFrame);
        }
        drawn = now;
        s.touched = false;
        s.frame(app);
    }
    int width = 0, height = 0;
    glfwGetWindowSize(s.window, &width, &height);
    if (width > 0 && height > 0) {
        app.settings().width = width;
        app.settings().height = height;
    }
    s.app = nullptr;
}

}  // namespace oomlab::window
