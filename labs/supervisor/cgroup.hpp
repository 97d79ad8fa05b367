// One memory cgroup for one server, on whichever kind of cgroup this machine has. Internal.
//
// Fail closed: the limit is set, read back, and swap is off in the group, or there is no group.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "labs/supervisor/evidence.hpp"
#include "labs/supervisor/janitor.hpp"

namespace oomlab::supervisor {

// Where cgroups are mounted and where this process lives; empty where there is none.
struct CgroupPlaces {
    std::string v2_mount, v2_self;
    std::string v1_mount, v1_self;   // of the memory controller
};
CgroupPlaces find_places();
// The same from the texts of /proc/self/mountinfo and /proc/self/cgroup.
CgroupPlaces parse_places(const std::string& mountinfo, const std::string& cgroup);

// A place where a group may be made, or why none may.
struct Candidate {
    Way way;
    std::string parent;          // the group is made in here
    bool step_aside = false;     // v2: our own processes must leave the parent first
    std::string problem;         // empty: worth trying
};
// In the order in which they are tried.
std::vector<Candidate> candidates(const CgroupPlaces& places, int janitor_pid);

class LimitGroup {
  public:
    // Makes the group and sets the limit. Everything made is noted with the janitor beforehand, and
    // undone on failure. On failure: Error::environment, one line.
    static Result<LimitGroup> make(const Candidate& where, u64 limit_bytes, Janitor& janitor);

    Way way() const { return way_; }
    std::string procs_path() const { return dir_ + "/cgroup.procs"; }
    const std::string& dir() const { return dir_; }
    MemoryEvents events() const;
    u64 peak_bytes() const;      // 0 where the kernel does not keep it
    u64 current_bytes() const;

  private:
    LimitGroup(Way way, std::string dir) : way_(way), dir_(std::move(dir)) {}
    Way way_;
    std::string dir_;
};

}  // namespace oomlab::supervisor
