// How a person likes the window: kept in a small text file, one `key = value` a line, so that it can
// be read, mended and thrown away. A broken line is skipped; a missing file means the defaults.
#pragma once

#include <string>
#include <string_view>

#include "ui/window/paint/theme.hpp"

namespace oomlab::window {

struct Settings {
    paint::ThemeName theme = paint::ThemeName::dark;
    paint::Vision vision = paint::Vision::normal;
    bool patterns = true;
    int text_percent = 100;            // 75 to 300
    int width = 1440, height = 900;
    // Shares of the window, in thousandths, where its three columns and two rows meet.
    int left_permille = 230, right_permille = 290, middle_permille = 560;

    static constexpr int kSmallestText = 75, kLargestText = 300;
    void text_by(int steps);           // in steps of 25
};

Settings parse_settings(std::string_view text);
std::string format_settings(const Settings& settings);

// $XDG_CONFIG_HOME/oomlab/window.conf or ~/.config/oomlab/window.conf; "" when there is no home.
std::string settings_path();
Settings load_settings(const std::string& path);
void save_settings(const std::string& path, const Settings& settings);   // best effort

}  // namespace oomlab::window
