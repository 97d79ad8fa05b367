#include <CLI/CLI.hpp>

#include "ui/cli/command.hpp"
#include "ui/cli/window_options.hpp"
#ifdef OOMLAB_HAVE_WINDOW
#include "ui/window/open.hpp"
#endif
#ifdef OOMLAB_HAVE_COURSE_HOST
#include "ui/course_host/folder_course.hpp"
#endif

namespace oomlab::cli {

void add_view(CLI::App& app, int& exit_status) {
    struct Args {
        WindowFlags flags;
        std::string what = ".";
        bool software = false;
    };
    auto args = std::make_shared<Args>();
    auto* cmd = app.add_subcommand("view", "Open the live memory view: a trace, a run's folder, or HOST:PORT");
    cmd->add_option("what", args->what, "A trace, a folder with runs (default: this one), or HOST:PORT of oomlab serve");
    cmd->add_flag("--software", args->software, "Draw in software: take no memory of the card under test");
    add_window_flags(*cmd, args->flags);
    cmd->callback([args, &exit_status] {
#ifdef OOMLAB_HAVE_WINDOW
        const std::string saved = window::settings_path();
        const auto settings = settings_of(args->flags, window::load_settings(saved));
        if (!settings) {
            exit_status = report(settings.error());
            return;
        }
        window::OpenOptions options;
        options.what = args->what;
        options.prediction = args->flags.prediction;
        options.before = args->flags.before;
        options.settings = *settings;
        options.settings_path = saved;
        options.software = args->software;
#ifdef OOMLAB_HAVE_COURSE_HOST
        // In a learner's folder the course stands beside the picture.
        std::unique_ptr<window::FolderCourse> course;
        if (auto opened = window::FolderCourse::open("."); opened && args->what == ".") {
            course = std::move(*opened);
            options.course = course.get();
        }
#endif
        const auto done = window::open_window(options);
        exit_status = done ? 0 : report(done.error());
#else
        exit_status = report(no_window());
#endif
    });
}

}  // namespace oomlab::cli
