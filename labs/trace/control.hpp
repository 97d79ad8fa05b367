// The small channel the other way: the supervisor's side sets words, the server looks at them between
// steps. Shared memory that the server inherits as a descriptor, so a look costs one load. Pacing
// changes when things happen on the wall, never what happens: no word reaches the virtual part.
#pragma once

#include <memory>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::trace {

inline constexpr const char* kControlVariable = "OOMLAB_CONTROL_FD";
inline constexpr int kControlFd = 3;   // the number under which the server inherits it

class ControlSender {
  public:
    static Result<std::unique_ptr<ControlSender>> create();
    ~ControlSender();
    ControlSender(const ControlSender&) = delete;
    ControlSender& operator=(const ControlSender&) = delete;

    // Safe from any thread.
    void stop();                       // for good
    void pause(bool on);
    void step(u64 steps);              // while paused: lets that many steps more through
    void speed(double times);          // of the device's clock against the wall; 0: as fast as it goes
    int fd() const { return fd_; }

  private:
    struct Words;
    ControlSender(int fd, Words* words) : fd_(fd), words_(words) {}
    int fd_;
    Words* words_;
    friend class ControlReceiver;
};

class ControlReceiver {
  public:
    // Nothing when this process was not given a channel (or something else under its name).
    static std::unique_ptr<ControlReceiver> from_environment();
    static std::unique_ptr<ControlReceiver> from_fd(int fd);
    ~ControlReceiver();
    ControlReceiver(const ControlReceiver&) = delete;
    ControlReceiver& operator=(const ControlReceiver&) = delete;

    bool stop_requested() const;
    bool paused() const;
    double speed() const;              // 0: as fast as it goes
    // Before each step: returns at once, or waits while paused until a step is let through. False:
    // stop was asked for.
    bool wait_for_turn();

  private:
    explicit ControlReceiver(ControlSender::Words* words) : words_(words) {}
    ControlSender::Words* words_;
    u64 steps_taken_ = 0;
};

}  // namespace oomlab::trace
