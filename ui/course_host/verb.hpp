// Runs a verb of this program in a process of its own and collects what it prints, without waiting.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::window {

class Verb {
  public:
    static constexpr std::size_t kMostOutput = 4 * kMiB;   // more is cut off
    Verb() = default;
    ~Verb();   // ends a verb that still runs (SIGTERM), and waits for it
    Verb(const Verb&) = delete;
    Verb& operator=(const Verb&) = delete;

    // Starts `program arguments...` in `folder` with `input` on its standard input (at most 64 KiB).
    // REQUIRES: none is running. Returns false when it cannot be started; output() says why.
    bool start(const std::string& program, const std::vector<std::string>& arguments, const std::string& folder,
               const std::string& input);
    bool running() const { return pid_ > 0; }
    // Reads on. Returns the exit status once, when it has ended.
    std::optional<int> poll();
    const std::string& output() const { return out_; }     // standard output
    const std::string& problems() const { return err_; }   // standard error

  private:
    void drain(int& fd, std::string& into);
    pid_t pid_ = -1;
    int out_fd_ = -1, err_fd_ = -1;
    std::string out_, err_;
};

// This program's own file.
std::string own_program();

}  // namespace oomlab::window
