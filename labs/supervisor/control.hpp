// The way back to a living server: lines through a socket that it inherits as descriptor kControlFd
// (started with `--control-fd 3`) and reads between its steps. Pacing changes when things happen on
// the wall, never what happens.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/base/result.hpp"

namespace oomlab::supervisor {

inline constexpr int kControlFd = 3;

// Safe from any thread. What is sent to a server that is gone, or that does not listen, is lost.
class Control {
  public:
    static Result<std::unique_ptr<Control>> create();
    ~Control();
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    void pause() { send("pause\n"); }
    void resume() { send("resume\n"); }
    void step() { send("step\n"); }        // pauses, and lets one step more through
    void stop() { send("stop\n"); }        // for good, after the step that is under way
    // Of the device's clock against the wall; 0: as fast as it goes.
    void speed(double times);

    int server_fd() const { return server_fd_; }

  private:
    Control(int own_fd, int server_fd) : own_fd_(own_fd), server_fd_(server_fd) {}
    void send(std::string_view line);
    int own_fd_, server_fd_;
};

}  // namespace oomlab::supervisor
