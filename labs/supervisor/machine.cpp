#include "labs/supervisor/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "labs/supervisor/child.hpp"
#include "labs/supervisor/host.hpp"
#include "labs/supervisor/supervise.hpp"

namespace oomlab::supervisor {

namespace {
constexpr u64 kTraceBytes = 64'000'000;       // an hour's trace while it is being written
constexpr u64 kDiskWantedBytes = kGiB;
constexpr u64 kMemoryWantedBytes = kGiB;
constexpr i64 kProbeMs = 15'000;              // a driver that was asleep takes seconds
constexpr u64 kLabLimitBytes = 256 * kMiB;

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string{} : printable(value);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Runs a program of ours and returns what it printed; empty when it cannot be run or takes too long.
std::string ask(const std::string& program, const std::string& flag) {
    ChildPlan plan;
    plan.program = program;
    plan.args = {flag};
    auto child = Child::start(plan);
    if (!child || !child->wait(kProbeMs)) return {};
    child->reap();
    return child->output_tail();
}

Finding gpu(const std::string& folder) {
    const std::string program = folder + "/oomlab-server-cuda";
    if (::access(program.c_str(), X_OK) != 0) {
        return {"gpu", Health::info, "simulated: the real chip was not built",
                "no CUDA toolkit was found when oomlab was built; the whole course runs simulated"};
    }
    return gpu_finding(first_line(ask(program, "--probe")));
}

Finding simulated_server(const std::string& folder) {
    const std::string program = folder + "/oomlab-server-sim";
    if (::access(program.c_str(), X_OK) == 0) return {"server", Health::good, program, ""};
    return {"server", Health::missing, "oomlab-server-sim is not beside oomlab",
            "build it: cmake --build --preset release --target oomlab-server-sim"};
}

std::vector<Finding> host_limit() {
    std::vector<Finding> all;
    bool found = false;
    for (const WayReport& way : probe_ways()) {
        const bool scope = way.name == "systemd scope";
        Finding f{"host limit", Health::info, way.name + ": not usable here", way.reason};
        if (way.usable && scope) {
            f.what = way.name + (found ? ": possible, not needed" : ": will be used, untested on this machine");
            f.why = "systemd-run --user --scope is tried by the first run with a host limit";
        } else if (way.usable) {
            f.health = Health::good;
            f.what = way.name + (found ? ": works, not needed" : ": works, will be used");
        }
        found = found || way.usable;
        all.push_back(std::move(f));
    }
    if (!found) {
        all.push_back({"host limit", Health::limited,
                       "no real 137 on this machine: only the stand-in, labelled as one",
                       "run oomlab as root, from a login session with systemd, or in a container started "
                       "with --privileged"});
    }
    if (read_number("/proc/sys/vm/panic_on_oom").value_or(0) == 2) {
        all.push_back({"host limit", Health::limited, "vm.panic_on_oom is 2: no host limit is set",
                       "a kill would stop the whole machine; set it to 0"});
    }
    return all;
}

Finding kernel_log() {
    const KernelLog log;
    if (log.readable()) return {"kernel log", Health::good, "readable: the kernel's own line is shown", ""};
    return {"kernel log", Health::limited, "not readable: the counters prove a kill without it", log.why_not()};
}

Finding display(bool window_built) {
    const std::string wayland = environment("WAYLAND_DISPLAY"), x11 = environment("DISPLAY");
    const std::string name = wayland.empty() ? x11 : wayland;
    if (!window_built) {
        return {"display", Health::info, "terminal: the window was not built",
                "needs libimgui-dev, libglfw3-dev and libgl-dev when oomlab is built"};
    }
    if (name.empty()) {
        return {"display", Health::info, "terminal: no display", "neither DISPLAY nor WAYLAND_DISPLAY is set"};
    }
    return {"display", Health::good, "window on " + name, ""};
}

Finding terminal() {
    if (::isatty(STDOUT_FILENO) == 0) {
        return {"terminal", Health::info, "not a terminal: plain lines", "output goes to a file or a pipe"};
    }
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const std::string term = environment("TERM");
    const bool colour = environment("NO_COLOR").empty() && term != "dumb" && !term.empty();
    const std::string locale = environment("LC_ALL") + environment("LC_CTYPE") + environment("LANG");
    const bool utf8 = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    const bool narrow = size.ws_col < 80 || size.ws_row < 24;
    return {"terminal", narrow ? Health::limited : Health::good,
            fmt::format("{} x {}, {}, {}", size.ws_col, size.ws_row, colour ? "colour" : "no colour",
                        utf8 ? "UTF-8" : "ASCII only"),
            narrow ? "the live view wants 80 x 24" : ""};
}

Finding disk() {
    struct statvfs st {};
    if (::statvfs(".", &st) != 0) return {"disk", Health::limited, "free space is unknown", ""};
    const u64 free_bytes = u64{st.f_bavail} * st.f_frsize;
    Finding f{"disk", Health::good, human_bytes(free_bytes) + " free in this folder", ""};
    if (::access(".", W_OK) != 0) {
        f = {"disk", Health::limited, "this folder may not be written", "go to a folder of your own"};
    } else if (free_bytes < kTraceBytes) {
        f.health = Health::missing;
        f.why = "a run's trace takes up to 64 MB while it is written";
    } else if (free_bytes < kDiskWantedBytes) {
        f.health = Health::limited;
        f.why = "a run's trace takes up to 64 MB while it is written; 1 GiB is comfortable";
    }
    return f;
}

Finding processor() {
    cpu_set_t set;
    const int count = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
    std::string model = "unknown model";
    for (const auto& line : lines_of(read_small("/proc/cpuinfo"))) {
        if (line.compare(0, 10, "model name") != 0) continue;
        const auto colon = line.find(": ");
        if (colon != std::string::npos) model = printable(line.substr(colon + 2));
        break;
    }
    return {"processor", count >= 2 ? Health::good : Health::info, fmt::format("{} x {}", count, model),
            count >= 2 ? "" : "with one core the live view and the server share it: runs take longer"};
}

Finding memory() {
    const std::string text = read_small("/proc/meminfo");
    const u64 total_bytes = value_of(text, "MemTotal").value_or(0) * kKiB;
    const u64 free_bytes = memory_available_bytes();
    Finding f{"memory", Health::good,
              fmt::format("{} free of {}, swap {}", human_bytes(free_bytes / kMiB * kMiB),
                          human_bytes(total_bytes / kMiB * kMiB), swap_is_on() ? "on" : "off"), ""};
    if (free_bytes < 4 * kLabLimitBytes) {
        f.health = free_bytes < kMemoryWantedBytes / 4 ? Health::missing : Health::limited;
        f.why = "the host lab wants 1 GiB free: four times its limit, for safety";
    }
    return f;
}

Finding speed() {
#ifdef NDEBUG
    return {"build", Health::good, "release: an hour of simulated load takes seconds", ""};
#else
    return {"build", Health::limited, "debug: simulated load takes many times longer",
            "use the release preset: cmake --preset release"};
#endif
}
}  // namespace

const char* health_name(Health health) {
    switch (health) {
        case Health::good: return "good";
        case Health::info: return "info";
        case Health::limited: return "limited";
        case Health::missing: return "missing";
    }
    OOMLAB_UNREACHABLE("health");
}

std::string own_program_folder() {
    char path[4096];
    const ssize_t n = ::readlink("/proc/self/exe", path, sizeof(path));
    const std::string_view view(path, n > 0 ? static_cast<std::size_t>(n) : 0);
    const auto slash = view.rfind('/');
    return slash == std::string_view::npos ? "." : std::string(view.substr(0, slash));
}

Finding gpu_finding(const std::string& probe_line) {
    const auto j = nlohmann::json::parse(probe_line, nullptr, false);
    if (!j.is_object()) {
        return {"gpu", Health::limited, "simulated: the CUDA server gave no answer",
                "oomlab-server-cuda --probe printed no JSON line"};
    }
    const auto text = [&](const char* key) {
        const auto it = j.find(key);
        return it != j.end() && it->is_string() ? printable(it->get<std::string>()) : std::string{};
    };
    const auto bytes = [&](const char* key) -> std::string {
        const auto it = j.find(key);
        return it != j.end() && it->is_number_unsigned() ? human_bytes(it->get<u64>()) : "unknown";
    };
    const auto usable = j.find("usable");
    if (usable == j.end() || !usable->is_boolean() || !usable->get<bool>()) {
        const auto error = j.find("error");
        const std::string number = error != j.end() && error->is_number_integer()
                                       ? fmt::format(" ({} {})", text("name"), error->get<i64>()) : "";
        return {"gpu", Health::info, "simulated: no usable GPU", text("reason") + number};
    }
    return {"gpu", Health::good,
            fmt::format("{}, {} ({} free), compute capability {}", text("name"), bytes("total_bytes"),
                        bytes("free_bytes"), text("compute_capability")),
            "CUDA driver " + text("driver") + "; used where the device is `auto`"};
}

std::vector<Finding> examine_machine(const MachineQuestions& questions) {
    std::vector<Finding> all;
    all.push_back(simulated_server(questions.program_folder));
    all.push_back(gpu(questions.program_folder));
    for (auto& finding : host_limit()) all.push_back(std::move(finding));
    all.push_back(kernel_log());
    all.push_back(display(questions.window_built));
    all.push_back(terminal());
    all.push_back(disk());
    all.push_back(processor());
    all.push_back(memory());
    all.push_back(speed());
    return all;
}

}  // namespace oomlab::supervisor
