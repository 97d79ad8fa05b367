#include "ui/cli/window_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

namespace oomlab::cli {

void add_window_flags(CLI::App& cmd, WindowFlags& flags) {
    cmd.add_option("--theme", flags.theme, "dark, light or high-contrast");
    cmd.add_option("--view-as", flags.view_as, "normal, protan, deutan, tritan or greyscale");
    cmd.add_option("--text", flags.text, "Text scale in percent, 75 to 300");
    cmd.add_option("--size", flags.size, "Width and height, as in 1440x900");
    cmd.add_option("--predict", flags.prediction, "A prediction (TOML) to draw as a ghost");
    cmd.add_option("--before", flags.before, "A run to compare with, drawn as a dashed line");
}

Error no_window() {
    return Error::environment("this build has no window (Dear ImGui, GLFW or OpenGL was not found when it was built); "
                              "install libimgui-dev libglfw3-dev libgl-dev libegl-dev and build again, or use: oomlab watch");
}

#ifdef OOMLAB_HAVE_WINDOW
Result<window::Settings> settings_of(const WindowFlags& flags, window::Settings s) {
    if (flags.theme == "dark") s.theme = paint::ThemeName::dark;
    else if (flags.theme == "light") s.theme = paint::ThemeName::light;
    else if (flags.theme == "high-contrast") s.theme = paint::ThemeName::high_contrast;
    else if (!flags.theme.empty()) return fail(Error::usage("--theme takes dark, light or high-contrast"));
    if (!flags.view_as.empty()) {
        bool known = false;
        for (std::size_t i = 0; i < static_cast<std::size_t>(paint::Vision::count_); ++i)
            if (flags.view_as == paint::vision_name(static_cast<paint::Vision>(i))) {
                s.vision = static_cast<paint::Vision>(i);
                known = true;
            }
        if (!known) return fail(Error::usage("--view-as takes normal, protan, deutan, tritan or greyscale"));
    }
    if (flags.text != 0) {
        if (flags.text < window::Settings::kSmallestText || flags.text > window::Settings::kLargestText)
            return fail(Error::usage("--text takes 75 to 300"));
        s.text_percent = flags.text;
    }
    if (!flags.size.empty()) {
        const char* end = flags.size.data() + flags.size.size();
        const auto [x, first] = std::from_chars(flags.size.data(), end, s.width);
        const bool has_x = first == std::errc() && x < end && *x == 'x';
        const auto [rest, second] = has_x ? std::from_chars(x + 1, end, s.height)
                                          : std::from_chars_result{x, std::errc::invalid_argument};
        if (second != std::errc() || rest != end || s.width < 640 || s.height < 400 || s.width > 8192 || s.height > 8192)
            return fail(Error::usage("--size takes WIDTHxHEIGHT, 640x400 to 8192x8192"));
    }
    return s;
}
#endif

}  // namespace oomlab::cli
