// A supervisor in a process of its own, to be killed by a test:
//   test_supervise_once VICTIM TRACE LIMIT_MIB WHAT...
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "labs/supervisor/supervise.hpp"

using namespace oomlab;

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    supervisor::Options options;
    options.program = argv[1];
    options.trace_path = argv[2];
    options.trace_sizes = {256 * kKiB, 256 * kKiB};
    options.temporary_trace = true;
    options.temporary_folder = std::filesystem::path(argv[2]).parent_path().string();
    options.may_reexec = true;
    const u64 mib = std::strtoull(argv[3], nullptr, 10);
    if (mib > 0) options.host_memory_limit_bytes = mib * kMiB;
    options.args = {argv[2]};
    for (int i = 4; i < argc; ++i) options.args.emplace_back(argv[i]);
    const auto evidence = supervisor::supervise(options);
    if (!evidence) {
        std::fprintf(stderr, "%s\n", evidence.error().message.c_str());
        return exit_code(evidence.error());
    }
    std::puts(supervisor::to_json(*evidence).c_str());
    return evidence->exit_status;
}
