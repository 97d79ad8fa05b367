// Runs a server program in a process of its own, with a trace that survives it, in a memory cgroup
// when the host's memory is limited; collects the evidence after its death and leaves nothing behind.
//
// Cleaning up does not depend on this process: a janitor, forked first, waits for its end, kills the
// cgroup and removes it; the server dies with its supervisor; what two deaths leave (an empty cgroup)
// the next start sweeps.
//
// The server's side: exit 0 served, 1 died of a GPU error or refused to start (the trace's last
// failure record says which), 2 bad scenario, 3 this machine cannot, 5 its own bug; the last three
// become errors here, with the server's last line as the message.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/result.hpp"
#include "labs/supervisor/control.hpp"
#include "labs/supervisor/evidence.hpp"
#include "labs/trace/writer.hpp"

namespace oomlab::supervisor {

enum class Output {
    capture,   // both streams are read, and the end kept in Evidence::output_tail
    inherit,   // the server prints where we print
};

struct Options {
    std::string program;                    // path of the server program
    std::vector<std::string> args;          // without the program's name
    std::vector<std::pair<std::string, std::string>> environment;   // added to ours

    std::string trace_path;                 // created here, compacted after the end
    trace::FileSizes trace_sizes;
    bool temporary_trace = false;           // gone with us, should we be killed (probes, bisection)
    std::string temporary_folder;           // the same for the folder that was made for it

    // Absent: the host's memory is not limited, and no cgroup is made.
    std::optional<u64> host_memory_limit_bytes;
    // Permits the watcher that kills at the limit where no cgroup can be had. Never "host_oom".
    bool stand_in_allowed = false;
    // Uses the watcher even where a cgroup can be had.
    bool stand_in_only = false;
    // RLIMIT_AS at four times the limit and 256 MiB, should the cgroup fail. Not for the real chip: CUDA
    // reserves more address space than any machine has memory.
    bool address_space_belt = true;
    // May start this program again inside `systemd-run --user --scope`, if nothing else works.
    // REQUIRES: nothing was printed yet and the command line may be repeated as it is.
    bool may_reexec = false;

    // Inherited by the server as kControlFd when given (tell it so in `args`); a stop request goes
    // through it first, and as SIGTERM at half of the grace. Borrowed.
    Control* control = nullptr;

    std::optional<i64> timeout_ms;
    i64 poll_ms = 50;
    i64 stop_grace_ms = 2000;               // between the polite request and SIGKILL
    Output output = Output::capture;
    bool forward_signals = true;            // SIGINT and SIGTERM become a stop request
};

// What a face can draw while the server lives.
struct Live {
    int pid = 0;
    i64 wall_ms = 0;
    u64 rss_bytes = 0, host_bytes = 0;      // host: of the cgroup, or RSS without one
    std::optional<u64> limit_bytes;
    Way way = Way::none;
};
enum class Go { on, stop };                 // stop: asks the server to end, then insists
using OnPoll = std::function<Go(const Live&)>;

// On failure: Error::environment (no way to limit memory, unsafe machine), io (trace, program),
// usage (a limit out of bounds), or what the server's exit status 2, 3 or 5 says. Nothing is left.
// One supervise() at a time per process; any thread.
Result<Evidence> supervise(const Options& options, const OnPoll& on_poll = {});

inline constexpr u64 kHostLimitMin = 16 * kMiB;
inline constexpr u64 kHostLimitMax = kGiB;

// What this machine offers for limiting memory, each way tried for real with a tiny cgroup that is
// removed again. In the order in which supervise() would take them.
struct WayReport {
    std::string name;
    bool usable = false;
    std::string reason;    // why not, or what was seen
};
std::vector<WayReport> probe_ways();

}  // namespace oomlab::supervisor
