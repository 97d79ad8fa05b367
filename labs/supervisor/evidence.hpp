// What is left when a server has ended: facts, the outcome that follows from them, and sentences
// that say which fact proves what. Plain values; safe to copy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::supervisor {

// The contract's words. `host_oom` is said only when the kernel's own counter proves it.
enum class Outcome { served, gpu_oom, cuda_error, refused, host_oom, killed, crashed, timeout };
const char* outcome_name(Outcome outcome);

// Which mechanism held the host's memory.
enum class Way { none, v2_own, v2_root, v1, stand_in };
const char* way_name(Way way);          // "cgroup v2 (delegated)", ...

// A SIGKILL that we sent ourselves proves nothing about memory.
enum class KilledBy { nobody, kernel_oom, timeout, stop_request, stand_in, unknown };
const char* killed_by_name(KilledBy by);  // "kernel (OOM killer)", ...

// memory.events of cgroup v2, or the same facts of v1. Counters only grow.
struct MemoryEvents {
    u64 max = 0;        // the limit was hit (v1: failcnt); pressure, not proof
    u64 oom = 0;        // reclaim failed at our own limit (v1 does not count it)
    u64 oom_kill = 0;   // processes the kernel killed; oom.group counts one victim twice
    bool readable = false;
};

// How the process ended, as waitid saw it.
struct WaitStatus {
    bool signaled = false;
    int code = 0;       // exit code, or the signal's number
};

struct Evidence {
    Outcome outcome = Outcome::served;
    int exit_status = 0;               // as a shell would see the server
    WaitStatus wait;
    KilledBy killed_by = KilledBy::nobody;
    bool stopped_on_request = false;

    Way way = Way::none;
    std::string way_reason;            // why this way and not another
    std::optional<u64> limit_bytes;
    MemoryEvents before, after;
    u64 peak_bytes = 0;                // of the cgroup; without one, the largest RSS that was seen
    std::string kernel_log;            // the kernel's line about this kill; empty: none or not readable
    std::string kernel_log_reason;     // why it is empty

    // From the trace: the last failure that the server wrote down, and where it was.
    std::optional<trace::FailureKind> failure_kind;
    trace::Phase phase = trace::Phase::start;
    std::string message;               // the real message; control characters replaced
    std::string output_tail;           // the end of what the server printed, if it was captured
    std::string trace_damage;          // empty: the trace is whole

    i64 wall_ms = 0;
    std::vector<std::string> sentences;
};

// The outcome, the exit status, who killed, and the sentences, from the facts in the other fields.
// REQUIRES: killed_by names what we did ourselves (timeout, stop_request, stand_in) or is nobody.
void judge(Evidence& evidence);

// One JSON object with every fact above; what the trace keeps.
std::string to_json(const Evidence& evidence);

// Bytes from a stranger made safe for a terminal: control characters become '?', newlines stay.
std::string printable(std::string_view text);

}  // namespace oomlab::supervisor
