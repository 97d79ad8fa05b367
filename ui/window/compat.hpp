// The few places where Dear ImGui 1.86 (Debian 12) and newer versions differ.
#pragma once

#include <imgui.h>

#include <cstdint>

namespace oomlab::window {

inline ImTextureID as_texture(std::uintptr_t id) {
#if IMGUI_VERSION_NUM >= 19131
    return static_cast<ImTextureID>(id);   // a 64-bit number since 1.91.4
#else
    return reinterpret_cast<ImTextureID>(id);
#endif
}

inline void feed_mouse(ImGuiIO& io, float x, float y) {
#if IMGUI_VERSION_NUM >= 18700
    io.AddMousePosEvent(x, y);
#else
    io.MousePos = ImVec2(x, y);
#endif
}
inline void feed_button(ImGuiIO& io, int button, bool down) {
#if IMGUI_VERSION_NUM >= 18700
    io.AddMouseButtonEvent(button, down);
#else
    io.MouseDown[button] = down;
#endif
}
inline void feed_wheel(ImGuiIO& io, float up) {
#if IMGUI_VERSION_NUM >= 18700
    io.AddMouseWheelEvent(0, up);
#else
    io.MouseWheel += up;
#endif
}

}  // namespace oomlab::window
