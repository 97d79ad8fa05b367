// Server and viewer in one process, turn by turn: no threads, no sleeps.
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "labs/trace/reader.hpp"
#include "labs/trace/writer.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/temp_dir.hpp"
#include "ui/serve/server.hpp"
#include "ui/serve/viewer.hpp"

using namespace oomlab;
using namespace oomlab::serve;

namespace {

std::unique_ptr<Server> serve_file(const std::string& path) {
    auto server = Server::open(path, {"127.0.0.1", "0"});
    REQUIRE(server);
    return std::move(*server);
}

// The greeting needs both sides: the server turns in a thread until the viewer is in.
std::unique_ptr<Viewer> connect_to(Server& server) {
    std::unique_ptr<Viewer> viewer;
    std::atomic<bool> done = false;
    std::thread other([&] {
        auto connected = Viewer::connect({"127.0.0.1", std::to_string(server.port())});
        if (connected) viewer = std::move(*connected);
        done = true;
    });
    while (!done) server.turn(10);
    other.join();
    for (int i = 0; i < 5; ++i) server.turn(1);
    REQUIRE(viewer != nullptr);
    return viewer;
}

struct Counted {
    std::size_t records = 0, samples = 0, requests = 0, failures = 0, wall = 0;
};
Counted count(const std::string& path) {
    auto reader = trace::Reader::open(path);
    REQUIRE(reader);
    Counted c;
    (*reader)->poll([&](const trace::RecordView& r) {
        ++c.records;
        c.samples += r.type == trace::RecordType::sample ? 1 : 0;
        c.requests += r.type == trace::RecordType::request ? 1 : 0;
        c.failures += r.type == trace::RecordType::failure ? 1 : 0;
    });
    (*reader)->wall([&](const trace::RecordView&) { ++c.wall; });
    return c;
}

// Until the condition holds; loopback may take a moment on a busy machine.
template <class Condition>
bool exchange(Server& server, Viewer& viewer, const Condition& done) {
    for (int i = 0; i < 5000; ++i) {
        server.turn(1);
        viewer.poll(1);
        if (i % 20 == 19 && done()) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("address: host and port, or a reason") {
    CHECK(parse_address("127.0.0.1:8086")->port == "8086");
    CHECK(parse_address("[::1]:80")->host == "::1");
    for (const char* bad : {"", "8086", ":8086", "host:", "host:99999", "host:80x"}) CHECK_FALSE(parse_address(bad));
    CHECK(looks_like_address("box:8086"));
    CHECK_FALSE(looks_like_address("runs/a:1"));
    CHECK_FALSE(looks_like_address("trace.omtrace"));
}

TEST_CASE("serve: a finished run arrives whole, evidence included") {
    test::TempDir dir;
    testing::SyntheticRun run;
    run.killed_by_host = true;
    testing::write_synthetic_trace(dir.file("a.omtrace"), run);
    const auto server = serve_file(dir.file("a.omtrace"));
    const auto viewer = connect_to(*server);
    const Counted sent = count(dir.file("a.omtrace"));
    CHECK(exchange(*server, *viewer, [&] {
        const Counted got = count(viewer->path());
        return got.records == sent.records && got.samples == sent.samples && got.wall == sent.wall;
    }));
    CHECK(server->samples_dropped() == 0);
    CHECK(viewer->problem().empty());
}

TEST_CASE("serve: what is written while somebody looks arrives too") {
    test::TempDir dir;
    REQUIRE(trace::create_trace_file(dir.file("a.omtrace")));
    auto writer = trace::Writer::open(dir.file("a.omtrace"));
    REQUIRE(writer);
    (*writer)->append_text(trace::RecordType::run_info, 0, "{}");
    const auto server = serve_file(dir.file("a.omtrace"));
    const auto viewer = connect_to(*server);
    CHECK(exchange(*server, *viewer, [&] { return count(viewer->path()).records == 1; }));
    (*writer)->append(trace::RecordType::phase, 7, trace::PhaseRecord{trace::Phase::serving, {}});
    CHECK(exchange(*server, *viewer, [&] { return count(viewer->path()).records == 2; }));
}

TEST_CASE("serve: a viewer that does not read loses samples and not one event") {
    test::TempDir dir;
    REQUIRE(trace::create_trace_file(dir.file("a.omtrace")));
    auto writer = trace::Writer::open(dir.file("a.omtrace"));
    REQUIRE(writer);
    (*writer)->append_text(trace::RecordType::run_info, 0, "{}");
    const auto server = serve_file(dir.file("a.omtrace"));
    const auto viewer = connect_to(*server);
    // 40,000 samples are three times what the server lets it fall behind.
    std::size_t events = 0;
    for (i64 t = 1; t <= 40'000; ++t) {
        (*writer)->append(trace::RecordType::sample, t, trace::SampleRecord{});
        if (t % 100 == 0) {
            (*writer)->append(trace::RecordType::request, t, trace::RequestRecord{});
            ++events;
        }
    }
    CHECK(exchange(*server, *viewer, [&] { return count(viewer->path()).requests == events && !viewer->problem().empty(); }));
    const Counted got = count(viewer->path());
    CHECK(got.samples < 40'000);
    CHECK(server->samples_dropped() == 40'000 - got.samples);
    CHECK(viewer->problem().find("events are complete") != std::string::npos);
}

TEST_CASE("serve: after a break the viewer asks only for what it lacks") {
    test::TempDir dir;
    testing::write_synthetic_trace(dir.file("a.omtrace"), {});
    auto server = serve_file(dir.file("a.omtrace"));
    const std::string port = std::to_string(server->port());
    const auto viewer = connect_to(*server);
    const std::size_t all = count(dir.file("a.omtrace")).records;
    CHECK(exchange(*server, *viewer, [&] { return count(viewer->path()).records == all; }));
    const std::string path = viewer->path();
    server.reset();
    viewer->poll(20);
    CHECK(viewer->problem().find("reconnecting") != std::string::npos);
    auto again = Server::open(dir.file("a.omtrace"), {"127.0.0.1", port});
    REQUIRE(again);
    std::atomic<bool> done = false;
    std::thread other([&] {
        for (int i = 0; i < 50; ++i) viewer->poll(30 + i);
        done = true;
    });
    while (!done) (*again)->turn(5);
    other.join();
    CHECK(viewer->path() == path);
    CHECK(count(viewer->path()).records == all);
}

TEST_CASE("serve: a stranger's bytes end the conversation and nothing else") {
    test::TempDir dir;
    testing::write_synthetic_trace(dir.file("a.omtrace"), {});
    const auto server = serve_file(dir.file("a.omtrace"));
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(server->port()));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
    const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: everything\r\n\r\n";
    REQUIRE(::send(fd, text, sizeof(text), MSG_NOSIGNAL) == sizeof(text));
    for (int i = 0; i < 500 && (i < 3 || server->viewers() > 0); ++i) server->turn(2);
    CHECK(server->viewers() == 0);
    ::close(fd);
    CHECK(connect_to(*server) != nullptr);
}

TEST_CASE("view: nobody there, and something else there, are told apart") {
    const auto nobody = Viewer::connect({"127.0.0.1", "1"});
    REQUIRE_FALSE(nobody);
    CHECK(nobody.error().message.find("nobody listens") != std::string::npos);
}
