// What a terminal shows of a running server: figures in, lines out. No terminal, no files, no clock,
// so that a test can read the picture.
//
//   W weights  K kv in use  k kv pool, empty  A activations  c cached  . free   (letters always;
//   colour comes on top where there is any)
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::term {

struct Frame {
    std::string name, device;            // the scenario's name, the chip's
    bool simulated = true;
    trace::Phase phase = trace::Phase::start;
    double at_s = 0, times = 0;          // the device's clock; its speed against the wall, 0: unknown
    u64 total_bytes = 0;
    std::array<u64, kOwners> owner_bytes{};
    u64 used_bytes = 0, kv_used = 0, kv_total = 0;
    u64 running = 0, waiting = 0, received = 0, completed = 0, rejected = 0, preempted = 0, failed = 0;
    u64 host_bytes = 0, host_limit_bytes = 0;
    std::string note;                    // the last warning or error; may be empty
};

struct Style {
    std::size_t width = 80;
    bool colour = false, utf8 = false;
};

char owner_letter(Owner owner);
// The bar alone: exactly `cells` letters, every byte somewhere, no owner that holds a cell's worth lost.
std::string memory_bar(const Frame& frame, std::size_t cells);
// The whole picture, a line each, none wider than the style says.
std::vector<std::string> draw(const Frame& frame, const Style& style);
// One line of the same for a log.
std::string plain_line(const Frame& frame);

}  // namespace oomlab::term
