#include "grader/runbook/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "labs/catalog/text_file.hpp"

namespace oomlab::grader {
namespace {

constexpr std::size_t kComfortableBytes = 16 * 1024;
constexpr std::string_view kTypeNames[] = {"at load", "first long prompt", "under load", "after hours", "host memory (137)", "not memory"};

std::string_view name_of(Finding::Weight w) {
    return w == Finding::Weight::error ? "error" : w == Finding::Weight::warning ? "warning" : "note";
}

void lint_table(const DecisionTable& table, const DrillLanguage& language, std::vector<Finding>& out) {
    std::set<int> types;
    for (std::size_t i = 0; i < table.rules.size(); ++i) {
        const Rule& r = table.rules[i];
        types.insert(r.type);
        bool captured = false;
        for (const std::string& s : r.steps) {
            const Step& step = language.steps.at(s);
            captured = captured || step.captures;
            if (!step.dangerous.empty()) out.push_back({Finding::Weight::error, r.line, fmt::format("step '{}' is dangerous: {}", s, step.dangerous)});
            if (step.restarts && !captured)
                out.push_back({Finding::Weight::error, r.line, fmt::format("'{}' restarts before anything was captured: put 'capture' first", s)});
        }
        if (r.steps.empty()) out.push_back({Finding::Weight::error, r.line, "the rule names a type and no step: what does the reader do?"});
        if (r.conditions.empty() && i + 1 < table.rules.size())
            out.push_back({Finding::Weight::error, r.line, fmt::format("this rule always holds: the {} behind it are never reached", table.rules.size() - i - 1)});
    }
    for (int t = 1; t <= 6; ++t)
        if (types.count(t) == 0) out.push_back({Finding::Weight::warning, table.line, fmt::format("no rule leads to type {} ({})", t, kTypeNames[t - 1])});
}

}  // namespace

Result<std::vector<Finding>> lint_runbook(const RunbookRules& rules, const DrillLanguage& language, std::string_view source, const std::string& file) {
    OOMLAB_TRY(markdown, parse_markdown(source));
    OOMLAB_TRY(mark, mark_runbook(rules, source));
    std::vector<Finding> out;
    const auto table = find_decision_table(markdown, file, language);
    if (table)
        lint_table(*table, language, out);
    else
        out.push_back({Finding::Weight::error, 0, table.error().message});
    for (const CommandFault& f : mark.commands.faults) out.push_back({Finding::Weight::error, f.line, f.what});
    for (const Caught& c : mark.mark.misconceptions)
        if (c.dangerous) out.push_back({Finding::Weight::error, c.line, fmt::format("dangerous: \"{}\". {}", c.where, c.reply)});
    for (std::size_t i = 0; i < mark.mark.concepts.size(); ++i) {
        const ConceptMark& c = mark.mark.concepts[i];
        if (c.share > 0.5) continue;
        const std::string& question = rules.rubric->concepts[i].missing;
        out.push_back({Finding::Weight::warning, c.line, question.empty() ? rules.rubric->concepts[i].name : question});
    }
    if (mark.placeholders > 0) out.push_back({Finding::Weight::warning, 0, fmt::format("{} placeholders are still to be filled in", mark.placeholders)});
    if (mark.commands.known + mark.commands.in_house == 0) out.push_back({Finding::Weight::warning, 0, "no command that somebody could run"});
    if (source.size() > kComfortableBytes)
        out.push_back({Finding::Weight::note, 0, fmt::format("{} KiB are long for three in the morning: move background elsewhere", source.size() / 1024)});
    std::stable_sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) { return a.weight != b.weight ? a.weight < b.weight : a.line < b.line; });
    return out;
}

std::string findings_as_text(const std::vector<Finding>& findings, const std::string& file) {
    std::string out;
    for (const Finding& f : findings) out += f.line > 0 ? fmt::format("{}:{}: {}: {}\n", file, f.line, name_of(f.weight), f.text) : fmt::format("{}: {}: {}\n", file, name_of(f.weight), f.text);
    if (findings.empty()) out = fmt::format("{}: nothing missing that lint can see; now: oomlab runbook drill {}\n", file, file);
    return out;
}

std::string findings_as_json(const std::vector<Finding>& findings) {
    nlohmann::ordered_json out;
    out["findings"] = nlohmann::ordered_json::array();
    for (const Finding& f : findings) out["findings"].push_back({{"weight", name_of(f.weight)}, {"line", f.line}, {"text", f.text}});
    return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<std::string> runbook_skeleton(const std::string& content_dir, const DrillLanguage& language) {
    OOMLAB_TRY(text, read_text_file(content_dir + "/runbook/skeleton.md"));
    std::string facts = "# facts:\n";
    for (const auto& [name, kind] : language.facts) {
        const std::string values = kind.kind == FactKind::Kind::flag ? "true, false" : kind.kind == FactKind::Kind::number ? "a number" : fmt::format("{}", fmt::join(kind.words, ", "));
        facts += fmt::format("#   {:<24} {} ({})\n", name, kind.meaning, values);
    }
    std::string steps = "# steps:\n";
    for (const auto& [name, step] : language.steps)
        if (step.dangerous.empty()) steps += fmt::format("#   {:<24} {}{}\n", name, step.meaning, step.restarts ? " (restarts)" : "");
    for (const auto& [mark, value] : {std::pair<std::string_view, std::string&>{"@FACTS@\n", facts}, {"@STEPS@\n", steps}}) {
        const std::size_t at = text.find(mark);
        if (at == std::string::npos) return fail(Error::parse(fmt::format("{}/runbook/skeleton.md has no {} line", content_dir, mark.substr(0, mark.size() - 1))));
        text.replace(at, mark.size(), value);
    }
    return text;
}

}  // namespace oomlab::grader
