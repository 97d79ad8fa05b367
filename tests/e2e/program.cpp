#include "tests/e2e/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/temp_dir.hpp"

namespace oomlab::testing {

namespace {

// Children of a process, by /proc.
std::vector<int> children(int pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    std::vector<int> list;
    for (int child = 0; in >> child;) list.push_back(child);
    return list;
}

int server_of(int pid) {
    for (const int child : children(pid)) {
        if (read_text("/proc/" + std::to_string(child) + "/comm").rfind("oomlab-server", 0) == 0) return child;
    }
    return 0;
}

Ran run(const std::vector<std::string>& args, const std::string& cwd, int signal) {
    const test::TempDir dir;
    const std::string out = dir.path().string() + "/out", err = dir.path().string() + "/err";
    std::string program = std::string(OOMLAB_BIN_DIR) + "/oomlab";
    std::vector<std::string> copy = args;
    std::vector<char*> argv = {program.data()};
    for (std::string& a : copy) argv.push_back(a.data());
    argv.push_back(nullptr);
    const int pid = ::fork();
    if (pid == 0) {
        const int o = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int e = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int i = ::open("/dev/null", O_RDONLY);
        ::dup2(i, 0);
        ::dup2(o, 1);
        ::dup2(e, 2);
        if (!cwd.empty() && ::chdir(cwd.c_str()) != 0) ::_exit(126);
        ::setenv("NO_COLOR", "1", 1);
        ::execv(program.c_str(), argv.data());
        ::_exit(127);
    }
    // The server says "serving" through the plain view; the signal goes to it then.
    for (int waited = 0; signal != 0 && waited < 20'000; ++waited) {
        const int server = server_of(pid);
        if (server != 0 && read_text(err).find("phase serving") != std::string::npos) {
            ::kill(server, signal);
            break;
        }
        ::poll(nullptr, 0, 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    Ran ran;
    ran.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran.out = read_text(out);
    ran.err = read_text(err);
    return ran;
}

}  // namespace

nlohmann::json Ran::json() const {
    std::string text = out;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const std::size_t line = text.rfind('\n');
    return nlohmann::json::parse(line == std::string::npos ? text : text.substr(line + 1), nullptr, false);
}

bool Ran::one_error_line() const {
    return err.rfind("oomlab: ", 0) == 0 && err.find('\n') == err.size() - 1 && err.size() < 1500;
}

Ran shell(const std::vector<std::string>& args, const std::string& cwd) { return run(args, cwd, 0); }
Ran shell_with_signal(const std::vector<std::string>& args, int signal) { return run(args, "", signal); }

std::string scenario(const std::string& name) {
    return std::string(OOMLAB_SOURCE_DIR) + "/content/scenarios/" + name + ".toml";
}
void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string read_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace oomlab::testing
