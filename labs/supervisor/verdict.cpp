#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "labs/supervisor/evidence.hpp"

namespace oomlab::supervisor {

const char* outcome_name(Outcome outcome) {
    switch (outcome) {
        case Outcome::served: return "served";
        case Outcome::gpu_oom: return "gpu_oom";
        case Outcome::cuda_error: return "cuda_error";
        case Outcome::refused: return "refused";
        case Outcome::host_oom: return "host_oom";
        case Outcome::killed: return "killed";
        case Outcome::crashed: return "crashed";
        case Outcome::timeout: return "timeout";
    }
    OOMLAB_UNREACHABLE("outcome");
}

const char* way_name(Way way) {
    switch (way) {
        case Way::none: return "none";
        case Way::v2_own: return "cgroup v2 (own group)";
        case Way::v2_root: return "cgroup v2 (root)";
        case Way::v1: return "cgroup v1";
        case Way::stand_in: return "stand-in (not the kernel)";
    }
    OOMLAB_UNREACHABLE("way");
}

const char* killed_by_name(KilledBy by) {
    switch (by) {
        case KilledBy::nobody: return "nobody";
        case KilledBy::kernel_oom: return "kernel (OOM killer)";
        case KilledBy::timeout: return "supervisor (time limit)";
        case KilledBy::stop_request: return "supervisor (asked to stop)";
        case KilledBy::stand_in: return "supervisor (stand-in at the limit)";
        case KilledBy::unknown: return "unknown";
    }
    OOMLAB_UNREACHABLE("killed_by");
}

namespace {
u64 rise(u64 before, u64 after) { return after > before ? after - before : 0; }

bool kernel_killed_in_group(const Evidence& e) {
    return e.before.readable && e.after.readable && rise(e.before.oom_kill, e.after.oom_kill) >= 1;
}
// v2 tells "your limit" from "the machine was out of memory" by a counter of its own; on v1 the
// group must have been at its limit.
bool at_own_limit(const Evidence& e) {
    const u64 limit_bytes = e.limit_bytes.value_or(UINT64_MAX);
    if (e.way == Way::v1) return e.peak_bytes >= limit_bytes - limit_bytes / 16;
    return rise(e.before.oom, e.after.oom) >= 1;
}

void judge_sigkill(Evidence& e) {
    e.exit_status = 128 + SIGKILL;
    if (e.killed_by != KilledBy::nobody) {
        e.outcome = Outcome::killed;
        e.sentences.push_back(fmt::format("SIGKILL, sent by: {}", killed_by_name(e.killed_by)));
        if (e.killed_by == KilledBy::stand_in) {
            e.sentences.push_back("this is the stand-in, not the kernel: no cgroup limited the server");
        }
        return;
    }
    if (!kernel_killed_in_group(e)) {
        e.outcome = Outcome::killed;
        e.killed_by = KilledBy::unknown;
        e.sentences.push_back(
            e.after.readable
                ? fmt::format("SIGKILL, but the cgroup's oom_kill stayed at {}: somebody else sent it",
                              e.after.oom_kill)
                : "SIGKILL, and no cgroup's counter can say who sent it");
        return;
    }
    e.killed_by = KilledBy::kernel_oom;
    const std::string counter = fmt::format("{} oom_kill {} -> {}",
                                            e.way == Way::v1 ? "memory.oom_control" : "memory.events",
                                            e.before.oom_kill, e.after.oom_kill);
    if (!at_own_limit(e)) {
        e.outcome = Outcome::killed;
        e.sentences.push_back(counter + ", but the group was not at its limit: the machine itself was "
                                        "out of memory");
        return;
    }
    e.outcome = Outcome::host_oom;
    e.sentences.push_back(fmt::format("killed by the kernel: signal 9 and {}", counter));
    e.sentences.push_back(fmt::format("host memory peaked at {} of {} ({})", human_bytes(e.peak_bytes),
                                      human_bytes(e.limit_bytes.value_or(0)), way_name(e.way)));
    e.sentences.push_back(e.kernel_log.empty() ? "kernel log: " + e.kernel_log_reason
                                               : "kernel log: " + e.kernel_log);
}

void judge_exit_one(Evidence& e) {
    if (!e.failure_kind) {
        e.outcome = Outcome::crashed;
        e.sentences.push_back("exit 1, and the trace holds no failure that explains it");
        return;
    }
    switch (*e.failure_kind) {
        case trace::FailureKind::allocator_oom:
        case trace::FailureKind::device_oom: e.outcome = Outcome::gpu_oom; break;
        // The host's allocator behind a CUDA call: its error says "out of memory", the GPU is not.
        case trace::FailureKind::host_alloc:
        case trace::FailureKind::cuda_error: e.outcome = Outcome::cuda_error; break;
        case trace::FailureKind::refused: e.outcome = Outcome::refused; break;
        default: e.outcome = Outcome::crashed; break;
    }
    e.sentences.push_back(fmt::format("exit 1 in phase {}: {}", trace::phase_name(e.phase),
                                      trace::failure_kind_name(*e.failure_kind)));
}
}  // namespace

void judge(Evidence& e) {
    e.sentences.clear();
    if (e.killed_by == KilledBy::timeout) {
        e.outcome = Outcome::timeout;
        e.exit_status = 124;
        e.sentences.push_back("the time limit passed, and the supervisor ended the server");
        return;
    }
    if (e.wait.signaled && e.wait.code == SIGKILL) {
        judge_sigkill(e);
    } else if (e.wait.signaled) {
        e.outcome = Outcome::crashed;
        e.exit_status = 128 + e.wait.code;
        e.sentences.push_back(fmt::format("ended by signal {} ({})", e.wait.code,
                                          ::strsignal(e.wait.code)));
    } else {
        e.exit_status = e.wait.code;
        if (e.wait.code == 0) {
            e.outcome = Outcome::served;
            e.sentences.push_back(e.stopped_on_request ? "exit 0 after it was asked to stop" : "exit 0");
        } else if (e.wait.code == 1) {
            judge_exit_one(e);
        } else {
            e.outcome = Outcome::crashed;
            e.sentences.push_back(fmt::format("exit {}, which is not in the protocol", e.wait.code));
        }
    }
    // A counter that rose although the server was not killed is worth a word.
    if (e.outcome != Outcome::host_oom && !e.wait.signaled && rise(e.before.max, e.after.max) > 0) {
        e.sentences.push_back(fmt::format("the memory limit was hit {} times without a kill (pressure)",
                                          rise(e.before.max, e.after.max)));
    }
}

std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
    }
    return out;
}

std::string to_json(const Evidence& e) {
    using nlohmann::json;
    const auto events = [](const MemoryEvents& m) {
        return m.readable ? json{{"max", m.max}, {"oom", m.oom}, {"oom_kill", m.oom_kill}} : json();
    };
    json j = {{"outcome", outcome_name(e.outcome)},
              {"exit_status", e.exit_status},
              {"signal", e.wait.signaled ? json(e.wait.code) : json()},
              {"exit_code", e.wait.signaled ? json() : json(e.wait.code)},
              {"killed_by", killed_by_name(e.killed_by)},
              {"stopped_on_request", e.stopped_on_request},
              {"host_limit", {{"way", way_name(e.way)},
                              {"reason", e.way_reason},
                              {"limit_bytes", e.limit_bytes ? json(*e.limit_bytes) : json()},
                              {"peak_bytes", e.peak_bytes},
                              {"before", events(e.before)},
                              {"after", events(e.after)}}},
              {"kernel_log", e.kernel_log.empty() ? json() : json(e.kernel_log)},
              {"wall_ms", e.wall_ms},
              {"sentences", e.sentences}};
    // Text from the server may hold any bytes; what is no UTF-8 is replaced.
    return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace oomlab::supervisor
