#include <CLI/CLI.hpp>

#include "kernels/base/result.hpp"
#include "ui/cli/command.hpp"
#include "ui/cli/window_options.hpp"
#ifdef OOMLAB_HAVE_WINDOW
#include "ui/window/render.hpp"
#endif

namespace oomlab::cli {

#ifdef OOMLAB_HAVE_WINDOW
namespace {
Result<void> render(const WindowFlags& flags, const std::string& trace, const std::string& png, const std::string& at,
                    const std::vector<std::string>& panels, const std::string& map) {
    window::RenderOptions options;
    options.trace = trace;
    options.png = png;
    options.at = at;
    options.prediction = flags.prediction;
    options.before = flags.before;
    if (map == "kv") options.map_mode = window::MapMode::kv_grid;
    else if (map == "figures") options.map_mode = window::MapMode::figures;
    else if (map != "blocks") return fail(Error::usage("--map takes blocks, kv or figures"));
    OOMLAB_TRY(settings, settings_of(flags, window::Settings()));
    options.settings = settings;
    for (const std::string& name : panels) {
        OOMLAB_TRY(id, window::parse_panel(name));
        options.panels.push_back(id);
    }
    return window::render_png(options);
}
}  // namespace
#endif

void add_render(CLI::App& app, int& exit_status) {
    struct Args {
        WindowFlags flags;
        std::string trace, png, at, map = "blocks";
        std::vector<std::string> panels;
    };
    auto args = std::make_shared<Args>();
    auto* cmd = app.add_subcommand("render", "Draw a captioned picture of a trace, without a display");
    cmd->add_option("trace", args->trace, "A trace, or a folder with one")->required();
    cmd->add_option("--png", args->png, "The picture to write")->required();
    cmd->add_option("--panel", args->panels, "Only these: budget, timeline, map, why, events");
    cmd->add_option("--at", args->at, "end, failure, 12.5s, event:N or request:N");
    cmd->add_option("--map", args->map, "What the map shows: blocks, kv or figures");
    add_window_flags(*cmd, args->flags);
    cmd->callback([args, &exit_status] {
#ifdef OOMLAB_HAVE_WINDOW
        const auto done = render(args->flags, args->trace, args->png, args->at, args->panels, args->map);
        exit_status = done ? 0 : report(done.error());
#else
        exit_status = report(no_window());
#endif
    });
}

}  // namespace oomlab::cli
