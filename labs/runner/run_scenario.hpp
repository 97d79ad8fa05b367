// One run of a scenario from end to end: picks the chip and its server program, starts it under the
// supervisor, reads the trace back and diagnoses it. `oomlab run`, probes, stress and checks all come
// through here; none of them links the server.
#pragma once

#include <optional>
#include <string>

#include "labs/catalog/scenario.hpp"
#include "labs/diagnosis/six_types.hpp"
#include "labs/supervisor/supervise.hpp"

namespace oomlab::runner {

// Where the server programs stand: beside this program, or in ../bin of it.
std::string programs_dir();

struct Chip {
    std::string device;    // as the server takes it: "sim:l4", "cuda:0"
    std::string program;   // path of the server program
    std::string reason;    // one line: what was chosen and why
    bool simulated = true;
};
// "auto" takes a real GPU when the CUDA server says that there is a usable one. On failure:
// Error::usage (no such chip), environment (a real one was asked for and is not there).
Result<Chip> choose_chip(const std::string& wanted);

struct RunRequest {
    std::string scenario_path;
    std::string device;                  // empty: the scenario's own
    std::optional<u64> seed;
    std::string trace_path;              // empty: a temporary file, removed after reading
    u64 trace_log_bytes = 56 * kMiB;
    bool stand_in_allowed = false;
    bool may_reexec = false;
    std::optional<i64> timeout_ms;
    double time_scale = 0;               // seconds of the device's clock a second; 0: as fast as it goes
};

struct RunResult {
    supervisor::Evidence evidence;
    diagnosis::RunFacts facts;
    diagnosis::Diagnosis diagnosis;
    Chip chip;
    std::string trace_path;              // empty when it was temporary
    bool drawn = false;                  // the fault is for the learner to find: name no cause
};

// Called often while it runs; Go::stop ends it.
struct Progress {
    const Scenario& scenario;
    const Chip& chip;
    const std::string& trace_path;
    const supervisor::Live& live;
};
using OnProgress = std::function<supervisor::Go(const Progress&)>;

// On failure: what is wrong with the scenario (parse, io), the flags (usage) or this machine.
Result<RunResult> run_scenario(const RunRequest& request, const OnProgress& on_progress = {});

// Reads and diagnoses a trace file that is there.
struct TraceResult {
    diagnosis::RunFacts facts;
    diagnosis::Diagnosis diagnosis;
    std::string damage;   // "" when the trace is whole
};
Result<TraceResult> read_trace(const std::string& path);

// A folder of our own for this process, removed with it. On failure: Error::io.
class ScratchDir {
  public:
    static Result<ScratchDir> make();
    ScratchDir(ScratchDir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
    ScratchDir& operator=(ScratchDir&&) = delete;
    ~ScratchDir();
    const std::string& path() const { return path_; }

  private:
    explicit ScratchDir(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

// Writes a file in one move (a temporary neighbour, then rename), so that a reader never sees half.
Result<void> write_file(const std::string& path, std::string_view text);

// The nearest folder at or above `start` that holds .oomlab/; empty when there is none.
std::string learner_folder(const std::string& start);

}  // namespace oomlab::runner
