#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "grader/interview/marking.hpp"
#include "labs/catalog/content_dir.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/read_input.hpp"

namespace oomlab::cli {
namespace {

constexpr u64 kAnswerBytesMax = kMiB;

struct MarkOptions {
    int question = 0;
    std::string file = "-";
    bool json = false;
};

Result<int> mark(const MarkOptions& options) {
    OOMLAB_TRY(content, content_dir());
    OOMLAB_TRY(rubric, grader::load_question(content, options.question));
    OOMLAB_TRY(answer, read_input(options.file, kAnswerBytesMax));
    const grader::Mark result = grader::mark_answer(*rubric, answer);
    const std::string text = options.json ? grader::mark_as_json(*rubric, result) : grader::mark_as_text(*rubric, result);
    std::fputs(text.c_str(), stdout);
    if (options.json) std::fputc('\n', stdout);
    return result.pass ? 0 : 1;
}

}  // namespace

void add_interview(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("interview", "The seven interview questions: ask, mark, review");
    cmd->require_subcommand(0, 1);
    auto* sub = cmd->add_subcommand("mark", "Mark one answer");
    const auto options = std::make_shared<MarkOptions>();
    sub->add_option("--question,-q", options->question, "Question 1 to 7")->required();
    sub->add_option("FILE", options->file, "The answer; - or nothing reads standard input");
    sub->add_flag("--json", options->json, "Print one JSON object");
    sub->callback([options, &exit_status] {
        const Result<int> r = mark(*options);
        exit_status = r ? *r : report(r.error());
    });
}

}  // namespace oomlab::cli
