#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "labs/supervisor/supervise.hpp"
#include "labs/trace/reader.hpp"
#include "tests/support/temp_dir.hpp"

namespace oomlab::supervisor::test {

inline Options victim(const std::string& trace, std::vector<std::string> what) {
    Options options;
    options.program = OOMLAB_TEST_VICTIM;
    options.trace_path = trace;
    options.trace_sizes = {256 * kKiB, 256 * kKiB};
    options.args = {trace};
    options.args.insert(options.args.end(), what.begin(), what.end());
    return options;
}

inline Evidence must_supervise(const Options& options, const OnPoll& on_poll = {}) {
    auto evidence = supervise(options, on_poll);
    if (!evidence) FAIL(evidence.error().message);
    return std::move(*evidence);
}

// The victim has written "ready" to its trace.
inline bool is_ready(const std::string& path) {
    bool ready = false;
    if (const auto reader = trace::Reader::open(path)) {
        (*reader)->poll([&](const trace::RecordView& r) { ready = ready || r.text() == "ready"; });
    }
    return ready;
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Why no cgroup can be had here; empty: one can. Tests that need one say this and return.
inline std::string no_cgroup_reason() {
    std::string why;
    for (const auto& way : probe_ways()) {
        if (way.name == "systemd scope") continue;
        if (way.usable) return {};
        why += way.name + ": " + way.reason + "; ";
    }
    return why;
}

}  // namespace oomlab::supervisor::test
