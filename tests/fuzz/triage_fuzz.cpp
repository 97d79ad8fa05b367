// Any bytes are a log: no crash, no hang, nothing unprintable in a report, and the same report
// whatever the pieces.
//
//   fuzz_triage -max_total_time=60 -max_len=65536 tests/field/corpus
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "labs/field/triage/triage.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto report = oomlab::triage::triage_text(text);
    const std::string shown = oomlab::triage::to_text(report);
    for (const char c : shown)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    const std::string json = oomlab::triage::to_json(report);
    oomlab::triage::Session session;
    session.begin_file("log");
    for (std::size_t at = 0; at < size; at += 3) session.feed(text.substr(at, 3));
    (void)session.end_file().has_value();
    if (oomlab::triage::to_json(session.report()) != json) std::abort();
    return 0;
}
