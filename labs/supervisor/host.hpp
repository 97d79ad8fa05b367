// Facts about the host that the supervisor reads from /proc, and small files in /sys. Internal.
// Every function answers with "nothing" where the file is missing or odd; none of them throws.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::supervisor {

// The whole of a small file (at most 1 MiB); empty when it cannot be read.
std::string read_small(const std::string& path);
// Writes in one write(), as control files want it. Returns errno, 0 on success.
int write_small(const std::string& path, std::string_view text);
std::optional<u64> read_number(const std::string& path);
// "key value" lines, as memory.events and /proc/meminfo have them; `key` up to the separator.
std::optional<u64> value_of(std::string_view text, std::string_view key);
std::vector<std::string> lines_of(std::string_view text);
std::vector<std::string> words_of(std::string_view text);

u64 memory_available_bytes();
bool swap_is_on();
// RSS of a process; without file pages when `anonymous_only`. 0 when it is gone.
u64 rss_bytes(int pid, bool anonymous_only);
// Field 22 of /proc/PID/stat: with the pid it names a process for ever. Nothing: no such process.
std::optional<u64> start_time(int pid);
// State letter of a process ('Z': a zombie); '\0' when it is gone.
char process_state(int pid);

i64 monotonic_ms();
i64 wall_us();

// Reads the kernel's log from "now" on. Needs root or CAP_SYSLOG where dmesg is restricted.
class KernelLog {
  public:
    KernelLog();
    ~KernelLog();
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;
    bool readable() const { return fd_ >= 0; }
    const std::string& why_not() const { return why_not_; }
    // The line "... Killed process PID (..." that came since, or nothing. The pid is the host's, so
    // inside a pid namespace it may be another number: then any memory cgroup kill is not ours to claim.
    std::string killed_line(int pid);

  private:
    int fd_;
    std::string why_not_;
};

}  // namespace oomlab::supervisor
