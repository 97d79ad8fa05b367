#include "labs/supervisor/supervise.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>

#include "labs/supervisor/cgroup.hpp"
#include "labs/supervisor/child.hpp"
#include "labs/supervisor/host.hpp"
#include "labs/supervisor/janitor.hpp"
#include "labs/supervisor/scope.hpp"
#include "labs/trace/reader.hpp"
#include "labs/trace/views.hpp"

namespace oomlab::supervisor {

namespace {
constexpr u64 kSafetyFactor = 4;      // of the limit: free memory wanted, and the address-space belt
constexpr u64 kBeltSlackBytes = 256 * kMiB;   // libraries, stacks, the mapped trace: reserved, not used
constexpr i64 kStandInLookMs = 2;

// A sanitizer's shadow takes terabytes of address space.
constexpr bool kBeltPossible = OOMLAB_SANITIZED == 0;

std::atomic<int> g_signals{0};
void count_signal(int) { g_signals.fetch_add(1, std::memory_order_relaxed); }

// SIGINT and SIGTERM are counted while this lives, and handled as before afterwards.
class SignalWatch {
  public:
    explicit SignalWatch(bool on) : on_(on) {
        if (!on_) return;
        g_signals = 0;
        struct sigaction action {};
        action.sa_handler = count_signal;
        ::sigaction(SIGINT, &action, &old_int_);
        ::sigaction(SIGTERM, &action, &old_term_);
    }
    ~SignalWatch() {
        if (!on_) return;
        ::sigaction(SIGINT, &old_int_, nullptr);
        ::sigaction(SIGTERM, &old_term_, nullptr);
    }
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;
    int count() const { return on_ ? g_signals.load(std::memory_order_relaxed) : 0; }

  private:
    bool on_;
    struct sigaction old_int_ {}, old_term_ {};
};

Result<void> check_safe(u64 limit_bytes) {
    if (limit_bytes < kHostLimitMin || limit_bytes > kHostLimitMax) {
        return fail(Error::usage(fmt::format("a host memory limit of {} is out of bounds ({} to {})",
                                             human_bytes(limit_bytes), human_bytes(kHostLimitMin),
                                             human_bytes(kHostLimitMax))));
    }
    if (read_number("/proc/sys/vm/panic_on_oom").value_or(0) == 2) {
        return fail(Error::environment(
            "vm.panic_on_oom is 2: a kill at a cgroup's limit would stop the whole machine; set it to 0"));
    }
    const u64 free_bytes = memory_available_bytes();
    if (free_bytes < kSafetyFactor * limit_bytes) {
        return fail(Error::environment(fmt::format(
            "{} of memory are free, and a host limit of {} wants {} for safety: lower the limit",
            human_bytes(free_bytes), human_bytes(limit_bytes), human_bytes(kSafetyFactor * limit_bytes))));
    }
    return {};
}

struct HostLimit {
    std::optional<LimitGroup> group;
    Way way = Way::none;
    std::string reason;
};

Result<HostLimit> limit_host(const Options& options, Janitor& janitor) {
    HostLimit host;
    if (!options.host_memory_limit_bytes) {
        host.reason = "the scenario sets no host memory limit";
        return host;
    }
    const u64 limit_bytes = *options.host_memory_limit_bytes;
    const CgroupPlaces places = find_places();
    std::string problems;
    if (options.stand_in_only) {
        problems = "asked for";
    } else {
        for (const Candidate& candidate : candidates(places, janitor.pid())) {
            auto group = LimitGroup::make(candidate, limit_bytes, janitor);
            if (group) {
                host.way = candidate.way;
                host.reason = problems.empty() ? "first choice" : "not taken: " + problems;
                host.group = std::move(*group);
                return host;
            }
            problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", way_name(candidate.way),
                                    group.error().message);
        }
        const std::string scope = scope_problem(places);
        if (scope.empty() && options.may_reexec) {
            problems += "; systemd scope: " + enter_scope().message;
        } else {
            problems += "; systemd scope: " + (scope.empty() ? "not permitted here" : scope);
        }
    }
    if (!options.stand_in_allowed && !options.stand_in_only) {
        return fail(Error::environment(fmt::format(
            "no way to limit host memory on this machine ({}): run as root, in a login session with "
            "systemd, or in a container started with --privileged; --stand-in shows the lesson without "
            "the kernel", problems)));
    }
    host.way = Way::stand_in;
    host.reason = problems;
    return host;
}

// The state of one run, from start to evidence.
class Run {
  public:
    Run(const Options& options, HostLimit host) : options_(options), host_(std::move(host)) {}

    Result<void> start() {
        ChildPlan plan;
        plan.program = options_.program;
        plan.args = options_.args;
        plan.environment = options_.environment;
        plan.capture = options_.output == Output::capture;
        if (options_.control != nullptr) plan.control_fd = options_.control->server_fd();
        if (host_.group) plan.cgroup_procs = host_.group->procs_path();
        if (const auto limit = options_.host_memory_limit_bytes) {
            plan.sacrifice_first = true;
            if (options_.address_space_belt && kBeltPossible) {
                plan.address_space_bytes = kSafetyFactor * *limit + kBeltSlackBytes;
            }
        }
        if (host_.group) before_ = host_.group->events();
        started_ms_ = monotonic_ms();
        OOMLAB_TRY(child, Child::start(plan));
        child_.emplace(std::move(child));
        return {};
    }

    void watch(const OnPoll& on_poll) {
        const SignalWatch signals(options_.forward_signals);
        i64 next_poll = started_ms_;
        for (;;) {
            const i64 now = monotonic_ms();
            i64 look_ms = std::max<i64>(next_poll - now, 0);
            if (host_.way == Way::stand_in) look_ms = std::min(look_ms, kStandInLookMs);
            if (options_.timeout_ms) look_ms = std::min(look_ms, time_left(started_ms_, *options_.timeout_ms));
            if (stop_ms_ && !terminated_) {
                look_ms = std::min(look_ms, time_left(*stop_ms_, options_.stop_grace_ms / 2));
            }
            if (stop_ms_) look_ms = std::min(look_ms, time_left(*stop_ms_, options_.stop_grace_ms));
            if (child_->wait(look_ms)) return;
            enforce(signals.count());
            if (monotonic_ms() < next_poll) continue;
            next_poll = monotonic_ms() + std::max<i64>(options_.poll_ms, 1);
            const Live live = look();
            if (on_poll && on_poll(live) == Go::stop) ask_to_stop();
        }
    }

    Evidence collect(KernelLog& kernel_log) {
        Evidence e;
        const int pid = child_->pid();
        e.way = host_.way;
        e.way_reason = host_.reason;
        e.limit_bytes = options_.host_memory_limit_bytes;
        e.before = before_;
        if (host_.group) {
            e.after = host_.group->events();   // before reaping: the group is as the death left it
            e.peak_bytes = host_.group->peak_bytes();
        }
        e.wait = child_->reap();
        if (e.peak_bytes == 0) e.peak_bytes = std::max(peak_bytes_, child_->max_rss_bytes());
        e.wall_ms = monotonic_ms() - started_ms_;
        e.killed_by = sent_;
        e.stopped_on_request = stop_ms_.has_value();
        if (e.wait.signaled && host_.group) {
            e.kernel_log = printable(kernel_log.killed_line(pid));
            e.kernel_log_reason = !kernel_log.readable() ? kernel_log.why_not()
                                  : e.kernel_log.empty() ? "no line about this process" : "";
        }
        e.output_tail = child_->output_tail();
        return e;
    }

  private:
    static i64 time_left(i64 since_ms, i64 span_ms) {
        return std::max<i64>(since_ms + span_ms - monotonic_ms(), 0);
    }

    void kill(KilledBy why) {
        if (sent_ != KilledBy::nobody) return;
        sent_ = why;
        child_->signal(SIGKILL);
    }

    void ask_to_stop() {
        if (stop_ms_) return;
        stop_ms_ = monotonic_ms();
        if (options_.control != nullptr) {
            options_.control->stop();
        } else {
            terminate();
        }
    }

    void terminate() {
        if (terminated_) return;
        terminated_ = true;
        child_->signal(SIGTERM);
    }

    void enforce(int signals) {
        if (options_.timeout_ms && time_left(started_ms_, *options_.timeout_ms) == 0) {
            kill(KilledBy::timeout);
        }
        if (signals > 0) ask_to_stop();
        if (stop_ms_ && time_left(*stop_ms_, options_.stop_grace_ms / 2) == 0) terminate();
        if (stop_ms_ && (signals > 1 || time_left(*stop_ms_, options_.stop_grace_ms) == 0)) {
            kill(KilledBy::stop_request);
        }
        if (host_.way == Way::stand_in &&
            rss_bytes(child_->pid(), true) > options_.host_memory_limit_bytes.value_or(UINT64_MAX)) {
            kill(KilledBy::stand_in);
        }
    }

    Live look() {
        Live live;
        live.pid = child_->pid();
        live.wall_ms = monotonic_ms() - started_ms_;
        live.rss_bytes = rss_bytes(live.pid, false);
        live.host_bytes = host_.group ? host_.group->current_bytes() : live.rss_bytes;
        live.limit_bytes = options_.host_memory_limit_bytes;
        live.way = host_.way;
        peak_bytes_ = std::max(peak_bytes_, live.host_bytes);
        return live;
    }

    const Options& options_;
    HostLimit host_;
    MemoryEvents before_;
    std::optional<Child> child_;
    i64 started_ms_ = 0;
    std::optional<i64> stop_ms_;
    bool terminated_ = false;
    KilledBy sent_ = KilledBy::nobody;
    u64 peak_bytes_ = 0;
};

void read_trace(const std::string& path, Evidence& e) {
    const auto reader = trace::Reader::open(path);
    if (!reader) {
        e.trace_damage = reader.error().message;
        return;
    }
    (*reader)->poll([&](const trace::RecordView& r) {
        if (const auto phase = trace::record_of<trace::PhaseRecord>(r, trace::RecordType::phase)) {
            e.phase = phase->phase;
        }
        if (const auto failure = trace::failure(r)) {
            e.failure_kind = failure->record.kind;
            e.phase = failure->record.phase;
            e.message = printable(failure->message);
        }
    });
    e.trace_damage = (*reader)->damage();
}

// What the server said last, for the exits that are errors and not outcomes.
std::string last_line(const Evidence& e, const std::string& program) {
    const auto lines = lines_of(e.output_tail);
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
        if (line->empty()) continue;
        // "oomlab: what is wrong": the name in front is said once, by whoever prints the error.
        const auto colon = line->find(": ");
        const bool named = colon != std::string::npos && line->compare(0, 6, "oomlab") == 0 &&
                           line->find(' ') > colon;
        return printable(named ? line->substr(colon + 2) : *line);
    }
    return fmt::format("{}: exit {} without a word", program, e.wait.code);
}
}  // namespace

Result<Evidence> supervise(const Options& options, const OnPoll& on_poll) {
    if (::access(options.program.c_str(), X_OK) != 0) {
        return fail(Error::environment(fmt::format(
            "{}: the server program is not there: build it (cmake --build)", options.program)));
    }
    if (options.host_memory_limit_bytes) OOMLAB_TRY_VOID(check_safe(*options.host_memory_limit_bytes));
    if (options.temporary_trace && std::filesystem::exists(options.trace_path)) {
        return fail(Error::io(options.trace_path + ": a temporary trace must be a new file"));
    }
    OOMLAB_TRY(janitor, Janitor::start());
    OOMLAB_TRY(host, limit_host(options, janitor));

    const std::vector<Undo> temporary = {{'d', options.temporary_folder}, {'f', options.trace_path}};
    if (!options.temporary_folder.empty()) janitor.note(temporary[0]);
    janitor.note({'f', options.trace_path + ".compact"});
    if (options.temporary_trace) janitor.note(temporary[1]);
    OOMLAB_TRY_VOID(trace::create_trace_file(options.trace_path, options.trace_sizes));
    KernelLog kernel_log;
    Run run(options, std::move(host));
    if (auto started = run.start(); !started) {
        ::unlink(options.trace_path.c_str());
        return fail(std::move(started.error()));
    }
    run.watch(on_poll);
    Evidence e = run.collect(kernel_log);
    read_trace(options.trace_path, e);
    judge(e);

    const bool is_error = !e.wait.signaled && e.outcome != Outcome::timeout &&
                          (e.wait.code == 2 || e.wait.code == 3 || e.wait.code == 5);
    if (is_error) {
        ::unlink(options.trace_path.c_str());
        const auto kind = e.wait.code == 2   ? Error::Kind::parse
                          : e.wait.code == 3 ? Error::Kind::environment
                                             : Error::Kind::internal;
        return fail(Error{kind, last_line(e, options.program)});
    }
    // A trace that cannot be closed properly still holds everything: say so and go on.
    auto closed = trace::append_evidence(options.trace_path, wall_us(), to_json(e));
    if (closed) closed = trace::compact_trace_file(options.trace_path);
    if (!closed) e.sentences.push_back("the trace was not closed: " + closed.error().message);
    for (const Undo& what : temporary) janitor.forget(what);
    return e;
}

std::vector<WayReport> probe_ways() {
    std::vector<WayReport> reports;
    auto janitor = Janitor::start();
    if (!janitor) return {{"janitor", false, janitor.error().message}};
    const CgroupPlaces places = find_places();
    for (const Candidate& candidate : candidates(places, janitor->pid())) {
        const std::size_t notes = janitor->notes();
        const auto group = LimitGroup::make(candidate, kHostLimitMin, *janitor);
        const bool counts = group && group->events().readable;
        reports.push_back({way_name(candidate.way), counts,
                           counts  ? "a group in " + candidate.parent + " took a limit and was removed again"
                           : group ? "its kill counter is not readable"
                                   : group.error().message});
        janitor->undo_last(janitor->notes() - notes);
    }
    const std::string problem = scope_problem(places);
    reports.push_back({"systemd scope", problem.empty(),
                       problem.empty() ? "systemd-run --user --scope would be asked" : problem});
    return reports;
}

}  // namespace oomlab::supervisor
