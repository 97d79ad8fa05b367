// /proc/self/mountinfo and /proc/self/cgroup as they look on the kinds of machine there are.
#include <doctest/doctest.h>

#include "labs/supervisor/cgroup.hpp"

using namespace oomlab::supervisor;

TEST_CASE("places: a desktop with cgroup v2") {
    const auto p = parse_places(
        "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        "0::/user.slice/user-1000.slice/session-2.scope\n");
    CHECK(p.v2_mount == "/sys/fs/cgroup");
    CHECK(p.v2_self == "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope");
    CHECK(p.v1_mount.empty());
}

TEST_CASE("places: cgroup v1 with the memory controller, v2 beside it without") {
    const auto p = parse_places(
        "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        "4:memory:/jobs/7\n3:cpu,cpuacct:/\n0::/\n");
    CHECK(p.v1_mount == "/sys/fs/cgroup/memory");
    CHECK(p.v1_self == "/sys/fs/cgroup/memory/jobs/7");
    CHECK(p.v2_self == "/sys/fs/cgroup/unified");
}

TEST_CASE("places: a container sees its own part of the hierarchy") {
    const auto p = parse_places(
        "40 30 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
        "4:memory:/docker/abc\n");
    CHECK(p.v1_self == "/sys/fs/cgroup/memory");
    const auto outside = parse_places(
        "40 30 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
        "4:memory:/docker/abcdef\n");
    CHECK(outside.v1_self.empty());
}

TEST_CASE("places: nothing mounted, or nonsense") {
    CHECK(parse_places("", "").v2_mount.empty());
    CHECK(parse_places("a b c\n- - - -\n1 2 3 4 5 6 -\n", "::\n:\nx\n").v1_mount.empty());
    for (const auto& candidate : candidates({}, 0)) CHECK_FALSE(candidate.problem.empty());
}
