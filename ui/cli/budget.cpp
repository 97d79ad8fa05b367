#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "labs/catalog/gpu_profile.hpp"
#include "labs/catalog/model_config.hpp"
#include "labs/field/budget/budget_report.hpp"
#include "ui/cli/command.hpp"

namespace oomlab::cli {
namespace {

constexpr const char* kFooter = R"(Every other flag is the server's own, as you would type it there:
  vllm       --max-model-len --max-num-seqs --max-num-batched-tokens --gpu-memory-utilization
             --kv-cache-dtype --quantization --dtype --tensor-parallel-size --pipeline-parallel-size
             --data-parallel-size --enable-expert-parallel --enforce-eager --[no-]enable-chunked-prefill
             --block-size --num-gpu-blocks-override --kv-cache-memory-bytes --cpu-offload-gb
             --max-cudagraph-capture-size --cudagraph-capture-sizes --enable-lora
  sglang     --mem-fraction-static --context-length --max-running-requests --chunked-prefill-size
             --tp-size --cuda-graph-max-bs --disable-cuda-graph --max-total-tokens
  llama.cpp  -c -ub -np -ngl -ctk -ctv --flash-attn, and --quantization Q4_K_M for the file's type
  all        --engine-version 0.11.0 (rules changed at 0.17, 0.18 and 0.21)
--compare takes two GPUs, two models, or two settings: --compare h100-80gb h200,
--compare max-num-seqs=256 max-num-seqs=1024,kv-cache-dtype=fp8
Examples:
  oomlab budget --config llama-3.1-8b --gpu rtx4090 --explain
  oomlab budget --config ./config.json --gpu 24GiB --max-model-len 16384 --json)";

struct Options {
    std::string config, gpu, engine = "vllm", plot;
    std::vector<std::string> compare;
    bool explain = false, json = false, check = false;
};

struct Plan {
    std::string config, gpu;
    std::vector<std::string> flags;
};

Result<field::Budget> plan(const Plan& p, field::Engine engine) {
    OOMLAB_TRY(shape, load_model_shape(p.config));
    OOMLAB_TRY(gpu, load_gpu_or_size(p.gpu));
    OOMLAB_TRY(flags, field::parse_server_flags(engine, p.flags, true));
    OOMLAB_TRY(budget, field::compute_budget(shape, gpu, flags));
    std::vector<GpuProfile> cards;
    if (!budget.fits)
        for (const std::string& name : gpu_profile_names())
            if (auto card = load_gpu_profile(name)) cards.push_back(std::move(*card));
    field::find_changes(budget, cards);
    return budget;
}

// "h200", "qwen2.5-7b", "max-num-seqs=64", "enforce-eager", joined by commas.
Plan changed(Plan p, const std::string& change) {
    std::size_t from = 0;
    while (from <= change.size()) {
        const std::size_t to = std::min(change.find(',', from), change.size());
        const std::string item = change.substr(from, to - from);
        from = to + 1;
        if (item.empty()) continue;
        const auto equals = item.find('=');
        if (equals != std::string::npos && item.rfind("gpu=", 0) == 0)
            p.gpu = item.substr(4);
        else if (equals != std::string::npos && item.rfind("config=", 0) == 0)
            p.config = item.substr(7);
        else if (equals != std::string::npos)
            p.flags.push_back("--" + item);
        else if (load_gpu_or_size(item))
            p.gpu = item;
        else if (find_model_config(item))
            p.config = item;
        else
            p.flags.push_back("--" + item);
    }
    return p;
}

int run_budget(const Options& o, const std::vector<std::string>& flags) {
    auto engine = field::parse_engine(o.engine);
    if (!engine) return report(engine.error());
    const Plan base{o.config, o.gpu, flags};
    if (o.compare.size() == 2) {
        auto a = plan(changed(base, o.compare[0]), *engine),
             b = plan(changed(base, o.compare[1]), *engine);
        if (!a) return report(a.error());
        if (!b) return report(b.error());
        std::fputs((o.json ? field::compare_json(*a, *b)
                           : field::compare_text(*a, o.compare[0], *b, o.compare[1]))
                       .c_str(),
                   stdout);
        if (!o.plot.empty())
            if (auto drawn = field::budget_plot({&*a, &*b}, o.compare, o.plot); !drawn)
                return report(drawn.error());
        return o.check && !(a->fits && b->fits) ? 1 : 0;
    }
    auto budget = plan(base, *engine);
    if (!budget) return report(budget.error());
    std::fputs(
        (o.json ? field::budget_json(*budget) : field::budget_text(*budget, o.explain)).c_str(),
        stdout);
    if (!o.plot.empty())
        if (auto drawn = field::budget_plot(
                {&*budget}, {budget->shape.name + " on " + budget->gpu.name}, o.plot);
            !drawn)
            return report(drawn.error());
    return o.check && !budget->fits ? 1 : 0;
}

}  // namespace

void add_budget(CLI::App& app, int& exit_status) {
    auto options = std::make_shared<Options>();
    auto* cmd = app.add_subcommand(
        "budget",
        "Every consumer of a GPU's memory for a model and a server's flags: does it fit?");
    cmd->add_option("--config", options->config,
                    "A model's config.json, its folder, or a name of content/models")
        ->required();
    cmd->add_option("--gpu", options->gpu,
                    "A name of content/gpus, a profile file, or a size such as 24GiB")
        ->required();
    cmd->add_option("--engine", options->engine, "vllm, sglang or llama.cpp")
        ->capture_default_str();
    cmd->add_flag("--explain", options->explain,
                  "Each formula, with its numbers and its known error");
    cmd->add_flag("--json", options->json, "One JSON object");
    cmd->add_flag("--check", options->check,
                  "Exit 1 when it does not fit (otherwise 0: the answer was computed)");
    cmd->add_option("--compare", options->compare, "Two alternatives side by side")->expected(2);
    cmd->add_option("--plot", options->plot, "Draw the stack into this PNG file");
    cmd->allow_extras();
    cmd->footer(kFooter);
    cmd->callback(
        [cmd, options, &exit_status] { exit_status = run_budget(*options, cmd->remaining()); });
}

}  // namespace oomlab::cli
