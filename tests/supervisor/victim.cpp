// A stand-in for a server in the supervisor's tests: does one thing, named on its command line, and
// writes a trace like one.   test_victim TRACE exit N | raise N | fail KIND TEXT | eat MIB [hang] | hang |
//                            stubborn | print TEXT N | leave | graceful | control
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "labs/trace/writer.hpp"

using namespace oomlab;
using namespace oomlab::trace;

namespace {
volatile std::sig_atomic_t g_stop = 0;

[[noreturn]] void hang() {
    for (;;) ::pause();
}

// From here on a signal finds this process as it means to be.
void say_ready(Writer& writer) { writer.append_text(RecordType::log, 1, "ready"); }

// Touches memory in blocks of 1 MiB and says so after each, like the host lab's loader.
int eat(Writer& writer, u64 mib) {
    const std::size_t bytes = mib * kMiB;
    auto* at = static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (at == MAP_FAILED) return 4;
    for (u64 block = 0; block < mib; ++block) {
        for (std::size_t page = 0; page < kMiB; page += 4096) at[block * kMiB + page] = 1;
        writer.append_text(RecordType::action, static_cast<i64>(block),
                           "block " + std::to_string(block + 1));
    }
    return 0;
}
}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string what = argv[2], value = argc > 3 ? argv[3] : "";
    auto opened = Writer::open(argv[1]);
    if (!opened) {
        std::fprintf(stderr, "%s\n", opened.error().message.c_str());
        return 3;
    }
    Writer& writer = **opened;
    writer.append(RecordType::phase, 0, PhaseRecord{Phase::host_load});
    if (what == "exit") return std::atoi(value.c_str());
    if (what == "raise") {
        std::raise(std::atoi(value.c_str()));
        return 0;
    }
    if (what == "fail") {
        FailureRecord record{};
        record.kind = static_cast<FailureKind>(std::atoi(value.c_str()));
        record.phase = Phase::serving;
        writer.append(RecordType::failure, 1, record, argc > 4 ? argv[4] : "");
        return 1;
    }
    if (what == "eat") {
        const int status = eat(writer, std::strtoull(value.c_str(), nullptr, 10));
        if (argc > 4) hang();
        return status;
    }
    if (what == "hang") hang();
    if (what == "stubborn") {
        ::signal(SIGTERM, SIG_IGN);
        say_ready(writer);
        hang();
    }
    if (what == "print") {
        std::fprintf(stderr, "first line\n%s: %s\n", argv[0], value.c_str());
        return argc > 4 ? std::atoi(argv[4]) : 0;
    }
    if (what == "leave") {   // a child of the server that outlives it
        const pid_t left = ::fork();
        if (left == 0) hang();
        writer.append_text(RecordType::action, 1, std::to_string(left));
        return 0;
    }
    if (what == "graceful") {
        ::signal(SIGTERM, [](int) { g_stop = 1; });
        say_ready(writer);
        while (g_stop == 0) ::usleep(200);
        writer.append(RecordType::finish, 2, FinishRecord{});
        return 0;
    }
    if (what == "control") {
        ::signal(SIGTERM, SIG_IGN);
        say_ready(writer);
        std::string heard;
        char buffer[64];
        while (heard.find("stop") == std::string::npos) {
            const ssize_t n = ::read(3, buffer, sizeof(buffer));
            if (n <= 0) return 6;
            heard.append(buffer, static_cast<std::size_t>(n));
        }
        writer.append_text(RecordType::action, 3, heard);
        return 0;
    }
    return 2;
}
