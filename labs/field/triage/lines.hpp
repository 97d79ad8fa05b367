// From the bytes of a log, in pieces of any size, to the few lines that may matter.
//
// Colours are removed, UTF-16 (a log redirected by PowerShell) is read, carriage returns and the
// `\n` inside a container runtime's JSON split a line into parts that keep its number. Memory is
// bounded: a line without an end is looked at through a window. Line numbers count '\n' in the
// input, from 1.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "labs/field/triage/literal_set.hpp"

namespace oomlab::triage {

// A line, or a part of one, in which some literal stands.
struct CandidateLine {
    std::string_view text;     // clean: no colours, no JSON escapes, no line end
    std::string_view body;     // text without a container runtime's prefix
    std::uint64_t number = 0;  // in its file
    std::string_view
        lookahead;  // up to kLookahead bytes that follow, for messages of several lines
};

class LineScanner {
  public:
    static constexpr std::size_t kLookahead = 2048;
    static constexpr std::size_t kBlock = 256 * 1024;
    static constexpr std::size_t kLineMax = 16 * 1024;

    using Sink = std::function<void(const CandidateLine&)>;
    // Borrows `literals`.
    LineScanner(const LiteralSet& literals, Sink sink);

    void begin();
    void feed(std::string_view chunk);
    void end();

    std::uint64_t lines() const { return line_ - 1 + (open_line_ ? 1 : 0); }
    std::uint64_t bytes() const { return bytes_; }
    // Control bytes that no log has: the input is not text.
    bool looks_binary() const { return bytes_ > 64 && nul_bytes_ * 20 > bytes_ && !utf16_; }

  private:
    void decode(std::string_view chunk);
    void strip_colours(std::string_view chunk);
    void process(bool final);
    void scan(std::string_view text, std::string_view after);
    void emit(std::string_view line, std::string_view lookahead);
    void emit_part(std::string_view part, std::string_view lookahead);

    const LiteralSet& literals_;
    Sink sink_;
    std::string buffer_;
    std::string scratch_;
    std::uint64_t line_ = 1;
    std::uint64_t bytes_ = 0;
    std::uint64_t nul_bytes_ = 0;
    bool open_line_ = false;
    bool first_ = true;
    bool utf16_ = false;
    bool utf16_big_ = false;
    int half_ = -1;  // first byte of a UTF-16 unit whose second has not come
    enum class Escape { none, seen, csi, osc, osc_escape } escape_ = Escape::none;
};

// Colours out, `\"`, `\n`, `\t`, `\uXXXX` of a JSON string resolved. For a line of a runtime's
// JSON.
std::string unescape_json_line(std::string_view line);

// Behind a runtime's prefix: Docker's {"log":", the CRI's time and stream, compose's service and
// bar, a rank's bracket.
std::string_view without_prefix(std::string_view line);

// For showing: one line, no control characters (C0, C1, DEL, bidirectional marks), valid UTF-8,
// at most `max_bytes` bytes.
std::string printable(std::string_view text, std::size_t max_bytes);

}  // namespace oomlab::triage
