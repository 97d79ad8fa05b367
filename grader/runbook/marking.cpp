#include "grader/runbook/marking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace oomlab::grader {
namespace {

// A page that lacks these is no runbook, however well the rest reads.
constexpr std::string_view kCore[] = {"shed_load", "capture", "classify", "host"};
constexpr double kNoProcedure = 18;
constexpr double kNoCore = 10;
constexpr u32 kFewCommands = 3;

bool stated(const Mark& mark, std::string_view id) {
    return std::any_of(mark.concepts.begin(), mark.concepts.end(), [&](const ConceptMark& c) { return c.id == id && c.share > 0.5; });
}

u32 count_placeholders(const Markdown& md) {
    u32 n = 0;
    for (const MdBlock& b : md.blocks)
        for (const char* word : {"TBD", "TODO", "FIXME", "<fill", "FILL IN", "lorem ipsum"})
            for (std::size_t at = b.text.find(word); at != std::string::npos; at = b.text.find(word, at + 3)) ++n;
    return n;
}

std::vector<std::string> all_feedback(const RunbookRules& rules, const RunbookMark& m) {
    std::vector<std::string> out = feedback(*rules.rubric, m.mark);
    std::size_t shown = 0;
    for (const CommandFault& f : m.commands.faults) {
        if (++shown > 6) {
            out.push_back(fmt::format("... and {} more commands that do not exist", m.commands.faults.size() - 6));
            break;
        }
        out.push_back(fmt::format("line {}: {}", f.line, f.what));
    }
    return out;
}

}  // namespace

Result<RunbookRules> load_runbook_rules(const std::string& content_dir) {
    RunbookRules rules;
    OOMLAB_TRY(rubric, load_rubric({content_dir + "/interview/lexicon.toml", "", content_dir + "/rubrics/runbook.toml"}));
    rules.rubric = std::move(rubric);
    OOMLAB_TRY(commands, load_commands(content_dir + "/runbook/commands.toml"));
    rules.commands = std::move(commands);
    return rules;
}

Result<RunbookMark> mark_runbook(const RunbookRules& rules, std::string_view source) {
    OOMLAB_TRY(markdown, parse_markdown(source));
    RunbookText prepared = text_of(markdown);
    rules.rubric->vocabulary.correct(prepared.text);
    RunbookMark out;
    out.mark = mark_text(*rules.rubric, prepared.text);
    for (ConceptMark& c : out.mark.concepts) c.line = c.line == 0 ? 0 : prepared.file_line(c.token);
    for (Caught& c : out.mark.misconceptions) c.line = prepared.file_line(c.token);
    out.commands = check_commands(rules.commands, markdown.code);
    out.placeholders = count_placeholders(markdown);

    Mark& m = out.mark;
    const u32 commands = out.commands.known + out.commands.in_house;
    const auto core = static_cast<u32>(std::count_if(std::begin(kCore), std::end(kCore), [&](std::string_view id) { return stated(m, id); }));
    if (core == 0) {
        m.score = std::min(m.score * 0.35, kNoCore);
        m.notes.emplace_back("no classification, no capture, no host section, no load shedding: this restarts, it does not respond");
    } else if (core == 1) {
        m.score *= 0.5;
    } else if (core < std::size(kCore)) {
        m.score *= core == 2 ? 0.75 : 0.9;
    }
    if (commands == 0 && !stated(m, "shed_load") && !stated(m, "capture")) {
        m.score = std::min(m.score, kNoProcedure);
        m.notes.emplace_back("lists and names, but no procedure and no command that somebody could run");
    } else if (commands < kFewCommands) {
        m.score *= 0.8;
        m.notes.emplace_back("hardly a command that somebody could run at three in the morning");
    }
    if (commands > 0 && !out.commands.faults.empty()) {
        const double wrong = static_cast<double>(out.commands.faults.size()) / static_cast<double>(commands);
        m.score *= 1 - std::min(0.55, 0.9 * wrong);
        m.notes.push_back(fmt::format("{} of {} commands do not exist as written", out.commands.faults.size(), commands));
    }
    if (out.placeholders > 0) {
        m.score -= std::min(20.0, 4.0 * out.placeholders);
        m.notes.push_back(fmt::format("{} placeholders are still to be filled in", out.placeholders));
    }
    m.score = std::round(2 * std::clamp(m.score, 0.0, 100.0)) / 2;
    m.pass = m.score >= rules.rubric->pass;
    return out;
}

std::string runbook_as_json(const RunbookRules& rules, const RunbookMark& m) {
    using nlohmann::ordered_json;
    ordered_json out;
    out["score"] = m.mark.score;
    out["pass"] = m.mark.pass;
    out["pass_mark"] = rules.rubric->pass;
    out["concepts"] = ordered_json::array();
    for (const ConceptMark& c : m.mark.concepts) out["concepts"].push_back({{"id", c.id}, {"state", name_of(c.state)}, {"where", c.where}, {"line", c.line}, {"rule", c.rule}});
    out["dangerous"] = ordered_json::array();
    for (const Caught& c : m.mark.misconceptions)
        if (c.dangerous) out["dangerous"].push_back({{"id", c.id}, {"where", c.where}, {"line", c.line}, {"why", c.reply}, {"rule", c.rule}});
    out["commands"] = {{"known", m.commands.known}, {"in_house", m.commands.in_house}, {"faults", ordered_json::array()}};
    for (const CommandFault& f : m.commands.faults) out["commands"]["faults"].push_back({{"line", f.line}, {"command", f.command}, {"what", f.what}});
    out["placeholders"] = m.placeholders;
    out["feedback"] = all_feedback(rules, m);
    return out.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string runbook_as_text(const RunbookRules& rules, const RunbookMark& m) {
    std::string out = fmt::format("runbook: {:g} of 100, {} (pass is {:g})\n", m.mark.score, m.mark.pass ? "a pass" : "not yet", rules.rubric->pass);
    for (std::size_t i = 0; i < m.mark.concepts.size(); ++i) {
        const ConceptMark& c = m.mark.concepts[i];
        out += fmt::format("  {:<13} {}\n", name_of(c.state), rules.rubric->concepts[i].name);
        if (!c.where.empty()) out += fmt::format("  {:<13}   line {}: \"{}\"\n", "", c.line, c.where);
    }
    for (const Caught& c : m.mark.misconceptions)
        if (c.dangerous) out += fmt::format("  DANGEROUS     line {}: \"{}\"\n", c.line, c.where);
    for (const std::string& f : all_feedback(rules, m)) out += "  " + f + "\n";
    return out;
}

}  // namespace oomlab::grader
