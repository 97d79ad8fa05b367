// What this machine offers to the course, found out by looking and trying: the doctor's findings.
// Changes nothing (the tiny cgroup that it makes is removed again).
#pragma once

#include <string>
#include <vector>

namespace oomlab::supervisor {

enum class Health {
    good,
    info,      // a fact; nothing to do
    limited,   // the course works, something in it does not, or works otherwise
    missing,   // the course cannot run
};
const char* health_name(Health health);   // "good", ...

struct Finding {
    std::string topic;      // "gpu", "host limit", ...: stable; one topic may have several
    Health health = Health::info;
    std::string what;       // what was found and will be used, one line
    std::string why;        // the reason, or what to do; may be empty
};

struct MachineQuestions {
    std::string program_folder;     // where oomlab and the server programs stand
    bool window_built = false;
};
std::vector<Finding> examine_machine(const MachineQuestions& questions);

// The folder of the running program.
std::string own_program_folder();

// The words of `oomlab-server-cuda --probe` (one JSON line) as a finding. Text from a program of
// ours, but parsed like a stranger's.
Finding gpu_finding(const std::string& probe_line);

}  // namespace oomlab::supervisor
