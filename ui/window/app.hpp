// The window's one object: what is open, what is looked at, and the panels; platform-free. A platform
// (GLFW, EGL, or a test) feeds keys and ImGui's mouse, calls poll() now and then and draw() between
// ImGui::NewFrame and ImGui::Render.
//
// It reads traces and nothing else: no CUDA context, no server. Not thread safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ui/view_model/live_trace.hpp"
#include "ui/window/panels/panels.hpp"

namespace oomlab::window {

// A trace that comes over a wire: polled before the file that it writes.
class Link {
  public:
    virtual ~Link() = default;
    virtual bool poll(double now_s) = 0;        // whether anything came
    virtual std::string path() const = 0;       // of the copy: another one after a new run began
    virtual std::string text() const = 0;       // "live from host:port"
    virtual std::string problem() const = 0;    // "last data 12 s ago, reconnecting"; "" when well
};

class App {
  public:
    App(TextureHost& textures, const Settings& settings);

    void open(std::unique_ptr<view::LiveTrace> trace);   // the one before stays for comparison
    // Said in an empty window: why there is nothing yet and what fills it.
    void set_waiting(std::string why) { waiting_ = std::move(why); }
    void set_prediction(view::Prediction prediction) { prediction_ = std::move(prediction); ++changes_; }
    void set_before(std::unique_ptr<view::LiveTrace> before) { before_ = std::move(before); ++changes_; }
    void set_course(CourseHost* course) { course_ = course; }       // borrowed; null: none
    void set_control(ControlHost* control) { control_ = control; }
    void set_link(Link* link) { link_ = link; }
    // `render`: only these panels under the status, and a line of text below.
    void show_only(std::vector<PanelId> panels, std::string caption);

    // Looks for the newest trace in this folder, once a second, and opens it when it is another.
    void watch_folder(std::string folder) { folder_ = std::move(folder); }

    // Reads what is new everywhere; `now_s` is any clock that goes on. Returns whether a frame
    // should be drawn.
    bool poll(double now_s);
    void key(Key key, bool typing);
    // Rebuilds the atlas when the text's scale changed; the platform then uploads it anew.
    bool rebuild_fonts();
    void draw(float width, float height, Probe* probe = nullptr);

    bool wants_quit() const { return quit_; }
    bool wants_frame() const { return frames_wanted_ > 0; }   // something on the screen is not final
    Settings& settings() { return settings_; }
    ViewState& state() { return state_; }
    const view::Model& model() const { return trace_ ? trace_->model() : empty_; }
    const view::Summary& summary() const { return summary_; }
    const Kit& kit() const { return kit_; }
    std::string numbers() const;   // what Ctrl Shift C copies
    static const char* panel_name(PanelId id);

  private:
    struct Layout;
    void prepare();
    void obey(Command command, int argument);
    void obey_run(Command command);
    void obey_list(Command command);
    Layout layout(float width, float height, const Ui& ui) const;
    void draw_panel(Ui& ui, PanelId id, const Rect& rect);
    void draw_tabs(Ui& ui, const Rect& rect);
    void draw_empty(Ui& ui, const Rect& rect);
    void splitters(const Layout& layout, float width);
    LinkState link_state() const;

    Kit kit_;
    TextureHost& textures_;
    Settings settings_;
    ViewState state_;
    view::Model empty_;
    std::unique_ptr<view::LiveTrace> trace_, before_;
    view::Prediction prediction_;
    std::string prediction_path_;
    view::Summary summary_;
    u64 summary_key_ = ~0ull;
    CourseHost* course_ = nullptr;
    ControlHost* control_ = nullptr;
    Link* link_ = nullptr;
    std::string waiting_, course_trace_, folder_;
    double looked_s_ = -10;
    TimelinePanel timeline_;
    MapPanel map_;
    EventsPanel events_;
    CoursePanel course_panel_;
    ControlsPanel controls_;
    PanelId focus_ = PanelId::none, tab_ = PanelId::timeline;
    std::vector<PanelId> only_;
    std::string caption_;
    bool present_ = false, key_card_ = false, quit_ = false, fonts_dirty_ = true;
    int frames_wanted_ = 3, dragging_ = 0;
    u64 changes_ = 0;   // to what pictures depend on besides the model
};

}  // namespace oomlab::window
