#include "kernels/cuda/nvidia_smi.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>

extern char** environ;

namespace oomlab::cuda {
namespace {

constexpr std::size_t kOutputMax = 64 * 1024;
constexpr int kTimeoutMs = 2000;
constexpr u64 kMiBMax = u64{1} << 40;   // no card holds this many MiB

std::string_view trimmed(std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
    return s;
}

std::optional<u64> number(std::string_view s) {
    s = trimmed(s);
    u64 n = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
    if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
    return n;
}

std::string_view next_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return line;
}

// Reads until the end, the cap or the deadline. False: too late.
bool read_all(int fd, std::string& output) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(kTimeoutMs);
    char buffer[4096];
    while (output.size() < kOutputMax) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
        if (left <= 0 || poll(&p, 1, static_cast<int>(left)) <= 0) return false;
        const ssize_t n = read(fd, buffer, sizeof buffer);
        if (n <= 0) return n == 0;
        output.append(buffer, static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

std::vector<GpuProcess> parse_processes(std::string_view csv) {
    std::vector<GpuProcess> processes;
    while (!csv.empty()) {
        const std::string_view line = next_line(csv);
        const std::size_t comma = line.find(',');
        if (comma == std::string_view::npos) continue;
        const auto pid = number(line.substr(0, comma));
        if (!pid) continue;
        const u64 mib = number(line.substr(comma + 1)).value_or(0);
        processes.push_back({.pid = *pid, .bytes = mib < kMiBMax ? mib * kMiB : 0});
    }
    return processes;
}

std::optional<u64> parse_used_bytes(std::string_view csv) {
    const auto mib = number(next_line(csv));
    if (!mib || *mib >= kMiBMax) return std::nullopt;
    return *mib * kMiB;
}

std::optional<std::string> ask_nvidia_smi(const std::string& uuid, const std::string& query) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
    std::string id = "--id=" + uuid;
    std::string format = "--format=csv,noheader,nounits";
    std::string program = "nvidia-smi";
    std::string asked = query;
    char* arguments[] = {program.data(), asked.data(), id.data(), format.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int failed = posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string output;
    const bool whole = failed == 0 && read_all(ends[0], output);
    close(ends[0]);
    if (failed != 0) return std::nullopt;
    if (!whole) kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    if (!whole || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
    return output;
}

}  // namespace oomlab::cuda
