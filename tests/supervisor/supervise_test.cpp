#include <doctest/doctest.h>
#include <poll.h>

#include <csignal>
#include <filesystem>

#include "labs/supervisor/host.hpp"
#include "tests/supervisor/support.hpp"

using namespace oomlab;
using namespace oomlab::supervisor;
using namespace oomlab::supervisor::test;
using oomlab::test::TempDir;

TEST_CASE("supervise: a server that ends well is served, its trace closed and compacted") {
    const TempDir dir;
    const auto e = must_supervise(victim(dir.file("t"), {"exit", "0"}));
    CHECK(e.outcome == Outcome::served);
    CHECK(e.exit_status == 0);
    CHECK(e.way == Way::none);
    CHECK(e.phase == trace::Phase::host_load);
    CHECK(e.trace_damage.empty());
    const auto reader = trace::Reader::open(dir.file("t"));
    REQUIRE(reader.has_value());
    CHECK((*reader)->finished());
    std::string evidence;
    (*reader)->wall([&](const trace::RecordView& r) {
        if (r.type == trace::RecordType::evidence) evidence = r.text();
    });
    CHECK(contains(evidence, "\"outcome\":\"served\""));
    CHECK(std::filesystem::file_size(dir.file("t")) < 256 * kKiB);
    CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("supervise: exit 1 takes its word and its message from the trace") {
    const TempDir dir;
    const auto kind = std::to_string(static_cast<int>(trace::FailureKind::allocator_oom));
    const auto e = must_supervise(victim(dir.file("t"), {"fail", kind, "CUDA out of \x1bmemory"}));
    CHECK(e.outcome == Outcome::gpu_oom);
    CHECK(e.exit_status == 1);
    CHECK(e.message == "CUDA out of ?memory");
    CHECK(e.phase == trace::Phase::serving);
}

TEST_CASE("supervise: a crash is 128 and the signal") {
    const TempDir dir;
    const auto e = must_supervise(victim(dir.file("t"), {"raise", std::to_string(SIGABRT)}));
    CHECK(e.outcome == Outcome::crashed);
    CHECK(e.exit_status == 134);
    const auto k = must_supervise(victim(dir.file("t"), {"raise", std::to_string(SIGKILL)}));
    CHECK(k.outcome == Outcome::killed);
    CHECK(k.exit_status == 137);
    CHECK(k.killed_by == KilledBy::unknown);
}

TEST_CASE("supervise: exits 2, 3 and 5 are errors with the server's last line, and leave no trace") {
    const TempDir dir;
    for (const auto& [code, kind] : {std::pair("2", Error::Kind::parse),
                                     std::pair("3", Error::Kind::environment),
                                     std::pair("5", Error::Kind::internal)}) {
        const auto e = supervise(victim(dir.file("t"), {"print", "no such key", code}));
        REQUIRE_FALSE(e.has_value());
        CHECK(e.error().kind == kind);
        CHECK(contains(e.error().message, "no such key"));
        CHECK(std::filesystem::is_empty(dir.path()));
    }
}

TEST_CASE("supervise: a server that hangs is ended at the time limit") {
    const TempDir dir;
    auto options = victim(dir.file("t"), {"stubborn"});
    options.timeout_ms = 60;
    const auto e = must_supervise(options);
    CHECK(e.outcome == Outcome::timeout);
    CHECK(e.exit_status == 124);
    CHECK(e.killed_by == KilledBy::timeout);
}

TEST_CASE("supervise: asked to stop, a kind server ends by itself") {
    const TempDir dir;
    auto options = victim(dir.file("t"), {"graceful"});
    options.poll_ms = 5;
    int pid = 0;
    const auto e = must_supervise(options, [&](const Live& live) {
        pid = live.pid;
        return is_ready(options.trace_path) ? Go::stop : Go::on;
    });
    CHECK(e.outcome == Outcome::served);
    CHECK(e.stopped_on_request);
    CHECK(pid > 0);
    CHECK_FALSE(start_time(pid).has_value());
}

TEST_CASE("supervise: asked to stop, a stubborn server is killed, and that proves no OOM") {
    const TempDir dir;
    auto options = victim(dir.file("t"), {"stubborn"});
    options.poll_ms = 5;
    options.stop_grace_ms = 30;
    const auto e = must_supervise(options, [&](const Live&) {
        return is_ready(options.trace_path) ? Go::stop : Go::on;
    });
    CHECK(e.outcome == Outcome::killed);
    CHECK(e.exit_status == 137);
    CHECK(e.killed_by == KilledBy::stop_request);
}

TEST_CASE("supervise: SIGINT to the supervisor becomes a stop request, and its own handler returns") {
    const TempDir dir;
    auto options = victim(dir.file("t"), {"graceful"});
    options.poll_ms = 5;
    bool raised = false;
    struct sigaction before {}, after {};
    ::sigaction(SIGINT, nullptr, &before);
    const auto e = must_supervise(options, [&](const Live&) {
        if (!raised && is_ready(options.trace_path)) {
            raised = true;
            std::raise(SIGINT);
        }
        return Go::on;
    });
    CHECK(e.outcome == Outcome::served);
    CHECK(e.stopped_on_request);
    ::sigaction(SIGINT, nullptr, &after);
    CHECK((before.sa_handler == after.sa_handler));
}

TEST_CASE("supervise: the control channel reaches the server, stop included") {
    const TempDir dir;
    auto control = Control::create();
    REQUIRE(control.has_value());
    (*control)->pause();
    (*control)->step();
    (*control)->speed(2.5);
    auto options = victim(dir.file("t"), {"control"});
    options.control = control->get();
    options.poll_ms = 5;
    // It ignores SIGTERM, so only the channel can make it end by itself.
    const auto e = must_supervise(options, [&](const Live&) {
        return is_ready(options.trace_path) ? Go::stop : Go::on;
    });
    CHECK(e.outcome == Outcome::served);
    std::string heard;
    const auto reader = trace::Reader::open(dir.file("t"));
    REQUIRE(reader.has_value());
    (*reader)->poll([&](const trace::RecordView& r) {
        if (r.type == trace::RecordType::action) heard = r.text();
    });
    CHECK(heard == "pause\nstep\nspeed 2.5\nstop\n");
    (*control)->pause();   // to nobody: no SIGPIPE
}

TEST_CASE("supervise: what the server started and left does not outlive it") {
    const TempDir dir;
    CHECK(must_supervise(victim(dir.file("t"), {"leave"})).outcome == Outcome::served);
    int left = 0;
    const auto reader = trace::Reader::open(dir.file("t"));
    REQUIRE(reader.has_value());
    (*reader)->poll([&](const trace::RecordView& r) {
        if (r.type == trace::RecordType::action) left = std::atoi(std::string(r.text()).c_str());
    });
    REQUIRE(left > 0);
    // It was sent SIGKILL before supervise() returned; process 1 reaps it when it likes.
    const auto lives = [&] { return process_state(left) != '\0' && process_state(left) != 'Z'; };
    for (int i = 0; i < 5000 && lives(); ++i) ::poll(nullptr, 0, 1);
    CHECK_FALSE(lives());
}

TEST_CASE("supervise: errors are one line and leave nothing") {
    const TempDir dir;
    auto options = victim(dir.file("t"), {"exit", "0"});
    options.program = dir.file("no-such-program");
    CHECK(supervise(options).error().kind == Error::Kind::environment);
    options = victim(dir.file("no/such/folder"), {"exit", "0"});
    CHECK(supervise(options).error().kind == Error::Kind::io);
    options = victim(dir.file("t"), {"exit", "0"});
    options.host_memory_limit_bytes = 2 * kGiB;
    CHECK(supervise(options).error().kind == Error::Kind::usage);
    options.host_memory_limit_bytes = kMiB;
    CHECK(supervise(options).error().kind == Error::Kind::usage);
    CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("stand-in: only on request, it kills at the limit, and is never called the kernel's") {
    const TempDir dir;
    auto options = victim(dir.file("t"), {"eat", "100", "hang"});
    options.host_memory_limit_bytes = 24 * kMiB;
    options.stand_in_only = true;
    const auto e = must_supervise(options);
    CHECK(e.outcome == Outcome::killed);
    CHECK(e.exit_status == 137);
    CHECK(e.killed_by == KilledBy::stand_in);
    CHECK(e.way == Way::stand_in);
    CHECK(contains(to_json(e), "this is the stand-in, not the kernel"));
}
