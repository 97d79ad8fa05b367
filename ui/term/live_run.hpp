// The terminal's face of a run that is going on: reads the growing trace, redraws in place where
// stderr is a terminal, writes plain lines where it is not. Never touches the server.
#pragma once

#include <memory>
#include <string>

#include "labs/supervisor/supervise.hpp"
#include "labs/trace/reader.hpp"
#include "ui/term/screen.hpp"

namespace oomlab::term {

struct LiveOptions {
    bool plain = false;        // never redraw, even on a terminal
    bool silent = false;       // no picture and no lines
    std::string name;
};

// NO_COLOR, TERM and the terminal's own width, as they are now.
Style terminal_style();
bool is_terminal();

class LiveRun {
  public:
    explicit LiveRun(LiveOptions options);
    ~LiveRun();

    // Called every now and then with the trace that the server writes. `chip` is said once, when the
    // server has begun (a scenario that it refuses to read gets its one line of error alone).
    void update(const std::string& trace_path, const std::string& chip, const supervisor::Live& live);
    // Says it now, if it was not said yet: the run was shorter than a look.
    void say_chip(const std::string& chip);
    // Takes the picture away, so that what is printed next stands alone.
    void finish();

  private:
    void fold(const trace::RecordView& record);
    void redraw();
    void erase();

    LiveOptions options_;
    bool redraws_;
    std::unique_ptr<trace::Reader> reader_;
    Frame frame_;
    std::size_t lines_on_screen_ = 0;
    i64 last_draw_ms_ = -1000000, last_line_ms_ = 0;
    i64 served_from_us_ = -1;
    bool said_chip_ = false;
    double speed_from_s_ = 0;
    i64 speed_from_ms_ = -1;
};

}  // namespace oomlab::term
