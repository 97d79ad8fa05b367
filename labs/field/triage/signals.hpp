// What a line of a log can say, and the patterns that recognise it.
//
// A signal is one statement ("a graph is being captured", "the kernel killed a process"). A row of
// the table gives a signal a short literal, looked for in every byte, and a regular expression
// (RE2, linear time) tried only on lines where the literal stands. The formats are the engines'
// own; nothing here knows a particular log. Up to six groups of an expression become fields.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace oomlab::triage {

enum class Signal : std::uint16_t {
#define SIGNAL(name, why) name,
#include "labs/field/triage/signals.inc"
#undef SIGNAL
    count_
};
inline constexpr std::size_t kSignals = static_cast<std::size_t>(Signal::count_);

struct SignalRow {
    Signal signal;
    std::string_view literal;  // 4 bytes or more, any case
    const char* expression;    // "" when the literal says it all; matched without regard to case
};

std::string_view name(Signal signal);
// What a line with this signal means, for a person; "" when it only sets the scene.
std::string_view why(Signal signal);

std::span<const SignalRow> signal_rows();

}  // namespace oomlab::triage
