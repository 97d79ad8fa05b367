// The kernel's own kill, for real, in a small cgroup. Where this machine allows none, each case says
// why and proves nothing.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/supervisor/support.hpp"

using namespace oomlab;
using namespace oomlab::supervisor;
using namespace oomlab::supervisor::test;
using oomlab::test::TempDir;

#define SKIP_WITHOUT_CGROUP()                        \
    if (const std::string why = no_cgroup_reason(); !why.empty()) { \
        MESSAGE("skipped: no cgroup can be had: " << why);          \
        return;                                                     \
    }

// A sanitizer's own memory would be what the figures measure.
#define SKIP_WITH_SANITIZER()                                       \
    if (OOMLAB_SANITIZED != 0) {                                    \
        MESSAGE("skipped: built with a sanitizer");                 \
        return;                                                     \
    }

TEST_CASE("host oom: the kernel kills at the limit, it is proven, and the last record is there") {
    SKIP_WITHOUT_CGROUP();
    const TempDir dir;
    for (const u64 mib : {24, 64}) {
        auto options = victim(dir.file("t"), {"eat", "200"});
        options.host_memory_limit_bytes = mib * kMiB;
        const auto e = must_supervise(options);
        INFO(to_json(e));
        CHECK(e.outcome == Outcome::host_oom);
        CHECK(e.exit_status == 137);
        CHECK(e.killed_by == KilledBy::kernel_oom);
        CHECK(e.after.oom_kill > e.before.oom_kill);
        CHECK(e.peak_bytes > (mib - 1) * kMiB);
        CHECK(e.peak_bytes <= mib * kMiB);
        CHECK((e.kernel_log.empty() || contains(e.kernel_log, "Memory cgroup out of memory")));
        u64 blocks = 0;
        auto reader = trace::Reader::open(dir.file("t"));
        REQUIRE(reader.has_value());
        (*reader)->poll([&](const trace::RecordView& r) {
            if (r.type == trace::RecordType::action) ++blocks;
        });
        // All but what the process itself takes is in the last acknowledged block.
        CHECK(blocks <= mib);
        if (OOMLAB_SANITIZED == 0) CHECK(blocks >= mib - 12);
    }
}

TEST_CASE("host oom: should the cgroup fail, the address space ends first") {
    SKIP_WITHOUT_CGROUP();
    SKIP_WITH_SANITIZER();
    const TempDir dir;
    auto options = victim(dir.file("t"), {"eat", "400"});
    options.host_memory_limit_bytes = 24 * kMiB;   // the belt: 4 x 24 + 256 MiB
    const auto e = must_supervise(options);
    // The whole 400 MiB are reserved at once, before a page of it exists: the program is told.
    CHECK(e.wait.code == 4);
    CHECK(e.after.oom_kill == 0);
}

TEST_CASE("host oom: the trace's own pages are not charged to the server") {
    SKIP_WITHOUT_CGROUP();
    SKIP_WITH_SANITIZER();
    const TempDir dir("/dev/shm");
    auto options = victim(dir.file("t"), {"eat", "8"});
    options.trace_sizes = {};   // 61 MB, in memory, under a limit of 24
    options.host_memory_limit_bytes = 24 * kMiB;
    CHECK(must_supervise(options).outcome == Outcome::served);
}

TEST_CASE("host oom: below the limit a server is served, and nothing stays behind") {
    SKIP_WITHOUT_CGROUP();
    const TempDir dir;
    auto options = victim(dir.file("t"), {"eat", "8"});
    options.host_memory_limit_bytes = 64 * kMiB;
    const auto e = must_supervise(options);
    CHECK(e.outcome == Outcome::served);
    CHECK(e.after.oom_kill == 0);
    CHECK(e.peak_bytes > 8 * kMiB);
}

TEST_CASE("host oom: a process that the server left behind dies with the group") {
    SKIP_WITHOUT_CGROUP();
    const TempDir dir;
    auto options = victim(dir.file("t"), {"leave"});
    options.host_memory_limit_bytes = 64 * kMiB;
    CHECK(must_supervise(options).outcome == Outcome::served);
    CHECK(no_cgroup_reason().empty());   // and a group can be had again
}

TEST_CASE("host oom: a crash inside the cgroup is not called an OOM") {
    SKIP_WITHOUT_CGROUP();
    const TempDir dir;
    auto options = victim(dir.file("t"), {"raise", "9"});
    options.host_memory_limit_bytes = 64 * kMiB;
    const auto e = must_supervise(options);
    CHECK(e.outcome == Outcome::killed);
    CHECK(e.killed_by == KilledBy::unknown);
}
