#include "ui/course_host/verb.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace oomlab::window {
namespace {

constexpr std::size_t kPipeBytes = 64 * kKiB;

struct Pipe {
    int read = -1, write = -1;
    bool open() {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC) != 0) return false;
        read = fds[0];
        write = fds[1];
        return true;
    }
    ~Pipe() {
        if (read >= 0) ::close(read);
        if (write >= 0) ::close(write);
    }
    int take(int& fd) {
        const int taken = fd;
        fd = -1;
        return taken;
    }
};

}  // namespace

Verb::~Verb() {
    if (pid_ > 0) {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }
    if (out_fd_ >= 0) ::close(out_fd_);
    if (err_fd_ >= 0) ::close(err_fd_);
}

bool Verb::start(const std::string& program, const std::vector<std::string>& arguments, const std::string& folder,
                 const std::string& input) {
    out_.clear();
    err_.clear();
    Pipe in, out, err;
    if (!in.open() || !out.open() || !err.open()) {
        err_ = std::string("no pipe: ") + std::strerror(errno);
        return false;
    }
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in.read, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.write, 1);
    ::posix_spawn_file_actions_adddup2(&actions, err.write, 2);
    ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        pid_ = -1;
        err_ = program + ": " + std::strerror(error);
        return false;
    }
    // An empty pipe takes this much at once; what reads nothing loses it and nobody waits.
    ::fcntl(in.write, F_SETFL, O_NONBLOCK);
    const ssize_t written = ::write(in.write, input.data(), std::min(input.size(), kPipeBytes));
    if (written < static_cast<ssize_t>(input.size())) err_ = "only the first 64 KiB were handed on\n";
    out_fd_ = out.take(out.read);
    err_fd_ = err.take(err.read);
    ::fcntl(out_fd_, F_SETFL, O_NONBLOCK);
    ::fcntl(err_fd_, F_SETFL, O_NONBLOCK);
    return true;
}

void Verb::drain(int& fd, std::string& into) {
    std::array<char, 16384> bytes;
    while (fd >= 0) {
        const ssize_t n = ::read(fd, bytes.data(), bytes.size());
        if (n > 0) {
            if (into.size() < kMostOutput) into.append(bytes.data(), static_cast<std::size_t>(n));
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n == 0 || errno != EAGAIN) {
            ::close(fd);
            fd = -1;
        }
        return;
    }
}

std::optional<int> Verb::poll() {
    if (pid_ <= 0) return std::nullopt;
    drain(out_fd_, out_);
    drain(err_fd_, err_);
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = -1;
    drain(out_fd_, out_);
    drain(err_fd_, err_);
    if (out_fd_ >= 0) ::close(out_fd_);
    if (err_fd_ >= 0) ::close(err_fd_);
    out_fd_ = err_fd_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string own_program() {
    std::array<char, 4096> path{};
    const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
    return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : "oomlab";
}

}  // namespace oomlab::window
