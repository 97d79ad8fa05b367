#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "labs/catalog/gpu_profile.hpp"
#include "labs/catalog/text_file.hpp"
#include "labs/field/leak/leak.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/read_input.hpp"

namespace oomlab::cli {
namespace {

constexpr const char* kFooter =
    R"(Reads CSV with a header, nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -l 10,
the answer of a Prometheus range query, and lines with allocated and reserved (torch.cuda.memory_stats).
Kinds for --column-map: time allocated reserved inactive_split device_used device_free device_total process_used
host host_limit requests group pid ignore; written KIND=COLUMN, joined by commas.
Exit status: 0 a verdict, 1 the series is not long enough (with --check also 1 when something grows), 2 bad input.)";

struct Options {
    std::string file, every, limit, gpu, png;
    std::vector<std::string> column_map;
    bool json = false, no_plot = false, check = false;
};

Result<field::ReadOptions> read_options(const Options& o) {
    field::ReadOptions out;
    for (const std::string& item : o.column_map) {
        const auto equals = item.find('=');
        if (equals == std::string::npos)
            return fail(
                Error::usage("--column-map is written KIND=COLUMN, such as allocated=torch_alloc"));
        // Either way round: allocated=torch_alloc or torch_alloc=allocated.
        auto role = field::parse_role(item.substr(0, equals));
        std::string column = item.substr(equals + 1);
        if (!role)
            if (auto other = field::parse_role(column))
                role = std::move(other), column = item.substr(0, equals);
        if (!role) return fail(role.error());
        out.column_map[column] = *role;
    }
    if (!o.every.empty()) {
        auto seconds = parse_seconds(o.every);
        if (!seconds || *seconds <= 0)
            return fail(Error::usage("--every takes a time such as 10s or 1m"));
        out.every_s = *seconds;
    }
    return out;
}

int run_leak(const Options& o) {
    auto options = read_options(o);
    if (!options) return report(options.error());
    field::LeakOptions leak_options;
    if (!o.limit.empty()) {
        auto bytes = parse_bytes(o.limit);
        if (!bytes) return report(bytes.error());
        leak_options.limit_bytes = static_cast<double>(*bytes);
    } else if (!o.gpu.empty()) {
        auto gpu = load_gpu_or_size(o.gpu);
        if (!gpu) return report(gpu.error());
        leak_options.limit_bytes = static_cast<double>(gpu->total_bytes);
    }
    auto text = read_input(o.file, field::ReadLimits::kFileBytes);
    if (!text) return report(text.error());
    auto table = field::read_samples(*text, o.file == "-" ? "standard input" : o.file, *options);
    if (!table) return report(table.error());
    const field::LeakReport result = field::find_leak(*table, leak_options);
    std::fputs((o.json ? field::leak_json(result) : field::leak_text(result, !o.no_plot)).c_str(),
               stdout);
    if (!o.png.empty())
        if (auto drawn = field::leak_png(result, o.png); !drawn) return report(drawn.error());
    const field::LeakVerdict verdict = result.decisive().verdict;
    if (verdict == field::LeakVerdict::not_long_enough) return 1;
    return o.check && verdict != field::LeakVerdict::flat ? 1 : 0;
}

}  // namespace

void add_leak(CLI::App& app, int& exit_status) {
    auto options = std::make_shared<Options>();
    auto* cmd = app.add_subcommand(
        "leak", "Does a sampled memory series grow: leak, fragmentation, outside, or flat?");
    cmd->add_option("file", options->file, "A file of samples, or - for standard input")
        ->required();
    cmd->add_option("--column-map", options->column_map, "What a column is: KIND=COLUMN,...")
        ->delimiter(',');
    cmd->add_option("--every", options->every,
                    "Spacing of the samples when the file has no times, such as 10s");
    cmd->add_option("--limit", options->limit,
                    "The limit for the time until it is reached, such as 24GiB");
    cmd->add_option("--gpu", options->gpu, "The same from a card's name");
    cmd->add_flag("--json", options->json, "One JSON object");
    cmd->add_option("--png", options->png, "Draw the series into this PNG file");
    cmd->add_flag("--no-plot", options->no_plot, "No picture in the terminal");
    cmd->add_flag("--check", options->check, "Exit 1 when something grows");
    cmd->footer(kFooter);
    cmd->callback([options, &exit_status] { exit_status = run_leak(*options); });
}

}  // namespace oomlab::cli
