#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "grader/runbook/drill.hpp"
#include "grader/runbook/lint.hpp"
#include "grader/runbook/marking.hpp"
#include "labs/catalog/content_dir.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/read_input.hpp"

namespace oomlab::cli {
namespace {

struct Options {
    std::string file = "-";
    bool json = false;
    u64 seed = 1;
    u32 count = grader::kDrillDefault;
};

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!text.empty() && text.back() != '\n') std::fputc('\n', stdout);
}

Result<int> mark(const Options& options) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(rules, grader::load_runbook_rules(content));
    OOMLAB_TRY(source, read_input(options.file, grader::kMaxRunbookBytes));
    OOMLAB_TRY(result, grader::mark_runbook(rules, source));
    print(options.json ? grader::runbook_as_json(rules, result) : grader::runbook_as_text(rules, result));
    return result.mark.pass ? 0 : 1;
}

Result<int> lint(const Options& options) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(rules, grader::load_runbook_rules(content));
    OOMLAB_TRY(language, grader::load_drill_language(content));
    OOMLAB_TRY(source, read_input(options.file, grader::kMaxRunbookBytes));
    OOMLAB_TRY(findings, grader::lint_runbook(rules, language, source, options.file));
    print(options.json ? grader::findings_as_json(findings) : grader::findings_as_text(findings, options.file));
    for (const grader::Finding& f : findings)
        if (f.weight == grader::Finding::Weight::error) return 1;
    return 0;
}

Result<int> drill(const Options& options) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(language, grader::load_drill_language(content));
    OOMLAB_TRY(cards, grader::load_incidents(content, language));
    OOMLAB_TRY(source, read_input(options.file, grader::kMaxRunbookBytes));
    OOMLAB_TRY(markdown, grader::parse_markdown(source));
    OOMLAB_TRY(table, grader::find_decision_table(markdown, options.file, language));
    const grader::DrillResult result = grader::play_drill(table, cards, language, options.seed, options.count);
    print(options.json ? grader::drill_as_json(result) : grader::drill_as_text(result));
    return result.pass ? 0 : 1;
}

Result<int> create(const Options& options) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(language, grader::load_drill_language(content));
    OOMLAB_TRY(text, grader::runbook_skeleton(content, language));
    if (options.file == "-") {
        print(text);
        return 0;
    }
    std::error_code ignored;
    if (std::filesystem::exists(options.file, ignored)) return fail(Error::usage(options.file + " exists already; a runbook is never overwritten"));
    std::FILE* out = std::fopen(options.file.c_str(), "wb");
    if (out == nullptr) return fail(Error::io(options.file + " cannot be written"));
    const bool whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
    if (std::fclose(out) != 0 || !whole) return fail(Error::io(options.file + " could not be written completely"));
    std::fprintf(stderr, "%s written; next: oomlab runbook lint %s\n", options.file.c_str(), options.file.c_str());
    return 0;
}

}  // namespace

void add_runbook(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("runbook", "Write, check and drill a runbook for out of memory");
    cmd->require_subcommand(1);
    const auto options = std::make_shared<Options>();
    const auto add = [&](const char* name, const char* help, Result<int> (*verb)(const Options&)) {
        auto* sub = cmd->add_subcommand(name, help);
        sub->callback([options, verb, &exit_status] {
            const Result<int> r = verb(*options);
            exit_status = r ? *r : report(r.error());
        });
        return sub;
    };
    const auto add_file = [&](CLI::App* sub) {
        sub->add_option("FILE", options->file, "The runbook in Markdown; - or nothing reads standard input");
        sub->add_flag("--json", options->json, "Print one JSON object");
    };
    add("new", "Write the skeleton of a runbook", create)->add_option("FILE", options->file, "Where to; - or nothing prints it");
    add_file(add("lint", "Say what is missing or wrong, line by line", lint));
    add_file(add("mark", "Mark content and structure, 0 to 100", mark));
    auto* drill_cmd = add("drill", "Play incidents through the runbook's decision table", drill);
    add_file(drill_cmd);
    drill_cmd->add_option("--seed", options->seed, "Which incidents, with which figures");
    drill_cmd->add_option("--incidents", options->count, "How many")->check(CLI::Range(grader::kDrillLeast, 200U));
}

}  // namespace oomlab::cli
