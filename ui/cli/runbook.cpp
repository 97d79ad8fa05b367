#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "grader/runbook/marking.hpp"
#include "labs/catalog/content_dir.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/read_input.hpp"

namespace oomlab::cli {
namespace {

struct Options {
    std::string file = "-";
    bool json = false;
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

}  // namespace

void add_runbook(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("runbook", "Write, check and drill a runbook for out of memory");
    cmd->require_subcommand(1);
    const auto options = std::make_shared<Options>();
    auto* sub = cmd->add_subcommand("mark", "Mark a runbook's content and structure");
    sub->add_option("FILE", options->file, "The runbook in Markdown; - or nothing reads standard input");
    sub->add_flag("--json", options->json, "Print one JSON object");
    sub->callback([options, &exit_status] {
        const Result<int> r = mark(*options);
        exit_status = r ? *r : report(r.error());
    });
}

}  // namespace oomlab::cli
