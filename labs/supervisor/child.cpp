#include "labs/supervisor/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "labs/supervisor/control.hpp"
#include "labs/supervisor/host.hpp"

extern char** environ;

namespace oomlab::supervisor {

namespace {
constexpr std::size_t kOutputKept = 64 * 1024;
constexpr int kFirstOwnFd = 16;   // ours are never in the way of the server's own, 0 to 3

// The steps between fork and exec, so that a failure can be named.
enum class Step : int { parent_gone, cgroup_join, cgroup_check, oom_score, limits, streams, exec, count_ };
constexpr std::array<const char*, static_cast<std::size_t>(Step::count_)> kStepTexts = {
    "the supervisor ended meanwhile",
    "the server could not join its cgroup",
    "the server is not listed in its cgroup after joining it",
    "the server could not make itself the kernel's first choice (oom_score_adj)",
    "the server's resource limits could not be set",
    "the server's streams could not be set up",
    "the server program could not be started"};

struct Report {
    Step step;
    int error;
};

// Everything that the child needs, made before fork: behind it only system calls are allowed.
struct Prepared {
    std::vector<std::string> words, variables;
    std::vector<char*> argv, envp;
    int procs_fd = -1, output_fd = -1, report_fd = -1, control_fd = -1, parent = 0;
    bool sacrifice_first = false;
    std::optional<u64> address_space_bytes, cpu_seconds;
};

Prepared prepare(const ChildPlan& plan) {
    Prepared p;
    p.words.push_back(plan.program);
    p.words.insert(p.words.end(), plan.args.begin(), plan.args.end());
    for (char** e = environ; *e != nullptr; ++e) {
        const std::string_view have(*e);
        bool replaced = false;
        for (const auto& [name, value] : plan.environment) {
            replaced = replaced || have.substr(0, name.size() + 1) == name + "=";
        }
        if (!replaced) p.variables.emplace_back(have);
    }
    for (const auto& [name, value] : plan.environment) p.variables.push_back(name + "=" + value);
    for (auto& word : p.words) p.argv.push_back(word.data());
    for (auto& variable : p.variables) p.envp.push_back(variable.data());
    p.argv.push_back(nullptr);
    p.envp.push_back(nullptr);
    p.parent = ::getpid();
    p.control_fd = plan.control_fd;
    p.sacrifice_first = plan.sacrifice_first;
    p.address_space_bytes = plan.address_space_bytes;
    p.cpu_seconds = plan.cpu_seconds;
    return p;
}

[[noreturn]] void give_up(const Prepared& p, Step step) {
    const Report report{step, errno};
    // The parent reads this, or it is gone too; either way there is nobody else to tell.
    [[maybe_unused]] const ssize_t n = ::write(p.report_fd, &report, sizeof(report));
    ::_exit(125);
}

// Is the calling process listed? Compares decimal numbers in a stream, without allocating.
bool listed(int procs_fd, int pid) {
    char buffer[512];
    off_t offset = 0;
    long number = 0;
    bool in_number = false;
    for (;;) {
        const ssize_t n = ::pread(procs_fd, buffer, sizeof(buffer), offset);
        if (n <= 0) return in_number && number == pid;
        offset += n;
        for (ssize_t i = 0; i < n; ++i) {
            if (buffer[i] >= '0' && buffer[i] <= '9') {
                number = (in_number ? number * 10 : 0) + (buffer[i] - '0');
                in_number = true;
            } else {
                if (in_number && number == pid) return true;
                in_number = false;
            }
        }
    }
}

bool limit(__rlimit_resource resource, u64 value) {
    const rlimit r{value, value};
    return ::setrlimit(resource, &r) == 0;
}

// Between fork and exec: system calls only.
[[noreturn]] void child_main(const Prepared& p) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != p.parent) give_up(p, Step::parent_gone);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) {
        ::signal(number, SIG_DFL);
    }
    ::setpgid(0, 0);   // a Ctrl-C in the terminal is for the supervisor, which passes it on
    if (p.procs_fd >= 0) {
        if (::write(p.procs_fd, "0", 1) != 1) give_up(p, Step::cgroup_join);
        if (!listed(p.procs_fd, ::getpid())) give_up(p, Step::cgroup_check);
    }
    if (p.sacrifice_first) {
        const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || ::write(fd, "1000", 4) != 4) give_up(p, Step::oom_score);
    }
    bool limits = limit(RLIMIT_CORE, 0);
    if (p.address_space_bytes) limits = limits && limit(RLIMIT_AS, *p.address_space_bytes);
    if (p.cpu_seconds) limits = limits && limit(RLIMIT_CPU, *p.cpu_seconds);
    if (!limits) give_up(p, Step::limits);
    if (p.output_fd >= 0) {
        const int null = ::open("/dev/null", O_RDONLY);
        if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(p.output_fd, 1) < 0 ||
            ::dup2(p.output_fd, 2) < 0) {
            give_up(p, Step::streams);
        }
        if (null > 2) ::close(null);
    }
    if (p.control_fd >= 0) {
        if (p.control_fd == kControlFd) {
            ::fcntl(kControlFd, F_SETFD, 0);
        } else if (::dup2(p.control_fd, kControlFd) < 0) {
            give_up(p, Step::streams);
        }
    }
    ::execve(p.argv[0], p.argv.data(), p.envp.data());
    give_up(p, Step::exec);
}

struct Pipe {
    int read = -1, write = -1;
    static Result<Pipe> make() {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC) != 0) {
            return fail(Error::environment("cannot make a pipe: " +
                                           std::generic_category().message(errno)));
        }
        Pipe pipe;
        for (int i = 0; i < 2; ++i) {
            const int high = ::fcntl(fds[i], F_DUPFD_CLOEXEC, kFirstOwnFd);
            (i == 0 ? pipe.read : pipe.write) = high;
            ::close(fds[i]);
        }
        return pipe;
    }
};
void close_if_open(int fd) {
    if (fd >= 0) ::close(fd);
}
}  // namespace

Result<Child> Child::start(const ChildPlan& plan) {
    Prepared prepared = prepare(plan);
    if (!plan.cgroup_procs.empty()) {
        const int low = ::open(plan.cgroup_procs.c_str(), O_RDWR | O_CLOEXEC);
        prepared.procs_fd = low < 0 ? low : ::fcntl(low, F_DUPFD_CLOEXEC, kFirstOwnFd);
        const int error = errno;
        if (low >= 0) ::close(low);
        if (prepared.procs_fd < 0) {
            return fail(Error::environment(fmt::format("{}: {}", plan.cgroup_procs,
                                                       std::generic_category().message(error))));
        }
    }
    auto report = Pipe::make();
    auto output = plan.capture ? Pipe::make() : Result<Pipe>(Pipe{});
    if (!report || !output) {
        close_if_open(prepared.procs_fd);
        return fail(report ? std::move(output.error()) : std::move(report.error()));
    }
    prepared.report_fd = report->write;
    prepared.output_fd = output->write;

    const int pid = ::fork();
    if (pid == 0) child_main(prepared);
    const int fork_error = errno;
    close_if_open(prepared.procs_fd);
    ::close(report->write);
    close_if_open(output->write);
    if (pid < 0) {
        ::close(report->read);
        close_if_open(output->read);
        return fail(Error::environment("cannot start a process: " +
                                       std::generic_category().message(fork_error)));
    }
    if (output->read >= 0) ::fcntl(output->read, F_SETFL, O_NONBLOCK);
    Child child(pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), output->read);
    Report said{};
    ssize_t n = 0;
    do {
        n = ::read(report->read, &said, sizeof(said));
    } while (n < 0 && errno == EINTR);
    ::close(report->read);
    if (n == 0) return child;   // exec closed the pipe: the server runs
    const auto step = static_cast<std::size_t>(said.step);
    const char* text = n == sizeof(said) && step < kStepTexts.size() ? kStepTexts[step]
                                                                     : "the server did not start";
    return fail(Error::environment(fmt::format("{}: {} ({})", plan.program, text,
                                               std::generic_category().message(said.error))));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      output_fd_(std::exchange(other.output_fd_, -1)),
      max_rss_bytes_(other.max_rss_bytes_),
      output_(std::move(other.output_)) {}

Child::~Child() {
    if (pid_ > 0) {
        signal(SIGKILL);
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    }
    close_if_open(pidfd_);
    close_if_open(output_fd_);
}

void Child::signal(int number) {
    if (pid_ <= 0) return;
    if (pidfd_ >= 0) {
        ::syscall(SYS_pidfd_send_signal, pidfd_, number, nullptr, 0);
    } else {
        ::kill(pid_, number);   // an unreaped child's number cannot be anybody else's
    }
}

bool Child::ended() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
           info.si_pid == pid_;
}

void Child::read_output() {
    char buffer[4096];
    while (output_fd_ >= 0) {
        const ssize_t n = ::read(output_fd_, buffer, sizeof(buffer));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return;
        if (n == 0) {
            ::close(output_fd_);
            output_fd_ = -1;
            return;
        }
        output_.append(buffer, static_cast<std::size_t>(n));
        if (output_.size() > 2 * kOutputKept) output_.erase(0, output_.size() - kOutputKept);
    }
}

bool Child::wait(i64 ms) {
    const i64 end = monotonic_ms() + ms;
    for (;;) {
        if (ended()) return true;
        const i64 left = std::max<i64>(end - monotonic_ms(), 0);
        // Without a pidfd the end is noticed at the next round; rounds are short then.
        pollfd fds[2] = {{pidfd_, POLLIN, 0}, {output_fd_, POLLIN, 0}};
        const int ready = ::poll(fds, 2, static_cast<int>(pidfd_ >= 0 ? left : std::min<i64>(left, 5)));
        if (ready < 0 && errno == EINTR) return ended();
        read_output();
        if (monotonic_ms() >= end) return ended();
    }
}

WaitStatus Child::reap() {
    read_output();
    // What the server started and left: its group's number is held by the dead server until now.
    ::kill(-pid_, SIGKILL);
    int status = 0;
    rusage usage{};
    while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {}
    pid_ = -1;
    max_rss_bytes_ = static_cast<u64>(usage.ru_maxrss) * kKiB;
    if (WIFSIGNALED(status)) return {true, WTERMSIG(status)};
    return {false, WEXITSTATUS(status)};
}

}  // namespace oomlab::supervisor
