// Facts: what was found in the logs, with file and line. The decision sees only this, never a log.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "labs/field/triage/signals.hpp"

namespace oomlab::triage {

enum class Phase : std::uint8_t { unknown, start, serving };
std::string_view name(Phase phase);

struct Place {
    std::uint32_t file = 0;
    std::uint64_t line = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
};

// Frames of a traceback that were seen shortly before a failure, by their lines. Near is counted in
// lines that say something, not in lines: millions of others may stand between.
struct Frames {
    static constexpr std::uint64_t kNear = 320;  // eight ranks' tracebacks, interleaved
    std::array<std::uint64_t, 16> line{};        // 0: not near
};
bool is_frame(Signal signal);

struct Fact {
    Signal signal = Signal::count_;
    Place place;
    Phase phase = Phase::unknown;  // of the file, when the line came
    std::string text;              // cut to kTextMax
    std::array<std::string, 6> fields;
    static constexpr std::size_t kTextMax = 1600;
    double number(std::size_t field) const;  // 0 when absent; thousands separators are read
};

// Whether the text says `what`, in any case.
bool mentions(std::string_view text, std::string_view what);
inline bool mentions(const Fact& fact, std::string_view what) {
    return mentions(fact.text, what);
}
inline bool mentions(const Fact* fact, std::string_view what) {
    return fact != nullptr && mentions(fact->text, what);
}

// Bytes of "594.00 MiB", "6Gi", "12 bytes", "80GB"; engines' GB is read as GiB, which is what
// nearly all of them mean. Nullopt when it is no size.
std::optional<double> size_bytes(std::string_view text);

// The figures of a PyTorch out-of-memory message, any form since 0.4; absent ones are nullopt.
struct TorchOom {
    Place place;
    Phase phase = Phase::unknown;
    Frames frames;
    std::string text;
    int form = -1;  // V0 … V11 of the message's history
    std::optional<double> asked, total, free, allocated, unallocated, private_pools, allowed,
        this_process;
    std::vector<double> processes;  // "Process N has M memory in use"
    bool above_1eb = false;
    bool preemptive = false;  // refused by the fraction before it was tried

    // Memory on the card that is not this process's, as far as the message tells.
    std::optional<double> others() const;
};
// Reads the message in `line`, which may go on in `lookahead` (wrapped, or one figure a line).
TorchOom parse_torch_oom(std::string_view line, std::string_view lookahead);

// A figure sampled over time.
struct Series {
    enum class Kind { host, device, allocated, reserved, other };
    Kind kind = Kind::other;
    std::string key;
    std::uint32_t file = 0;
    std::uint64_t samples = 0;
    double lowest = 0, highest = 0, last = 0;
    // The longest stretch that hardly ever falls.
    struct Run {
        double first = 0, last = 0;
        std::uint64_t samples = 0;
        std::vector<std::uint64_t> lines;  // at most 8: the first ones and the last
    } run, best;

    bool rising() const;
    bool flat() const;
};

class SeriesBook {
  public:
    // One line; `below` is what follows, for a table whose heading this may be.
    void read(std::string_view line, std::string_view below, Place place);
    void add(Series::Kind kind, std::string key, double bytes, Place place);
    const std::vector<Series>& all() const { return series_; }
    const Series* rising(Series::Kind kind) const;
    bool flat(Series::Kind kind) const;
    // A line's text, for evidence.
    std::string_view text(Place place) const;

  private:
    bool read_pairs(std::string_view line, Place place);
    bool read_chain(std::string_view line, Place place);
    bool read_table(std::string_view heading, std::string_view below, Place place);
    bool read_alike(std::string_view line, Place place);
    void keep(Place place, std::string_view line);

    static constexpr std::size_t kSeriesMax = 128;
    static constexpr std::size_t kTextsMax = 512;
    std::uint64_t reads_ = 0;
    std::vector<Series> series_;
    std::deque<std::pair<Place, std::string>> texts_;
};

// The scheduler's counters, read from lines that come every few seconds for days.
struct Counters {
    std::uint64_t full = 0;          // usage of 95 % or more
    std::uint64_t full_waiting = 0;  // … and requests waiting
    std::uint64_t standing = 0;      // nothing runs, something waits, the pool is empty
    std::uint64_t standing_run = 0, standing_run_best = 0;
    std::uint64_t frozen = 0;  // full, and no token comes
    double usage_max = 0;
    std::optional<Fact> first_full, last_full, first_standing, last_standing, first_frozen;
};

// Everything that was found. Bounded: of a signal, the first and the last kKeep facts are kept.
class Facts {
  public:
    static constexpr std::size_t kKeep = 24;
    struct Shelf {
        std::vector<Fact> first;
        std::deque<Fact> last;
        std::uint64_t count = 0;
    };

    void add(Fact fact);
    bool has(Signal s) const { return shelf(s).count != 0; }
    std::uint64_t count(Signal s) const { return shelf(s).count; }
    const Fact* first(Signal s) const { return has(s) ? &shelf(s).first.front() : nullptr; }
    const Fact* last(Signal s) const;
    // The first of them in order of file and line.
    const Fact* first_of(std::initializer_list<Signal> signals) const;
    // The last fact of `s` before `place` in the same file.
    const Fact* before(Signal s, Place place) const;
    const Fact* after(Signal s, Place place) const;
    template <class F>
    const Fact* find(Signal s, F&& good) const {
        for (const Fact& f : shelf(s).first)
            if (good(f)) return &f;
        for (const Fact& f : shelf(s).last)
            if (good(f)) return &f;
        return nullptr;
    }

    std::vector<TorchOom> torch;  // the first kKeep
    std::uint64_t torch_count = 0;
    SeriesBook series;
    Counters counters;
    std::vector<std::string> file_names;
    std::vector<std::pair<Place, Frames>>
        device_frames;  // of device_oom, ggml_oom, …: the first kKeep

    const Shelf& shelf(Signal s) const { return shelves_[static_cast<std::size_t>(s)]; }
    Shelf& shelf(Signal s) { return shelves_[static_cast<std::size_t>(s)]; }

  private:
    std::vector<Shelf> shelves_ = std::vector<Shelf>(kSignals);
};

// Position of a frame signal in Frames.
std::size_t frame_slot(Signal signal);
inline bool near_frame(const Frames& frames, Signal signal) {
    return frames.line[frame_slot(signal)] != 0;
}

}  // namespace oomlab::triage
