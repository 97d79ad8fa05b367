// The promise of the black box: what append() returned from is readable after SIGKILL, whenever it
// strikes. A child appends records of random sizes and acknowledges them through a pipe; it is killed
// at an instant drawn uniformly over the time that it writes; every acknowledged record must be there.
// One acknowledgement stands for eight records, so that most of the time is spent writing records.
#include <doctest/doctest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "kernels/base/prng.hpp"
#include "tests/trace/support.hpp"

using namespace oomlab;
using namespace oomlab::trace;
using namespace oomlab::trace::test;
using oomlab::test::TempDir;

namespace {
constexpr int kKills = 1000;
constexpr i64 kWindowNs = 500'000;
constexpr u64 kRecordsPerAck = 8;

i64 monotonic_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// Record number n, the same in the child and in the check: a piece of one long text.
std::string_view payload(u64 n) {
    static const std::string text = [] {
        Prng prng(1);
        std::string t(16384, ' ');
        for (char& c : t) c = static_cast<char>('!' + prng.below(90));
        return t;
    }();
    return std::string_view(text).substr(n * 31 % 8192, n * 97 % 8192);
}

[[noreturn]] void child_writes(const std::string& path, int acknowledge) {
    auto writer = Writer::open(path);
    if (!writer || payload(0).data() == nullptr) ::_exit(1);
    for (u64 n = 1;; ++n) {
        RingOp op{};
        op.address = n;
        (*writer)->ring(op);
        if (!(*writer)->append_text(RecordType::action, static_cast<i64>(n), payload(n))) ::pause();
        if (n % kRecordsPerAck == 0 && ::write(acknowledge, &n, sizeof(n)) != sizeof(n)) ::_exit(3);
    }
}

// Writer and killer on different processors, so that the signal interrupts records and not only
// system calls. With one processor the test is as true, only less sharp.
void stay_on_processor(int number) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(number), &set);
    ::sched_setaffinity(0, sizeof(set), &set);
}

struct Tally {
    int killed = 0, lost = 0, wrong = 0, damaged = 0, ring_lost = 0, in_progress = 0;
    u64 records = 0;
};

// Reads acknowledgements until `deadline`, or until the pipe ends. Returns the last one.
u64 read_acknowledged(int fd, i64 deadline_ns, u64 last) {
    u64 numbers[512];
    for (;;) {
        const i64 left = deadline_ns - monotonic_ns();
        if (left <= 0) return last;
        const timespec wait{left / 1'000'000'000, left % 1'000'000'000};
        pollfd p{fd, POLLIN, 0};
        if (::ppoll(&p, 1, &wait, nullptr) <= 0) continue;
        const ssize_t n = ::read(fd, numbers, sizeof(numbers));
        if (n <= 0) return last;
        last = numbers[n / static_cast<ssize_t>(sizeof(u64)) - 1];
    }
}

void check_one(const std::string& path, u64 acknowledged, Tally& tally) {
    auto reader = open_reader(path);
    u64 seen = 0;
    reader->poll([&](const RecordView& r) {
        ++seen;
        if (r.seq != seen || r.text() != payload(seen)) ++tally.wrong;
    });
    tally.records += seen;
    if (seen < acknowledged) ++tally.lost;
    if (seen > acknowledged + kRecordsPerAck) ++tally.wrong;
    if (!reader->damage().empty()) ++tally.damaged;
    const auto ops = reader->ring();
    if (acknowledged > 0 && (ops.empty() || ops.back().address < acknowledged)) ++tally.ring_lost;
    // Bytes behind the end: the kill struck in the middle of a record.
    std::array<char, 64> bytes{};
    std::ifstream in(path, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(4096 + reader->bytes_read()));
    in.read(bytes.data(), bytes.size());
    if (std::string_view(bytes.data(), 64).find_first_not_of('\0') != std::string_view::npos) {
        ++tally.in_progress;
    }
}

Tally kill_many(const std::filesystem::path& parent, u64 seed) {
    const TempDir dir(parent);
    const std::string path = dir.file("killed.trace");
    Prng prng(seed);
    Tally tally;
    cpu_set_t all;
    ::sched_getaffinity(0, sizeof(all), &all);
    stay_on_processor(1);
    for (int round = 0; round < kKills; ++round) {
        REQUIRE(create_trace_file(path, {4 * kMiB, 16 * kKiB}).has_value());
        int fds[2];
        REQUIRE(::pipe(fds) == 0);
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            ::close(fds[0]);
            stay_on_processor(0);
            child_writes(path, fds[1]);
        }
        ::close(fds[1]);
        u64 last = 0;
        if (::read(fds[0], &last, sizeof(last)) != sizeof(last)) last = 0;
        const i64 deadline = monotonic_ns() + static_cast<i64>(prng.below(kWindowNs));
        last = read_acknowledged(fds[0], deadline, last);
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        last = read_acknowledged(fds[0], INT64_MAX, last);
        ::close(fds[0]);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++tally.killed;
        check_one(path, last, tally);
    }
    ::sched_setaffinity(0, sizeof(all), &all);
    return tally;
}

void judge(const std::filesystem::path& parent, u64 seed) {
    const Tally t = kill_many(parent, seed);
    MESSAGE(parent.string() << ": " << t.killed << " kills, " << t.records << " records, "
                            << t.in_progress << " struck within a record, lost " << t.lost);
    CHECK(t.killed == kKills);
    CHECK(t.lost == 0);
    CHECK(t.wrong == 0);
    CHECK(t.damaged == 0);
    CHECK(t.ring_lost == 0);
}
}  // namespace

TEST_CASE("kill: 1000 SIGKILLs at random instants lose no acknowledged record, on disk") {
    judge(std::filesystem::temp_directory_path(), 20240601);
}

TEST_CASE("kill: 1000 SIGKILLs at random instants lose no acknowledged record, in /dev/shm") {
    if (!std::filesystem::is_directory("/dev/shm")) {
        MESSAGE("skipped: this machine has no /dev/shm");
        return;
    }
    judge("/dev/shm", 20240602);
}
