// Writes a synthetic trace for looking at: make_trace FILE [oom|leak|kill|recover|hour|blocks]
#include <cstdio>
#include <cstring>

#include "tests/support/synthetic_trace.hpp"

int main(int argc, char** argv) {
    using oomlab::kMiB;
    if (argc < 2) {
        std::fputs("make_trace FILE [oom|leak|kill|recover|hour|blocks]\n", stderr);
        return 2;
    }
    oomlab::testing::SyntheticRun run;
    const char* kind = argc > 2 ? argv[2] : "oom";
    if (std::strcmp(kind, "leak") == 0) {
        run.leaks = true;
        run.ends_in_oom = false;
        run.seconds = 900;
    } else if (std::strcmp(kind, "kill") == 0) {
        run.ends_in_oom = false;
        run.killed_by_host = true;
    } else if (std::strcmp(kind, "recover") == 0) {
        run.recovers = true;
    } else if (std::strcmp(kind, "hour") == 0) {
        run.seconds = 3600;
        run.requests = 255'000;
        run.virtual_log_bytes = 256 * kMiB;
    } else if (std::strcmp(kind, "blocks") == 0) {
        run.map_blocks = 100'000;
        run.virtual_log_bytes = 256 * kMiB;
    }
    oomlab::testing::write_synthetic_trace(argv[1], run);
    return 0;
}
