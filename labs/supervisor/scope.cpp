#include "labs/supervisor/scope.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "labs/supervisor/host.hpp"

namespace oomlab::supervisor {

namespace {
constexpr const char* kInScope = "OOMLAB_IN_SCOPE";   // set for the second start, so there is no third

std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::string_view left(path == nullptr ? "/usr/bin:/bin" : path);
    while (!left.empty()) {
        const auto end = std::min(left.find(':'), left.size());
        const std::string full = std::string(left.substr(0, end)) + "/" + name;
        if (::access(full.c_str(), X_OK) == 0) return full;
        left.remove_prefix(std::min(end + 1, left.size()));
    }
    return {};
}
}  // namespace

std::string scope_problem(const CgroupPlaces& places) {
    if (std::getenv(kInScope) != nullptr) return "this program already runs in a scope of its own";
    if (places.v2_mount.empty() || !places.v1_mount.empty()) {
        return "it needs cgroup v2 with the memory controller";
    }
    if (find_program("systemd-run").empty()) return "systemd-run is not installed";
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime == nullptr || *runtime == '\0') {
        return "no user session (XDG_RUNTIME_DIR is not set): log in normally, not by su or cron";
    }
    const std::string socket = std::string(runtime) + "/systemd/private";
    if (::access(socket.c_str(), F_OK) != 0) return "no user manager runs (" + socket + " is missing)";
    return {};
}

Error enter_scope() {
    const std::string command_line = read_small("/proc/self/cmdline");
    std::vector<std::string> words = {find_program("systemd-run"), "--user", "--scope", "--collect",
                                      "--quiet", "-p", "Delegate=yes", "--"};
    char self[4096];
    const ssize_t n = ::readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0) return Error::environment("this program's own path is not readable (/proc/self/exe)");
    words.emplace_back(self, static_cast<std::size_t>(n));
    // The first word is the name that we were called by; the rest goes along as it was.
    std::size_t at = command_line.find('\0');
    while (at != std::string::npos && at + 1 < command_line.size()) {
        const auto end = command_line.find('\0', at + 1);
        words.push_back(command_line.substr(at + 1, end - at - 1));
        at = end;
    }
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::setenv(kInScope, "1", 1);
    ::execv(argv[0], argv.data());
    const int error = errno;
    ::unsetenv(kInScope);
    return Error::environment(fmt::format("{}: {}", argv[0], std::generic_category().message(error)));
}

}  // namespace oomlab::supervisor
