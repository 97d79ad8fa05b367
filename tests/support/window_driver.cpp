#include "tests/support/window_driver.hpp"

#include <fmt/format.h>

#include "ui/window/compat.hpp"

namespace oomlab::testing {

using window::Drawn;
using window::Rect;

WindowDriver::WindowDriver(int width, int height, const window::Settings& settings) : width_(width), height_(height) {
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    app_ = std::make_unique<window::App>(textures_, settings);
}

WindowDriver::~WindowDriver() {
    app_.reset();
    ImGui::DestroyContext();
}

void WindowDriver::frames(int count) {
    for (int i = 0; i < count; ++i) {
        ImGuiIO& io = ImGui::GetIO();
        if (app_->rebuild_fonts()) {
            unsigned char* pixels = nullptr;
            int w = 0, h = 0;
            io.Fonts->GetTexDataAsRGBA32(&pixels, &w, &h);
            io.Fonts->SetTexID(window::as_texture(99));
        }
        io.DisplaySize = {static_cast<float>(width_), static_cast<float>(height_)};
        io.DeltaTime = 1.0f / 60;
        app_->poll(0);
        ImGui::NewFrame();
        probe_.items.clear();
        app_->draw(io.DisplaySize.x, io.DisplaySize.y, &probe_);
        ImGui::Render();
    }
}

void WindowDriver::move(float x, float y) {
    window::feed_mouse(ImGui::GetIO(), x, y);
    frames(2);
}

void WindowDriver::click_at(float x, float y) {
    move(x, y);
    window::feed_button(ImGui::GetIO(), 0, true);
    frames(1);
    window::feed_button(ImGui::GetIO(), 0, false);
    frames(2);
}

void WindowDriver::click(const std::string& id) {
    const Drawn* d = probe_.find(id);
    if (d == nullptr) {
        std::fprintf(stderr, "the driver cannot click '%s': it was not drawn\n", id.c_str());
        std::abort();
    }
    click_at((d->rect.x0 + d->rect.x1) / 2, (d->rect.y0 + d->rect.y1) / 2);
}

void WindowDriver::drag(float x0, float y0, float x1, float y1, int button) {
    move(x0, y0);
    window::feed_button(ImGui::GetIO(), button, true);
    frames(1);
    for (int step = 1; step <= 4; ++step) {
        window::feed_mouse(ImGui::GetIO(), x0 + (x1 - x0) * static_cast<float>(step) / 4,
                           y0 + (y1 - y0) * static_cast<float>(step) / 4);
        frames(1);
    }
    window::feed_button(ImGui::GetIO(), button, false);
    frames(2);
}

void WindowDriver::wheel(float up) {
    window::feed_wheel(ImGui::GetIO(), up);
    frames(2);
}

void WindowDriver::key(int code, bool ctrl, bool shift, bool alt) {
    app_->key({code, ctrl, shift, alt}, ImGui::GetIO().WantTextInput);
    frames(2);
}

void WindowDriver::type(const std::string& text) {
    for (const char c : text) {
        ImGui::GetIO().AddInputCharacter(static_cast<unsigned char>(c));
        frames(1);
    }
}

std::vector<std::string> WindowDriver::faults() const {
    std::vector<std::string> found;
    const auto inside = [](float low, float high, float from, float to) { return low >= from - 1.5f && high <= to + 1.5f; };
    std::vector<const Drawn*> texts;
    for (const Drawn& d : probe_.items) {
        if (d.text.empty()) continue;
        if (!inside(d.rect.x0, d.rect.x1, d.clip.x0, d.clip.x1) ||
            (!d.scrolls && !inside(d.rect.y0, d.rect.y1, d.clip.y0, d.clip.y1)))
            found.push_back(fmt::format("cut: {} '{}' ({:.0f} {:.0f} {:.0f} {:.0f}) in ({:.0f} {:.0f} {:.0f} {:.0f})", d.id,
                                        d.text.substr(0, 40), d.rect.x0, d.rect.y0, d.rect.x1, d.rect.y1, d.clip.x0, d.clip.y0,
                                        d.clip.x1, d.clip.y1));
        const bool whole_panel = d.rect.width() > static_cast<float>(width_) * 0.15f && d.rect.height() > 60;
        // Only what can be seen can be in the way.
        if (!whole_panel && d.rect.y1 > d.clip.y0 + 2 && d.rect.y0 < d.clip.y1 - 2) texts.push_back(&d);
    }
    for (std::size_t i = 0; i < texts.size(); ++i)
        for (std::size_t j = i + 1; j < texts.size(); ++j) {
            if (texts[i]->panel != texts[j]->panel) continue;
            const Rect &a = texts[i]->rect, &b = texts[j]->rect;
            const float across = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
            const float down = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
            if (across > 3 && down > std::min(a.height(), b.height()) * 0.35f)
                found.push_back(fmt::format("over: {} '{}' and {} '{}'", texts[i]->id, texts[i]->text.substr(0, 30), texts[j]->id,
                                            texts[j]->text.substr(0, 30)));
        }
    return found;
}

}  // namespace oomlab::testing
