#include "labs/supervisor/janitor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "labs/supervisor/host.hpp"

namespace oomlab::supervisor {

namespace {
constexpr int kRemoveTries = 2000;   // with a millisecond between them

void wait_a_millisecond() { ::poll(nullptr, 0, 1); }

// Kills what lives in a cgroup. A pid from the list is held by a pidfd and looked up once more, so
// that a number that was reused in between is never hit.
void kill_group(const std::string& dir) {
    if (write_small(dir + "/cgroup.kill", "1") == 0) return;
    for (const auto& word : words_of(read_small(dir + "/cgroup.procs"))) {
        int pid = 0;
        std::from_chars(word.data(), word.data() + word.size(), pid);
        if (pid <= 1 || pid == ::getpid()) continue;
        const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
        const auto now = words_of(read_small(dir + "/cgroup.procs"));
        if (std::find(now.begin(), now.end(), word) != now.end()) {
            if (fd >= 0) {
                ::syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
            } else {
                ::kill(pid, SIGKILL);
            }
        }
        if (fd >= 0) ::close(fd);
    }
}

void remove_group(const std::string& dir) {
    for (int i = 0; i < kRemoveTries; ++i) {
        if (::rmdir(dir.c_str()) == 0 || errno == ENOENT) return;
        if (errno != EBUSY) return;
        kill_group(dir);
        wait_a_millisecond();
    }
}

void leave_leaf(const std::string& leaf) {
    const std::string parent = std::filesystem::path(leaf).parent_path().string();
    for (int i = 0; i < kRemoveTries; ++i) {
        for (const auto& pid : words_of(read_small(leaf + "/cgroup.procs"))) {
            write_small(parent + "/cgroup.procs", pid);
        }
        if (::rmdir(leaf.c_str()) == 0 || errno != EBUSY) return;
        wait_a_millisecond();
    }
}

// The janitor's life: reads notes until the supervisor's end of the socket is gone.
[[noreturn]] void janitor_main(int socket) {
    ::setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP}) {
        ::signal(signal, SIG_IGN);
    }
    // Nobody who waits for the end of our streams may wait for the janitor.
    ::dup2(socket, 0);
    if (::syscall(SYS_close_range, 1u, ~0u, 0u) != 0) {
        for (int fd = 1; fd < 4096; ++fd) ::close(fd);
    }
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t n = ::read(0, buffer, sizeof(buffer));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    // "+g path" notes, "-g path" is done.
    std::vector<Undo> journal;
    for (const auto& line : lines_of(text)) {
        if (line.size() < 4) continue;
        const Undo what{line[1], line.substr(3)};
        if (line[0] == '+') {
            journal.push_back(what);
            continue;
        }
        const auto same = std::find_if(journal.rbegin(), journal.rend(), [&](const Undo& u) {
            return u.kind == what.kind && u.path == what.path;
        });
        if (same != journal.rend()) journal.erase(std::next(same).base());
    }
    for (auto it = journal.rbegin(); it != journal.rend(); ++it) undo(*it);
    ::_exit(0);
}

std::string name_prefix() {
    struct stat st {};
    const u64 space = ::stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
    return fmt::format("oomlab-{}-", space);
}
}  // namespace

void undo(const Undo& what) {
    switch (what.kind) {
        case 'g': remove_group(what.path); break;
        case 'm':
            write_small(what.path + "/cgroup.subtree_control", "-pids");
            write_small(what.path + "/cgroup.subtree_control", "-memory");
            break;
        case 'l': leave_leaf(what.path); break;
        case 'f': ::unlink(what.path.c_str()); break;
        case 'd': ::rmdir(what.path.c_str()); break;
        default: break;
    }
}

Result<Janitor> Janitor::start() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return fail(Error::environment(fmt::format("cannot make a socket pair: {}",
                                                   std::generic_category().message(errno))));
    }
    const int pid = ::fork();
    if (pid < 0) {
        const int error = errno;
        ::close(fds[0]);
        ::close(fds[1]);
        return fail(Error::environment(fmt::format("cannot start the janitor process: {}",
                                                   std::generic_category().message(error))));
    }
    if (pid == 0) {
        ::close(fds[1]);
        janitor_main(fds[0]);
    }
    ::close(fds[0]);
    return Janitor(pid, fds[1]);
}

Janitor::Janitor(Janitor&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      journal_(std::move(other.journal_)) {}

Janitor::~Janitor() {
    if (pid_ < 0) return;
    undo_last(journal_.size());
    ::close(socket_);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
}

void Janitor::tell(char verb, const Undo& what) {
    const std::string line = fmt::format("{}{} {}\n", verb, what.kind, what.path);
    // What was sent is read even after our death. A janitor that was killed is no reason to stop.
    ssize_t n = 0;
    do {
        n = ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
}

void Janitor::note(Undo what) {
    tell('+', what);
    journal_.push_back(std::move(what));
}

void Janitor::undo_last(std::size_t count) {
    for (; count > 0 && !journal_.empty(); --count) {
        const Undo what = std::move(journal_.back());
        journal_.pop_back();
        undo(what);
        tell('-', what);
    }
}

void Janitor::forget(const Undo& what) {
    std::erase_if(journal_, [&](const Undo& u) { return u.kind == what.kind && u.path == what.path; });
    tell('-', what);
}

std::string own_group_name(int number) {
    const int pid = ::getpid();
    return fmt::format("{}{}-{}-{}", name_prefix(), pid, start_time(pid).value_or(0), number);
}

int sweep(const std::string& parent) {
    int removed = 0;
    const std::string prefix = name_prefix();
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(parent, ec)) {
        const std::string name = entry.path().filename().string();
        if (name.compare(0, prefix.size(), prefix) != 0) continue;
        int pid = 0;
        u64 started = 0;
        const char* at = name.data() + prefix.size();
        const char* end = name.data() + name.size();
        const auto first = std::from_chars(at, end, pid);
        if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') continue;
        if (std::from_chars(first.ptr + 1, end, started).ec != std::errc()) continue;
        if (start_time(pid) == started) continue;   // its supervisor lives
        if (!words_of(read_small(entry.path().string() + "/cgroup.procs")).empty()) continue;
        if (::rmdir(entry.path().c_str()) == 0) ++removed;
    }
    return removed;
}

}  // namespace oomlab::supervisor
