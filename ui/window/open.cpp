#include "ui/window/open.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "ui/serve/viewer.hpp"
#include "ui/window/app.hpp"
#include "ui/window/platform/glfw_window.hpp"

namespace oomlab::window {

namespace {

class RemoteLink final : public Link {
  public:
    explicit RemoteLink(std::unique_ptr<serve::Viewer> viewer) : viewer_(std::move(viewer)) {}
    bool poll(double now_s) override { return viewer_->poll(now_s); }
    std::string path() const override { return viewer_->path(); }
    std::string text() const override { return viewer_->text(); }
    std::string problem() const override { return viewer_->problem(); }

  private:
    std::unique_ptr<serve::Viewer> viewer_;
};

}  // namespace

Result<void> open_window(const OpenOptions& o) {
    std::error_code ec;
    std::unique_ptr<RemoteLink> remote;
    if (serve::looks_like_address(o.what)) {
        OOMLAB_TRY(address, serve::parse_address(o.what));
        OOMLAB_TRY(viewer, serve::Viewer::connect(address));
        remote = std::make_unique<RemoteLink>(std::move(viewer));
    }
    // A folder, or a trace that a run is about to make: the window waits for it.
    const std::filesystem::path place(o.what);
    const std::filesystem::path above = place.has_parent_path() ? place.parent_path() : ".";
    const bool coming = place.extension() == ".omtrace" && !std::filesystem::exists(place, ec) &&
                        std::filesystem::is_directory(above, ec);
    const bool folder = std::filesystem::is_directory(place, ec) || coming;
    std::unique_ptr<view::LiveTrace> trace;
    const auto path = view::find_trace(remote ? remote->path() : o.what);
    if (path) {
        OOMLAB_TRY(opened, view::LiveTrace::open(*path));
        trace = std::move(opened);
    } else if (!folder) {
        return fail(path.error());
    }
    const std::string title = "oomlab: " + (path && !remote ? std::filesystem::path(*path).filename().string() : o.what);
    OOMLAB_TRY(window, GlfwWindow::create(o.settings, title,
                                          o.software ? GlfwWindow::Renderer::software : GlfwWindow::Renderer::any));
    App app(window->textures(), o.settings);
    if (trace) app.open(std::move(trace));
    if (folder) {
        app.watch_folder(o.what);
        app.set_waiting(coming ? "The run is about to begin; it opens here by itself." : fmt::format("No run in this folder yet ({}). Start one with: oomlab run. It opens here by itself.",
                                    std::filesystem::absolute(o.what, ec).lexically_normal().string()));
    }
    if (!o.before.empty()) {
        OOMLAB_TRY(before_path, view::find_trace(o.before));
        OOMLAB_TRY(before, view::LiveTrace::open(before_path));
        app.set_before(std::move(before));
    }
    if (!o.prediction.empty()) {
        OOMLAB_TRY(prediction, view::load_prediction(o.prediction));
        app.set_prediction(std::move(prediction));
    }
    app.set_link(remote.get());
    app.set_course(o.course);
    app.set_control(o.control);
    window->run(app);
    save_settings(o.settings_path, app.settings());
    return {};
}

}  // namespace oomlab::window
