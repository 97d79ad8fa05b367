#include "labs/runner/run_scenario.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "labs/trace/reader.hpp"

namespace oomlab::runner {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSimProgram = "oomlab-server-sim";
constexpr const char* kCudaProgram = "oomlab-server-cuda";
constexpr const char* kDefaultSim = "sim:l4";

struct Probe {
    bool usable = false;
    std::string name, reason;
};

// Asks the CUDA server about its chip; it is a program of ours beside us.
Probe ask_cuda(const std::string& program) {
    Probe probe;
    std::string quoted = "'";
    for (const char c : program) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    FILE* pipe = ::popen((quoted + "' --probe 2>/dev/null").c_str(), "r");
    if (pipe == nullptr) return {false, "", "its --probe could not be started"};
    std::string text;
    char buffer[512];
    while (text.size() < 4096 && std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
    const int status = ::pclose(pipe);
    const auto j = nlohmann::json::parse(text, nullptr, false);
    if (status != 0 || !j.is_object()) return {false, "", "its --probe gave no answer"};
    const auto string_at = [&](const char* key) {
        return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
    };
    probe.usable = j.contains("usable") && j["usable"].is_boolean() && j["usable"].get<bool>();
    probe.name = string_at("name");
    probe.reason = string_at("reason");
    return probe;
}

bool runnable(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace

std::string programs_dir() {
    std::error_code ec;
    const fs::path self = fs::read_symlink("/proc/self/exe", ec);
    if (ec) return ".";
    const fs::path here = self.parent_path();
    if (runnable((here / kSimProgram).string())) return here.string();
    const fs::path beside = here.parent_path() / "bin";
    return runnable((beside / kSimProgram).string()) ? beside.string() : here.string();
}

Result<Chip> choose_chip(const std::string& wanted) {
    const std::string dir = programs_dir();
    const std::string sim = dir + "/" + kSimProgram, cuda = dir + "/" + kCudaProgram;
    if (wanted == "cuda" || wanted.rfind("cuda:", 0) == 0) {
        if (!runnable(cuda)) {
            return fail(Error::environment(fmt::format("device {}: {} was not built here (no CUDA toolkit was found); "
                                                       "take a simulated chip, for example --device sim:l4", wanted, kCudaProgram)));
        }
        const Probe probe = ask_cuda(cuda);
        if (!probe.usable) {
            return fail(Error::environment(fmt::format("device {}: no usable GPU: {}", wanted, probe.reason)));
        }
        return Chip{wanted == "cuda" ? "cuda:0" : wanted, cuda, fmt::format("device {}: {} (asked for)", wanted, probe.name), false};
    }
    if (wanted == "auto" || wanted.empty()) {
        std::string why = "no CUDA server was built";
        if (runnable(cuda)) {
            const Probe probe = ask_cuda(cuda);
            if (probe.usable) return Chip{"cuda:0", cuda, fmt::format("device cuda:0: {} (a real GPU was found)", probe.name), false};
            why = "no usable GPU" + (probe.reason.empty() ? std::string() : ": " + probe.reason);
        }
        return Chip{kDefaultSim, sim, fmt::format("device {} (simulated): {}", kDefaultSim, why), true};
    }
    if (wanted == "sim" || wanted.rfind("sim:", 0) == 0) {
        const std::string name = wanted == "sim" ? kDefaultSim : wanted;
        return Chip{name, sim, fmt::format("device {} (simulated): asked for", name), true};
    }
    return fail(Error::usage(fmt::format("device '{}' is unknown: auto, cuda:N, sim:PROFILE (sim:l4, sim:h100-80gb, ...) or sim:FILE",
                                         wanted.substr(0, 80))));
}

Result<RunResult> run_scenario(const RunRequest& request, const OnProgress& on_progress) {
    OOMLAB_TRY(scenario, load_scenario(request.scenario_path));
    OOMLAB_TRY(chip, choose_chip(request.device.empty() ? scenario.device.name : request.device));

    std::optional<ScratchDir> scratch;
    std::string trace_path = request.trace_path;
    if (trace_path.empty()) {
        OOMLAB_TRY(made, ScratchDir::make());
        scratch.emplace(std::move(made));
        trace_path = scratch->path() + "/run.omtrace";
    }

    supervisor::Options options;
    options.program = chip.program;
    options.args = {"--scenario", request.scenario_path, "--trace", trace_path, "--device", chip.device, "--quiet"};
    if (request.seed) {
        options.args.push_back("--seed");
        options.args.push_back(std::to_string(*request.seed));
    }
    options.trace_path = trace_path;
    options.trace_sizes.virtual_log_bytes = request.trace_log_bytes;
    options.temporary_trace = scratch.has_value();
    if (scratch) options.temporary_folder = scratch->path();
    if (scenario.host.memory_limit != 0) options.host_memory_limit_bytes = scenario.host.memory_limit;
    options.stand_in_allowed = request.stand_in_allowed;
    options.address_space_belt = chip.simulated;
    options.may_reexec = request.may_reexec;
    options.timeout_ms = request.timeout_ms;
    // A stop request goes this way too, so that the server can end in order.
    OOMLAB_TRY(control, supervisor::Control::create());
    options.control = control.get();
    options.args.push_back("--control-fd");
    options.args.push_back(std::to_string(supervisor::kControlFd));
    if (request.time_scale > 0) control->speed(request.time_scale);

    const auto poll = [&](const supervisor::Live& live) {
        return on_progress ? on_progress(Progress{scenario, chip, trace_path, live}) : supervisor::Go::on;
    };
    auto supervised = supervisor::supervise(options, poll);
    if (!supervised) {
        Error e = std::move(supervised.error());
        // The server names the program in its own lines; the face does that itself.
        for (const char* prefix : {"oomlab-server: ", "oomlab: "}) {
            if (e.message.rfind(prefix, 0) == 0) e.message.erase(0, std::string(prefix).size());
        }
        return fail(std::move(e));
    }
    OOMLAB_TRY(read, read_trace(trace_path));
    RunResult result;
    result.evidence = std::move(*supervised);
    result.facts = std::move(read.facts);
    result.diagnosis = std::move(read.diagnosis);
    result.chip = std::move(chip);
    result.trace_path = scratch ? std::string() : trace_path;
    result.drawn = std::any_of(scenario.faults.begin(), scenario.faults.end(), [](const FaultSpec& f) { return f.kind == "drawn"; });
    return result;
}

Result<TraceResult> read_trace(const std::string& path) {
    OOMLAB_TRY(reader, trace::Reader::open(path));
    TraceResult result;
    result.facts = diagnosis::facts_of(*reader);
    result.diagnosis = diagnosis::diagnose(result.facts);
    result.damage = reader->damage();
    return result;
}

Result<ScratchDir> ScratchDir::make() {
    std::error_code ec;
    const fs::path base = fs::temp_directory_path(ec);
    std::string name = ((ec ? fs::path("/tmp") : base) / "oomlab-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return fail(Error::io(name + ": no folder for temporary files could be made"));
    return ScratchDir(name);
}

ScratchDir::~ScratchDir() {
    if (path_.empty()) return;
    std::error_code ec;
    fs::remove_all(path_, ec);
}

Result<void> write_file(const std::string& path, std::string_view text) {
    const std::string beside = fmt::format("{}.{}.tmp", path, ::getpid());
    FILE* file = std::fopen(beside.c_str(), "wb");
    if (file == nullptr) return fail(Error::io(path + ": cannot be written"));
    const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0 &&
                       ::fsync(::fileno(file)) == 0;
    const bool closed = std::fclose(file) == 0;
    if (!whole || !closed || std::rename(beside.c_str(), path.c_str()) != 0) {
        ::unlink(beside.c_str());
        return fail(Error::io(path + ": cannot be written (is the disk full?)"));
    }
    return {};
}

std::string learner_folder(const std::string& start) {
    std::error_code ec;
    fs::path at = fs::absolute(start.empty() ? "." : start, ec).lexically_normal();
    for (int depth = 0; depth < 16; ++depth) {
        std::error_code missing;   // not there is no error here
        if (fs::is_directory(at / ".oomlab", missing)) return at.string();
        if (!at.has_parent_path() || at.parent_path() == at) break;
        at = at.parent_path();
    }
    return "";
}

}  // namespace oomlab::runner
