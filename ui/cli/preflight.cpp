#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "labs/catalog/gpu_profile.hpp"
#include "labs/catalog/model_config.hpp"
#include "labs/catalog/text_file.hpp"
#include "labs/field/preflight/checklist.hpp"
#include "labs/field/preflight/yaml_subset.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/read_input.hpp"

namespace oomlab::cli {
namespace {

constexpr const char* kFooter =
    R"(Give the command after --, or a file with a command line, a Kubernetes manifest or a compose file:
  oomlab preflight --gpu h100-80gb -- vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 16384
  oomlab preflight --gpu l4 --config ./config.json deployment.yaml
Exit status: 0 nothing fails, 1 something fails, 2 bad input.)";

struct Options {
    std::vector<std::string> words;
    std::string config, gpu, runbook, monitoring, host_memory;
    u64 gateway_max_input = 0, gateway_max_output = 0, mean_tokens = 0, longest_prompt = 0;
    bool json = false;
};

Result<field::Deployment> read_deployment(const std::vector<std::string>& words) {
    std::error_code ec;
    if (words.size() == 1 && (words[0] == "-" || std::filesystem::exists(words[0], ec))) {
        OOMLAB_TRY(text, read_input(words[0], field::YamlLimits::kBytes));
        return field::deployment_from_text(text, words[0] == "-" ? "standard input" : words[0]);
    }
    if (words.size() == 1) {
        // One quoted command, or a file that is not there.
        if (words[0].find(' ') == std::string::npos)
            return fail(Error::io(words[0] + ": no such file; or give the command after --"));
        return field::deployment_from_words(field::shell_words(words[0]));
    }
    return field::deployment_from_words(words);
}

Result<void> find_model(field::PreflightFacts& facts, field::Deployment& d,
                        const std::string& config) {
    if (!config.empty()) {
        OOMLAB_TRY(shape, load_model_shape(config));
        facts.shape = std::move(shape);
        return {};
    }
    std::error_code ec;
    if (!d.flags.model.empty() &&
        std::filesystem::is_regular_file(d.flags.model + "/config.json", ec)) {
        OOMLAB_TRY(shape, load_model_shape(d.flags.model));
        facts.shape = std::move(shape);
        facts.notes.push_back("model: its own config.json");
        return {};
    }
    auto guess = field::guess_model(d.flags.model, model_names());
    if (!guess) return {};
    OOMLAB_TRY(shape, load_model_shape(guess->name));
    facts.shape = std::move(shape);
    facts.notes.push_back("model: the shape " + guess->name +
                          " that ships with oomlab (--config for your own)");
    if (d.flags.quantization.empty() && !guess->quantization.empty()) {
        d.flags.quantization = guess->quantization;
        facts.notes.push_back("quantization: " + guess->quantization + ", from the model's name");
    }
    return {};
}

Result<field::PreflightFacts> gather(const Options& o, field::Deployment& d) {
    field::PreflightFacts facts;
    OOMLAB_TRY_VOID(find_model(facts, d, o.config));
    std::string gpu = o.gpu;
    if (gpu.empty() && !d.gpu_hint.empty())
        if (auto guess = guess_gpu(d.gpu_hint))
            gpu = *guess, facts.notes.push_back("card: " + gpu + ", from the node selector");
    if (!gpu.empty()) {
        OOMLAB_TRY(card, load_gpu_or_size(gpu));
        facts.gpu = std::move(card);
    }
    const auto optional = [](u64 v) { return v > 0 ? std::optional<u64>(v) : std::nullopt; };
    facts.gateway_max_input = optional(o.gateway_max_input);
    facts.gateway_max_output = optional(o.gateway_max_output);
    facts.mean_tokens = optional(o.mean_tokens);
    facts.longest_prompt = optional(o.longest_prompt);
    if (!o.host_memory.empty()) {
        OOMLAB_TRY(bytes, parse_bytes(o.host_memory));
        facts.host_memory_bytes = bytes;
    }
    if (!o.runbook.empty()) {
        OOMLAB_TRY(text, read_text_file(o.runbook));
        facts.runbook_text = std::move(text);
    }
    if (!o.monitoring.empty()) {
        OOMLAB_TRY(text, read_text_file(o.monitoring));
        facts.monitoring_text = std::move(text);
    }
    return facts;
}

int run_preflight(const Options& o) {
    auto deployment = read_deployment(o.words);
    if (!deployment) return report(deployment.error());
    auto facts = gather(o, *deployment);
    if (!facts) return report(facts.error());
    const field::PreflightReport result = field::check_deployment(*deployment, *facts);
    std::fputs((o.json ? field::preflight_json(result) : field::preflight_text(result)).c_str(),
               stdout);
    return result.failed() > 0 ? 1 : 0;
}

}  // namespace

void add_preflight(CLI::App& app, int& exit_status) {
    auto options = std::make_shared<Options>();
    auto* cmd = app.add_subcommand(
        "preflight", "The prevention checklist for a server command or manifest, item by item");
    cmd->add_option("command", options->words, "A file, or the server's command after --")
        ->required();
    cmd->add_option("--config", options->config,
                    "The model's config.json, or a name of content/models");
    cmd->add_option("--gpu", options->gpu, "A name of content/gpus, or a size such as 24GiB");
    cmd->add_option("--gateway-max-input", options->gateway_max_input,
                    "The gateway's cap on prompt tokens");
    cmd->add_option("--gateway-max-output", options->gateway_max_output,
                    "The gateway's cap on output tokens");
    cmd->add_option("--mean-tokens", options->mean_tokens, "Prompt and output of a mean request");
    cmd->add_option("--longest-prompt", options->longest_prompt,
                    "The longest prompt of your traffic");
    cmd->add_option("--host-memory", options->host_memory,
                    "The container's memory limit, such as 64GiB");
    cmd->add_option("--runbook", options->runbook, "The out-of-memory runbook");
    cmd->add_option("--monitoring", options->monitoring, "Alert rules or dashboard");
    cmd->add_flag("--json", options->json, "One JSON object");
    cmd->footer(kFooter);
    cmd->callback([options, &exit_status] { exit_status = run_preflight(*options); });
}

}  // namespace oomlab::cli
