#include <doctest/doctest.h>

#include <csignal>

#include "tests/supervisor/support.hpp"

using namespace oomlab;
using namespace oomlab::supervisor;
using oomlab::supervisor::test::contains;

namespace {
// A server killed by SIGKILL in a v2 group of 256 MiB.
Evidence sigkill(MemoryEvents after, Way way = Way::v2_root) {
    Evidence e;
    e.wait = {true, SIGKILL};
    e.way = way;
    e.limit_bytes = 256 * kMiB;
    e.peak_bytes = 256 * kMiB;
    e.before = {0, 0, 0, true};
    e.after = after;
    judge(e);
    return e;
}
}  // namespace

TEST_CASE("verdict: host_oom only with signal 9, a rise of oom_kill, and no SIGKILL of ours") {
    CHECK(sigkill({5, 1, 1, true}).outcome == Outcome::host_oom);
    CHECK(sigkill({5, 1, 1, true}).exit_status == 137);
    CHECK(sigkill({5, 1, 2, true}).outcome == Outcome::host_oom);   // oom.group counts twice
    CHECK(sigkill({5, 0, 0, true}).outcome == Outcome::killed);
    CHECK(sigkill({5, 0, 0, true}).killed_by == KilledBy::unknown);
    CHECK(sigkill({0, 0, 0, false}).outcome == Outcome::killed);
    CHECK(sigkill({0, 0, 1, true}, Way::v1).outcome == Outcome::host_oom);
    for (const KilledBy by : {KilledBy::stand_in, KilledBy::stop_request}) {
        Evidence e = sigkill({5, 1, 1, true});
        e.killed_by = by;
        judge(e);
        CHECK(e.outcome == Outcome::killed);
        CHECK(e.exit_status == 137);
    }
}

TEST_CASE("verdict: a kill while the group was below its limit is the machine's, not ours") {
    CHECK(sigkill({0, 0, 1, true}).outcome == Outcome::killed);
    Evidence e = sigkill({0, 0, 1, true}, Way::v1);
    e.killed_by = KilledBy::nobody;
    e.peak_bytes = 100 * kMiB;
    judge(e);
    CHECK(e.outcome == Outcome::killed);
    CHECK(contains(e.sentences[0], "machine itself"));
}

TEST_CASE("verdict: the exit protocol") {
    const auto exits = [](int code, std::optional<trace::FailureKind> kind) {
        Evidence e;
        e.wait = {false, code};
        e.failure_kind = kind;
        judge(e);
        return std::pair(e.outcome, e.exit_status);
    };
    using trace::FailureKind;
    CHECK(exits(0, {}) == std::pair(Outcome::served, 0));
    CHECK(exits(1, FailureKind::allocator_oom) == std::pair(Outcome::gpu_oom, 1));
    CHECK(exits(1, FailureKind::device_oom) == std::pair(Outcome::gpu_oom, 1));
    CHECK(exits(1, FailureKind::cuda_error) == std::pair(Outcome::cuda_error, 1));
    CHECK(exits(1, FailureKind::host_alloc) == std::pair(Outcome::cuda_error, 1));
    CHECK(exits(1, FailureKind::refused) == std::pair(Outcome::refused, 1));
    CHECK(exits(1, {}) == std::pair(Outcome::crashed, 1));
    CHECK(exits(1, static_cast<FailureKind>(999)) == std::pair(Outcome::crashed, 1));
    CHECK(exits(137, {}) == std::pair(Outcome::crashed, 137));   // an exit code is not a signal
}

TEST_CASE("verdict: other signals are crashes, a time limit is a timeout") {
    Evidence e;
    e.wait = {true, SIGSEGV};
    judge(e);
    CHECK(e.outcome == Outcome::crashed);
    CHECK(e.exit_status == 139);
    e.wait = {true, SIGKILL};
    e.killed_by = KilledBy::timeout;
    judge(e);
    CHECK(e.outcome == Outcome::timeout);
    CHECK(e.exit_status == 124);
}

TEST_CASE("verdict: evidence is JSON whatever bytes the server wrote") {
    Evidence e = sigkill({5, 1, 1, true});
    e.sentences.push_back("bytes \xff\xfe and \x1b[31m");
    const std::string json = to_json(e);
    CHECK(contains(json, "\"outcome\":\"host_oom\""));
    CHECK_FALSE(contains(json, "\x1b"));
    CHECK(printable("a\x1b[31mb\x07\x7f\n") == "a?[31mb??\n");
}
