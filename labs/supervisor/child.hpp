// Starts the server program so that nothing of it ever runs outside its limits. Internal.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/result.hpp"
#include "labs/supervisor/evidence.hpp"

namespace oomlab::supervisor {

struct ChildPlan {
    std::string program;
    std::vector<std::string> args;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string cgroup_procs;                        // joined before exec; empty: none
    std::optional<u64> address_space_bytes;          // RLIMIT_AS
    std::optional<u64> cpu_seconds;                  // RLIMIT_CPU
    bool sacrifice_first = false;                    // oom_score_adj 1000, or the child refuses to run
    int control_fd = -1;                             // becomes kControlFd of the server; -1: none
    bool capture = true;                             // both streams into a pipe
};

// A running child. Signals go through its pidfd; the pid stays ours until reap().
class Child {
  public:
    // Forks, joins, checks, execs. Returns after exec has succeeded. On failure: Error::environment
    // naming the step that failed; nothing is left running.
    static Result<Child> start(const ChildPlan& plan);
    Child(Child&& other) noexcept;
    Child& operator=(Child&&) = delete;
    ~Child();   // kills and reaps what still lives

    int pid() const { return pid_; }
    void signal(int number);
    // Waits at most `ms` for the end; reads what was printed meanwhile. True: it has ended and is
    // not reaped yet.
    bool wait(i64 ms);
    // REQUIRES: wait() returned true. The last of the output is read, the process is gone after it,
    // and so is what it left running in its process group.
    WaitStatus reap();
    // The largest RSS that the kernel saw; known after reap().
    u64 max_rss_bytes() const { return max_rss_bytes_; }
    const std::string& output_tail() const { return output_; }

  private:
    Child(int pid, int pidfd, int output) : pid_(pid), pidfd_(pidfd), output_fd_(output) {}
    bool ended() const;
    void read_output();
    int pid_, pidfd_, output_fd_;
    u64 max_rss_bytes_ = 0;
    std::string output_;
};

}  // namespace oomlab::supervisor
