// The report for people and for programs.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "labs/field/triage/causes.hpp"
#include "labs/field/triage/lines.hpp"
#include "labs/field/triage/triage.hpp"

namespace oomlab::triage {
namespace {

using nlohmann::json;

json to_json_value(const Evidence& e) {
    return {{"file", printable(e.file, 400)}, {"line", e.line}, {"text", e.text}, {"why", e.why}};
}

void list(std::string& out, std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    out += fmt::format("\n{}\n", title);
    for (const auto& line : lines) out += fmt::format("  {}\n", line);
}

}  // namespace

std::string to_text(const Report& r) {
    std::string out;
    if (r.type) {
        out += fmt::format("type   {}, {}\ncause  {}: {}\nphase  {}\nsure?  {} ({:.2f})\n", *r.type,
                           type_name(*r.type), r.cause, r.meaning, r.phase, r.confidence_word,
                           r.confidence);
    } else {
        out += "not enough evidence to name a type\n";
        if (!r.candidates.empty())
            out += fmt::format("nearest {} (type {}, {:.2f}): too little to say so\n",
                               r.candidates.front().cause, r.candidates.front().type,
                               r.candidates.front().confidence);
    }
    if (!r.evidence.empty()) {
        out += "\nEvidence\n";
        for (const Evidence& e : r.evidence) {
            out += fmt::format("  {}:{}: {}\n", printable(e.file, 200), e.line, e.text);
            if (!e.why.empty()) out += fmt::format("      {}\n", e.why);
        }
    }
    list(out, "What the numbers say", r.figures);
    list(out, "What does not fit", r.contradicts);
    if (!r.ruled_out.empty()) {
        out += "\nRuled out\n";
        for (const RuledOut& x : r.ruled_out) {
            out += fmt::format("  {} (type {}): {}", x.cause, x.type, x.why);
            if (x.evidence)
                out += fmt::format(" [{}:{}]", printable(x.evidence->file, 200), x.evidence->line);
            out += '\n';
        }
    }
    if (!r.actions.empty()) {
        out += "\nWhat to do\n";
        for (const Action& a : r.actions) out += fmt::format("  {:<9} {}\n", a.when, a.what);
    }
    list(out, r.type ? "What would make it surer" : "What would decide it", r.ask_for);
    return out;
}

std::string to_json(const Report& r) {
    json j;
    j["type"] = r.type ? json(*r.type) : json(nullptr);
    j["cause"] = r.type ? json(r.cause) : json(nullptr);
    j["meaning"] = r.meaning;
    j["confidence"] = r.confidence;
    j["confidence_word"] = r.confidence_word;
    j["phase"] = r.phase;
    for (const char* key :
         {"evidence", "figures", "contradicts", "ruled_out", "actions", "ask_for", "candidates"})
        j[key] = json::array();
    for (const Evidence& e : r.evidence) j["evidence"].push_back(to_json_value(e));
    for (const auto& s : r.figures) j["figures"].push_back(s);
    for (const auto& s : r.contradicts) j["contradicts"].push_back(s);
    for (const RuledOut& x : r.ruled_out) {
        json o{{"type", x.type}, {"cause", x.cause}, {"why", x.why}};
        if (x.evidence) o["evidence"] = to_json_value(*x.evidence);
        j["ruled_out"].push_back(std::move(o));
    }
    for (const Action& a : r.actions) j["actions"].push_back({{"when", a.when}, {"what", a.what}});
    for (const auto& s : r.ask_for) j["ask_for"].push_back(s);
    for (const Candidate& x : r.candidates)
        j["candidates"].push_back(
            {{"type", x.type}, {"cause", x.cause}, {"confidence", x.confidence}});
    j["lines"] = r.lines;
    j["bytes"] = r.bytes;
    return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace oomlab::triage
