// `oomlab triage`: from a stranger's logs to the type of failure, its cause, the lines that prove
// it, what speaks against it, what to do, and what to ask for when the evidence is not enough.
//
// Deterministic, offline, bounded memory. Input is data: nothing of it is executed or believed
// beyond its format. One Session reads all files of one incident; their evidence is merged.
// Not thread safe; sessions are independent of one another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace oomlab::triage {

struct Evidence {
    std::string file;
    std::uint64_t line = 0;
    std::string text;  // printable, cut
    std::string why;
};

struct RuledOut {
    int type = 0;
    std::string cause;
    std::string why;
    std::optional<Evidence> evidence;
};

struct Action {
    std::string when;  // "now", "soon", "for good"
    std::string what;
};

struct Candidate {
    int type = 0;
    std::string cause;
    double confidence = 0;
};

struct Report {
    std::optional<int> type;  // absent: not enough evidence
    std::string cause;        // "" then
    std::string meaning;
    double confidence = 0;  // 0 … 1
    std::string confidence_word;
    std::string phase;  // "start", "serving" or "unknown"
    std::vector<Evidence> evidence;
    std::vector<std::string> figures;      // what the numbers mean, and the check of their sum
    std::vector<std::string> contradicts;  // what does not go with the verdict
    std::vector<RuledOut> ruled_out;
    std::vector<Action> actions;
    std::vector<std::string> ask_for;
    std::vector<Candidate> candidates;  // the best first, the verdict included
    std::uint64_t lines = 0, bytes = 0;
};

class Session {
  public:
    Session();
    ~Session();
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;

    void begin_file(std::string name);
    void feed(std::string_view chunk);
    // On failure: the file is not text (it says what it looks like); what was read is kept.
    Result<void> end_file();
    Report report() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// Reads files ("-" is standard input). Error::io when one cannot be read, Error::parse when one is
// not text.
Result<Report> triage_files(const std::vector<std::string>& paths);
Report triage_text(std::string_view text, std::string name = "log");

std::string to_text(const Report& report);
std::string to_json(const Report& report);

}  // namespace oomlab::triage
