// A supervisor that is SIGKILLed at a random moment leaves no cgroup, no process and no file.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "kernels/base/prng.hpp"
#include "labs/supervisor/cgroup.hpp"
#include "labs/supervisor/host.hpp"
#include "tests/supervisor/support.hpp"

using namespace oomlab;
using namespace oomlab::supervisor;
using namespace oomlab::supervisor::test;
using oomlab::test::TempDir;
namespace fs = std::filesystem;

namespace {
constexpr int kRuns = 60;           // OOMLAB_ORPHAN_RUNS overrides it (a slow guest)
constexpr i64 kWindowMs = 45;       // from start to well within the victim's life
constexpr int kCleanUpMs = 10'000;  // bound of the wait, never reached

// Processes, zombies apart, whose command line names `mark`; of one program only, if it is named.
int living(const std::string& mark, const std::string& program = {}) {
    int count = 0;
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator("/proc", ec)) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const int pid = std::atoi(name.c_str());
        const char state = process_state(pid);
        if (state == '\0' || state == 'Z' || state == 'X') continue;
        if (!contains(read_small(entry.path().string() + "/cmdline"), mark)) continue;
        if (program.empty() || fs::read_symlink(entry.path() / "exe", ec) == program) ++count;
    }
    return count;
}

int groups_of(int pid) {
    int count = 0;
    const CgroupPlaces p = find_places();
    std::set<std::string> parents = {p.v2_mount, p.v2_self, p.v1_mount, p.v1_self};
    parents.erase("");
    for (const auto& parent : parents) {
        std::error_code ec;
        for (const auto& entry : fs::directory_iterator(parent, ec)) {
            const std::string name = entry.path().filename().string();
            if (name.compare(0, 7, "oomlab-") == 0 &&
                contains(name, "-" + std::to_string(pid) + "-")) {
                ++count;
            }
        }
    }
    return count;
}

int start_supervisor(const std::string& trace, const std::string& limit_mib) {
    const int pid = ::fork();
    if (pid == 0) {
        const int null = ::open("/dev/null", O_RDWR);
        ::dup2(null, 1);
        ::dup2(null, 2);
        ::execl(OOMLAB_TEST_SUPERVISE_ONCE, "supervise_once", OOMLAB_TEST_VICTIM, trace.c_str(),
                limit_mib.c_str(), "hang", nullptr);
        ::_exit(127);
    }
    return pid;
}

void pass_ms(i64 ms) { ::poll(nullptr, 0, static_cast<int>(ms)); }

// Three processes name the trace when all is up: the supervisor, its fork the janitor, the victim,
// which is another fork until it has become its own program.
bool wait_until_up(const std::string& mark) {
    const auto up = [&] { return living(mark) == 3 && living(mark, OOMLAB_TEST_VICTIM) == 1; };
    for (int waited = 0; waited < kCleanUpMs && !up(); waited += 2) pass_ms(2);
    return up();
}

// The janitor counts as living until it is done.
bool becomes_clean(const fs::path& folder, int pid, const std::string& mark) {
    for (int waited = 0; waited < kCleanUpMs; waited += 2) {
        if (living(mark) == 0 && groups_of(pid) == 0) return !fs::exists(folder) || fs::is_empty(folder);
        pass_ms(2);
    }
    return false;
}
}  // namespace

TEST_CASE("orphans: a supervisor killed at a random moment leaves nothing") {
    const std::string limit = no_cgroup_reason().empty() ? "64" : "0";
    if (limit == "0") MESSAGE("without a cgroup, since none can be had here");
    const char* asked = std::getenv("OOMLAB_ORPHAN_RUNS");
    const int runs = asked == nullptr ? kRuns : std::atoi(asked);
    Prng prng(99);
    int dirty = 0, alive_when_killed = 0;
    for (int run = 0; run < runs; ++run) {
        const TempDir dir;
        const fs::path folder = dir.path() / "made";
        fs::create_directory(folder);
        const std::string trace = (folder / "orphan.trace").string();
        const int pid = start_supervisor(trace, limit);
        REQUIRE(pid > 0);
        // Every other time it is certain that all is up, however slow the machine.
        if (run % 2 == 1) wait_until_up("orphan.trace");
        pass_ms(static_cast<i64>(prng.below(run % 2 == 1 ? kWindowMs / 4 : kWindowMs)));
        if (living("orphan.trace", OOMLAB_TEST_VICTIM) > 0) ++alive_when_killed;
        ::kill(pid, SIGKILL);
        int status = 0;
        ::waitpid(pid, &status, 0);
        CHECK(WIFSIGNALED(status));
        if (!becomes_clean(folder, pid, dir.path().string())) ++dirty;
        // Killed before it had noted anything, it leaves the folder that the test made, and no more.
        if (run % 2 == 1 && fs::exists(folder)) ++dirty;
    }
    MESSAGE(runs << " supervisors killed, " << alive_when_killed << " while their server lived");
    CHECK(dirty == 0);
    CHECK(alive_when_killed > 0);
}

TEST_CASE("orphans: supervisor and janitor both killed: the server dies, the next start sweeps") {
    if (!no_cgroup_reason().empty()) {
        MESSAGE("skipped: no cgroup can be had: " << no_cgroup_reason());
        return;
    }
    const TempDir dir;
    const std::string trace = dir.file("double.trace");
    const int pid = start_supervisor(trace, "64");
    REQUIRE(wait_until_up("double.trace"));
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const int other = std::atoi(entry.path().filename().c_str());
        if (other <= 0 || other == pid) continue;
        const auto fields = read_small(entry.path().string() + "/cmdline");
        if (contains(fields, "double.trace") && contains(fields, "supervise_once")) {
            ::kill(other, SIGKILL);   // the janitor of the supervisor that this test started
        }
    }
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    for (int i = 0; i < 2000 && living("double.trace") > 0; ++i) pass_ms(2);
    CHECK(living("double.trace") == 0);
    CHECK(groups_of(pid) <= 1);   // another test may have swept it by now
    // Probing makes a group, and sweeps first. A group whose dead are not reaped yet is busy for a
    // moment: a later start takes it.
    for (int i = 0; i < 250 && groups_of(pid) > 0; ++i) {
        CHECK(no_cgroup_reason().empty());
        if (groups_of(pid) > 0) pass_ms(20);
    }
    CHECK(groups_of(pid) == 0);
}
