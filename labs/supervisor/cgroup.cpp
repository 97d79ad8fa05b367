#include "labs/supervisor/cgroup.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "labs/supervisor/host.hpp"

namespace oomlab::supervisor {

namespace {
constexpr const char* kTasksMax = "64";   // a fork bomb ends here

std::string error_text(int error) { return std::generic_category().message(error); }

bool has_word(const std::string& path, std::string_view word) {
    const auto words = words_of(read_small(path));
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool writable(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }

// A mount shows the part of the hierarchy below `root`; a path outside of it is not reachable.
std::string below_mount(const std::string& mount, const std::string& root, const std::string& path) {
    if (root == "/" || root.empty()) return path == "/" ? mount : mount + path;
    if (path == root) return mount;
    if (path.compare(0, root.size() + 1, root + "/") == 0) return mount + path.substr(root.size());
    return {};
}

Failure<Error> cannot(const std::string& what, int error) {
    return fail(Error::environment(fmt::format("{}: {}", what, error_text(error))));
}

// Sets a limit and believes it only when it reads the same (rounded down to pages).
Result<void> set_limit(const std::string& path, u64 limit_bytes) {
    if (const int e = write_small(path, std::to_string(limit_bytes)); e != 0) return cannot(path, e);
    const auto now = read_number(path);
    if (!now || *now > limit_bytes || *now + 65536 < limit_bytes) {
        return fail(Error::environment(path + ": the limit did not read back as it was set"));
    }
    return {};
}

Result<void> limit_v2(const std::string& dir, u64 limit_bytes) {
    OOMLAB_TRY_VOID(set_limit(dir + "/memory.max", limit_bytes));
    const std::string swap = dir + "/memory.swap.max";
    if (::access(swap.c_str(), F_OK) == 0) {
        if (const int e = write_small(swap, "0"); e != 0) return cannot(swap, e);
    } else if (swap_is_on()) {
        return fail(Error::environment(
            "swap is on and cannot be accounted for here: the process would be swapped, not killed"));
    }
    // Kills all that live in the group, so that no half of a server survives; optional.
    write_small(dir + "/memory.oom.group", "1");
    write_small(dir + "/pids.max", kTasksMax);
    return {};
}

Result<void> limit_v1(const std::string& dir, u64 limit_bytes) {
    OOMLAB_TRY_VOID(set_limit(dir + "/memory.limit_in_bytes", limit_bytes));
    const std::string both = dir + "/memory.memsw.limit_in_bytes";
    if (::access(both.c_str(), F_OK) == 0) {
        OOMLAB_TRY_VOID(set_limit(both, limit_bytes));
    } else if (swap_is_on()) {
        return fail(Error::environment(
            "swap is on and cannot be accounted for here (boot with swapaccount=1): the process "
            "would be swapped, not killed"));
    }
    const auto control = read_small(dir + "/memory.oom_control");
    if (value_of(control, "oom_kill_disable").value_or(1) != 0 || !value_of(control, "oom_kill")) {
        return fail(Error::environment(dir + "/memory.oom_control: the OOM killer is off here, or "
                                             "does not count its kills"));
    }
    return {};
}
}  // namespace

CgroupPlaces parse_places(const std::string& mountinfo, const std::string& cgroup) {
    std::string v1_path, v2_path;
    for (const auto& line : lines_of(cgroup)) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
        if (names == ",,") v2_path = line.substr(second + 1);
        if (names.find(",memory,") != std::string::npos) v1_path = line.substr(second + 1);
    }
    CgroupPlaces places;
    for (const auto& line : lines_of(mountinfo)) {
        // id parent dev root mount options [optional...] - type source super-options
        const auto words = words_of(line);
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 6 || words.end() - dash < 4) continue;
        const std::string &root = words[3], &mount = words[4], &type = *(dash + 1);
        if (type == "cgroup2" && places.v2_mount.empty()) {
            places.v2_mount = mount;
            if (!v2_path.empty()) places.v2_self = below_mount(mount, root, v2_path);
        }
        if (type == "cgroup" && ("," + *(dash + 3) + ",").find(",memory,") != std::string::npos) {
            places.v1_mount = mount;
            if (!v1_path.empty()) places.v1_self = below_mount(mount, root, v1_path);
        }
    }
    return places;
}

CgroupPlaces find_places() {
    return parse_places(read_small("/proc/self/mountinfo"), read_small("/proc/self/cgroup"));
}

std::vector<Candidate> candidates(const CgroupPlaces& places, int janitor_pid) {
    std::vector<Candidate> all;
    const auto check_v2 = [&](Candidate c) {
        if (c.parent.empty()) {
            c.problem = "no cgroup v2 is mounted";
        } else if (!has_word(c.parent + "/cgroup.controllers", "memory")) {
            c.problem = c.parent + " has no memory controller" +
                        (places.v1_mount.empty() ? "" : " (cgroup v1 has it)");
        } else if (!writable(c.parent) || !writable(c.parent + "/cgroup.procs")) {
            c.problem = c.parent + " may not be written by this user";
        } else if (c.way == Way::v2_own) {
            const std::string self = std::to_string(::getpid()), janitor = std::to_string(janitor_pid);
            const auto pids = words_of(read_small(c.parent + "/cgroup.procs"));
            const auto others = std::count_if(pids.begin(), pids.end(), [&](const std::string& pid) {
                return pid != self && pid != janitor;
            });
            // The controller cannot be handed on while processes live here, and other people's
            // processes are not ours to move.
            c.step_aside = !has_word(c.parent + "/cgroup.subtree_control", "memory");
            if (c.step_aside && others > 0) {
                c.problem = fmt::format("{} also holds {} other process{}", c.parent, others,
                                        others == 1 ? "" : "es");
            }
        }
        all.push_back(std::move(c));
    };
    const bool own_is_root = places.v2_self == places.v2_mount;
    check_v2({Way::v2_own, own_is_root ? "" : places.v2_self, false, {}});
    if (own_is_root && !places.v2_mount.empty()) {
        all.back().problem = "this process lives in the root of cgroup v2, not in a group of its own";
    }
    check_v2({Way::v2_root, places.v2_mount, false, {}});

    Candidate v1{Way::v1, places.v1_mount, false, {}};
    if (places.v1_mount.empty()) {
        v1.problem = "no cgroup v1 with the memory controller is mounted";
    } else {
        if (!places.v1_self.empty() && writable(places.v1_self)) v1.parent = places.v1_self;
        if (!writable(v1.parent)) v1.problem = v1.parent + " may not be written by this user";
    }
    all.push_back(std::move(v1));
    return all;
}

Result<LimitGroup> LimitGroup::make(const Candidate& where, u64 limit_bytes, Janitor& janitor) {
    static std::atomic<int> number{0};
    if (!where.problem.empty()) return fail(Error::environment(where.problem));
    sweep(where.parent);
    const std::size_t notes_before = janitor.notes();
    const auto give_up = [&](Error error) {
        janitor.undo_last(janitor.notes() - notes_before);
        return fail(std::move(error));
    };
    const bool v2 = where.way != Way::v1;
    if (v2 && !has_word(where.parent + "/cgroup.subtree_control", "memory")) {
        if (where.step_aside) {
            const std::string leaf = where.parent + "/" + own_group_name(number++) + "-leaf";
            janitor.note({'l', leaf});
            if (::mkdir(leaf.c_str(), 0755) != 0) return give_up(cannot(leaf, errno).error);
            for (const auto& pid : words_of(read_small(where.parent + "/cgroup.procs"))) {
                if (const int e = write_small(leaf + "/cgroup.procs", pid); e != 0 && e != ESRCH) {
                    return give_up(cannot(leaf + "/cgroup.procs", e).error);
                }
            }
        }
        const std::string control = where.parent + "/cgroup.subtree_control";
        // In the root it stays switched on: somebody else's limit may stand on it by then.
        if (where.step_aside) janitor.note({'m', where.parent});
        if (const int e = write_small(control, "+memory"); e != 0) return give_up(cannot(control, e).error);
        write_small(control, "+pids");   // optional: a bound on the number of processes
    }
    const std::string dir = where.parent + "/" + own_group_name(number++);
    janitor.note({'g', dir});
    if (::mkdir(dir.c_str(), 0755) != 0) return give_up(cannot(dir, errno).error);
    auto limited = v2 ? limit_v2(dir, limit_bytes) : limit_v1(dir, limit_bytes);
    if (!limited) return give_up(std::move(limited.error()));
    return LimitGroup(where.way, dir);
}

MemoryEvents LimitGroup::events() const {
    MemoryEvents e;
    if (way_ == Way::v1) {
        const auto kills = value_of(read_small(dir_ + "/memory.oom_control"), "oom_kill");
        e.max = read_number(dir_ + "/memory.failcnt").value_or(0);
        e.oom_kill = kills.value_or(0);
        e.readable = kills.has_value();
        return e;
    }
    const auto text = read_small(dir_ + "/memory.events");
    e.max = value_of(text, "max").value_or(0);
    e.oom = value_of(text, "oom").value_or(0);
    e.oom_kill = value_of(text, "oom_kill").value_or(0);
    e.readable = value_of(text, "oom_kill").has_value();
    return e;
}

u64 LimitGroup::peak_bytes() const {
    return read_number(dir_ + (way_ == Way::v1 ? "/memory.max_usage_in_bytes" : "/memory.peak"))
        .value_or(0);
}

u64 LimitGroup::current_bytes() const {
    return read_number(dir_ + (way_ == Way::v1 ? "/memory.usage_in_bytes" : "/memory.current"))
        .value_or(0);
}

}  // namespace oomlab::supervisor
