// oomlab-server-sim and oomlab-server-cuda: one run of a scenario, in a process of its own.
//
//   --scenario FILE   what to run                      --trace FILE     the black box, made beforehand
//   --device NAME     overrides the scenario's device  --seed N         overrides the workload's seed
//   --control-fd N    commands: pause step resume speed X stop, a line each
//   --quiet           no log lines on stderr           --probe          one line about the chip, then end
//
// Exit status: 0 served, 1 died of a GPU error or refused, 2 bad scenario or flag, 3 this machine cannot.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "labs/catalog/model_config.hpp"
#include "labs/server/engine.hpp"
#include "labs/server/program/open_chip.hpp"

namespace oomlab::server {
namespace {

class StderrConsole final : public Console {
  public:
    explicit StderrConsole(bool quiet) : quiet_(quiet) {}
    void line(const std::string& text) override {
        // The last words are never left out.
        if (quiet_ && text.rfind("INFO", 0) == 0) return;
        std::fputs((text + "\n").c_str(), stderr);
    }

  private:
    bool quiet_;
};

double wall_s() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Reads commands from a pipe between steps. Pacing waits; it never changes what happens.
class PipeControl final : public Control {
  public:
    explicit PipeControl(int fd) : fd_(fd) {
        if (fd_ >= 0) fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
    }
    bool after_step(double device_now_s) override {
        if (fd_ < 0 || stop_) return !stop_;
        if (steps_left_ > 0) --steps_left_;
        do {
            poll_commands();
            if (stop_) return false;
            const bool waiting = (paused_ && steps_left_ == 0) || ahead(device_now_s);
            if (!waiting) return true;
            const timespec nap{0, 5'000'000};
            nanosleep(&nap, nullptr);
        } while (true);
    }

  private:
    bool ahead(double device_now_s) {
        if (speed_ <= 0) return false;
        if (pace_wall_ < 0) {
            pace_wall_ = wall_s();
            pace_device_ = device_now_s;
        }
        return device_now_s - pace_device_ > (wall_s() - pace_wall_) * speed_;
    }
    void poll_commands() {
        char buffer[256];
        const ssize_t n = read(fd_, buffer, sizeof buffer);
        if (n <= 0) return;
        pending_.append(buffer, static_cast<std::size_t>(n));
        std::size_t end = 0;
        while ((end = pending_.find('\n')) != std::string::npos) {
            const std::string command = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            pace_wall_ = -1;
            if (command == "pause") paused_ = true;
            else if (command == "resume") paused_ = false;
            else if (command == "step") { paused_ = true; ++steps_left_; }
            else if (command == "stop") stop_ = true;
            else if (command.rfind("speed ", 0) == 0) speed_ = std::atof(command.c_str() + 6);
        }
        if (pending_.size() > 1024) pending_.clear();
    }
    int fd_;
    bool paused_ = false, stop_ = false;
    unsigned steps_left_ = 0;
    double speed_ = 0, pace_wall_ = -1, pace_device_ = 0;   // 0: as fast as it goes
    std::string pending_;
};

struct Flags {
    std::string scenario, trace, device;
    std::optional<u64> seed;
    int control_fd = -1;
    bool quiet = false, probe = false;
};

Result<Flags> read_flags(int argc, char** argv) {
    Flags f;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--quiet") { f.quiet = true; continue; }
        if (flag == "--probe") { f.probe = true; continue; }
        if (i + 1 >= argc) return fail(Error::usage(fmt::format("{} wants a value, or is unknown", flag)));
        const std::string value = argv[++i];
        if (flag == "--scenario") f.scenario = value;
        else if (flag == "--trace") f.trace = value;
        else if (flag == "--device") f.device = value;
        else if (flag == "--seed") f.seed = std::strtoull(value.c_str(), nullptr, 10);
        else if (flag == "--control-fd") f.control_fd = std::atoi(value.c_str());
        else return fail(Error::usage(fmt::format("unknown flag {}", flag)));
    }
    if (f.scenario.empty() && !f.probe) return fail(Error::usage("--scenario FILE is missing"));
    return f;
}

Result<int> serve(const Flags& flags) {
    OOMLAB_TRY(scenario, load_scenario(flags.scenario));
    if (flags.seed) scenario.workload.seed = *flags.seed;
    if (auto conf = parse_alloc_conf(scenario.allocator.conf); !conf) {
        return fail(Error::parse(flags.scenario + ": allocator.conf: " + conf.error().message));
    }
    OOMLAB_TRY(shape, load_model_shape(scenario.model.config));
    OOMLAB_TRY(device, open_chip(scenario, flags.device, shape));
    OOMLAB_TRY(config, resolve_config(scenario, shape, device->props()));
    std::unique_ptr<trace::Writer> writer;
    if (!flags.trace.empty()) {
        OOMLAB_TRY(opened, trace::Writer::open(flags.trace));
        writer = std::move(opened);
    }
    StderrConsole console(flags.quiet);
    PipeControl control(flags.control_fd);
    Engine engine(std::move(config), *device, writer.get(), console, &control);
    return engine.run();
}

int program(int argc, char** argv) {
    auto flags = read_flags(argc, argv);
    if (!flags) {
        std::fprintf(stderr, "oomlab-server: %s\n", flags.error().message.c_str());
        return 2;
    }
    if (flags->probe) {
        std::puts(probe_chip().c_str());
        return 0;
    }
    auto status = serve(*flags);
    if (status) return *status;
    std::fprintf(stderr, "oomlab: %s\n", status.error().message.c_str());
    return exit_code(status.error());
}

}  // namespace
}  // namespace oomlab::server

int main(int argc, char** argv) { return oomlab::server::program(argc, argv); }
