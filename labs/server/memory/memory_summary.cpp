#include <fmt/format.h>

#include "labs/server/memory/caching_allocator.hpp"

namespace oomlab {
namespace {

constexpr int kWidth = 75;  // between the bars

enum class Unit { bytes, count };

struct Row {
    const char* name;
    PoolStat AllocatorStats::*stat;
    Unit unit;
};

constexpr Row kRows[] = {
    {"Allocated memory", &AllocatorStats::allocated_bytes, Unit::bytes},
    {"Active memory", &AllocatorStats::active_bytes, Unit::bytes},
    {"Requested memory", &AllocatorStats::requested_bytes, Unit::bytes},
    {"GPU reserved memory", &AllocatorStats::reserved_bytes, Unit::bytes},
    {"Non-releasable memory", &AllocatorStats::inactive_split_bytes, Unit::bytes},
    {"Allocations", &AllocatorStats::allocation, Unit::count},
    {"Active allocs", &AllocatorStats::active, Unit::count},
    {"GPU reserved segments", &AllocatorStats::segment, Unit::count},
    {"Non-releasable allocs", &AllocatorStats::inactive_split, Unit::count},
};

// The unit is chosen by `scale`, the figure of all pools, so that the rows below share it.
std::string cell(Unit unit, i64 value, i64 scale) {
    static constexpr const char* kBytes[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static constexpr const char* kCounts[] = {" ", "K", "M"};
    const bool bytes = unit == Unit::bytes;
    const i64 step = bytes ? 1024 : 1000;
    const i64 border = bytes ? 768 * 1024 : 750 * 1000;
    const std::size_t last = bytes ? std::size(kBytes) - 1 : std::size(kCounts) - 1;
    std::size_t prefix = 0;
    while (prefix < last && scale >= border) {
        ++prefix;
        value /= step;
        scale /= step;
    }
    return bytes ? fmt::format("{:6d} {}", value, kBytes[prefix])
                 : fmt::format("{:7d} {} ", value, kCounts[prefix]);
}

std::string row(const char* name, Unit unit, const Stat& stat, const Stat& scale) {
    return fmt::format(" {:<21} | {} | {} | {} | {} ", name,
                       cell(unit, stat.current, scale.current), cell(unit, stat.peak, scale.peak),
                       cell(unit, stat.allocated, scale.allocated),
                       cell(unit, stat.freed, scale.freed));
}

}  // namespace

std::string memory_summary(const AllocatorStats& stats, int device_index) {
    std::string text;
    const auto line = [&](const std::string& inner) { text += "|" + inner + "|\n"; };
    const std::string thick(kWidth, '='), thin(kWidth, '-');
    line(thick);
    line(fmt::format(" {:16} PyTorch CUDA memory summary, device ID {:<17d} ", "", device_index));
    line(thin);
    line(fmt::format("  {:9} CUDA OOMs: {:<12d} | {:6} cudaMalloc retries: {:<8d}  ", "",
                     stats.num_ooms, "", stats.num_alloc_retries));
    line(thick);
    line("        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ");
    for (const Row& r : kRows) {
        const PoolStat& stat = stats.*r.stat;
        const Stat& all = stat[kStatAll];
        line(thin);
        line(row(r.name, r.unit, all, all));
        line(row("      from large pool", r.unit, stat[kStatLarge], all));
        line(row("      from small pool", r.unit, stat[kStatSmall], all));
    }
    line(thin);
    line(row("Oversize allocations", Unit::count, stats.oversize_allocations,
             stats.oversize_allocations));
    line(thin);
    line(row("Oversize GPU segments", Unit::count, stats.oversize_segments,
             stats.oversize_segments));
    line(thick);
    return text;
}

}  // namespace oomlab
