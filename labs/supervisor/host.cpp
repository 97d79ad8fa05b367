#include "labs/supervisor/host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>

namespace oomlab::supervisor {

namespace {
constexpr std::size_t kSmallFileMax = 1 << 20;

std::optional<u64> number_in(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == ':')) {
        text.remove_prefix(1);
    }
    u64 value = 0;
    const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc()) return std::nullopt;
    return value;
}

// What stands behind "PID (name) " in /proc/PID/stat; the name may hold anything but a ')'.
std::vector<std::string> stat_fields(int pid) {
    const std::string text = read_small(fmt::format("/proc/{}/stat", pid));
    const auto close = text.rfind(')');
    return close == std::string::npos ? std::vector<std::string>{}
                                      : words_of(std::string_view(text).substr(close + 1));
}
}  // namespace

std::string read_small(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    std::string text;
    char buffer[4096];
    ssize_t n = 0;
    while (text.size() < kSmallFileMax && (n = ::read(fd, buffer, sizeof(buffer))) > 0) {
        text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return text;
}

int write_small(const std::string& path, std::string_view text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    const ssize_t n = ::write(fd, text.data(), text.size());
    const int error = n == static_cast<ssize_t>(text.size()) ? 0 : (n < 0 ? errno : EIO);
    ::close(fd);
    return error;
}

std::optional<u64> read_number(const std::string& path) { return number_in(read_small(path)); }

std::optional<u64> value_of(std::string_view text, std::string_view key) {
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        const auto line = text.substr(at, end - at);
        at = end + 1;
        if (line.size() <= key.size() || line.substr(0, key.size()) != key) continue;
        const char next = line[key.size()];
        if (next == ' ' || next == ':' || next == '\t') return number_in(line.substr(key.size()));
    }
    return std::nullopt;
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    constexpr std::string_view kSpace = " \t\n";
    for (;;) {
        const auto begin = text.find_first_not_of(kSpace);
        if (begin == std::string_view::npos) return words;
        const auto end = std::min(text.find_first_of(kSpace, begin), text.size());
        words.emplace_back(text.substr(begin, end - begin));
        text.remove_prefix(end);
    }
}

u64 memory_available_bytes() {
    return value_of(read_small("/proc/meminfo"), "MemAvailable").value_or(0) * kKiB;
}

bool swap_is_on() { return lines_of(read_small("/proc/swaps")).size() > 1; }

u64 rss_bytes(int pid, bool anonymous_only) {
    const std::string status = read_small(fmt::format("/proc/{}/status", pid));
    if (!anonymous_only) return value_of(status, "VmRSS").value_or(0) * kKiB;
    return (value_of(status, "RssAnon").value_or(0) + value_of(status, "RssShmem").value_or(0)) * kKiB;
}

std::optional<u64> start_time(int pid) {
    constexpr std::size_t kStartTime = 22 - 3;   // the first field behind the name is the third
    const auto fields = stat_fields(pid);
    if (fields.size() <= kStartTime) return std::nullopt;
    return number_in(fields[kStartTime]);
}

char process_state(int pid) {
    const auto fields = stat_fields(pid);
    return fields.empty() ? '\0' : fields[0][0];
}

i64 monotonic_ms() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

i64 wall_us() {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1'000'000 + t.tv_nsec / 1000;
}

KernelLog::KernelLog() : fd_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ < 0) {
        why_not_ = fmt::format("the kernel log is not readable here (/dev/kmsg: {})",
                               std::generic_category().message(errno));
        return;
    }
    ::lseek(fd_, 0, SEEK_END);
    char byte;
    // Where dmesg is restricted, opening succeeds for some and reading does not.
    if (::read(fd_, &byte, 0) < 0 && errno == EPERM) {
        ::close(fd_);
        fd_ = -1;
        why_not_ = "the kernel log is restricted to root here (kernel.dmesg_restrict)";
    }
}

KernelLog::~KernelLog() {
    if (fd_ >= 0) ::close(fd_);
}

std::string KernelLog::killed_line(int pid) {
    const std::string wanted = fmt::format("Killed process {} (", pid);
    std::string found;
    if (fd_ < 0) return found;
    char record[8192];
    // Each read is one record, "prefix;text\n"; EPIPE says that some were overwritten: go on.
    for (int reads = 0; reads < 4096; ++reads) {
        const ssize_t n = ::read(fd_, record, sizeof(record));
        if (n < 0 && errno == EPIPE) continue;
        if (n <= 0) break;
        std::string_view text(record, static_cast<std::size_t>(n));
        const auto semicolon = text.find(';');
        if (semicolon == std::string_view::npos) continue;
        text.remove_prefix(semicolon + 1);
        text = text.substr(0, text.find('\n'));
        if (text.find(wanted) != std::string_view::npos) found = std::string(text);
    }
    return found;
}

}  // namespace oomlab::supervisor
