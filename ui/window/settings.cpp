#include "ui/window/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace oomlab::window {
namespace {

struct Field {
    const char* key;
    int Settings::* value;
    int low, high;
};
constexpr Field kFields[] = {{"text_percent", &Settings::text_percent, 75, 300},
                             {"width", &Settings::width, 640, 16384},
                             {"height", &Settings::height, 400, 16384},
                             {"left_permille", &Settings::left_permille, 120, 450},
                             {"right_permille", &Settings::right_permille, 120, 450},
                             {"middle_permille", &Settings::middle_permille, 250, 800}};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

}  // namespace

void Settings::text_by(int steps) {
    text_percent = std::clamp(text_percent + steps * 25, kSmallestText, kLargestText);
}

Settings parse_settings(std::string_view text) {
    Settings s;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string_view key = trimmed(line.substr(0, equals));
        const std::string_view value = trimmed(line.substr(equals + 1));
        for (const Field& field : kFields) {
            if (key != field.key) continue;
            int number = 0;
            const auto [rest, ec] = std::from_chars(value.data(), value.data() + value.size(), number);
            if (ec == std::errc()) s.*field.value = std::clamp(number, field.low, field.high);
        }
        if (key == "patterns") s.patterns = value != "off";
        for (std::size_t i = 0; i < static_cast<std::size_t>(paint::ThemeName::count_); ++i)
            if (key == "theme" && value == paint::theme_name(static_cast<paint::ThemeName>(i)))
                s.theme = static_cast<paint::ThemeName>(i);
        for (std::size_t i = 0; i < static_cast<std::size_t>(paint::Vision::count_); ++i)
            if (key == "view_as" && value == paint::vision_name(static_cast<paint::Vision>(i)))
                s.vision = static_cast<paint::Vision>(i);
    }
    return s;
}

std::string format_settings(const Settings& s) {
    std::string text = "# How `oomlab view` looks. Delete the file to begin anew.\n";
    text += fmt::format("theme = {}\nview_as = {}\npatterns = {}\n", paint::theme_name(s.theme),
                        paint::vision_name(s.vision), s.patterns ? "on" : "off");
    for (const Field& field : kFields) text += fmt::format("{} = {}\n", field.key, s.*field.value);
    return text;
}

std::string settings_path() {
    const char* config = std::getenv("XDG_CONFIG_HOME");
    if (config != nullptr && config[0] == '/') return std::string(config) + "/oomlab/window.conf";
    const char* home = std::getenv("HOME");
    if (home == nullptr || home[0] != '/') return "";
    return std::string(home) + "/.config/oomlab/window.conf";
}

Settings load_settings(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(16 * 1024, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return parse_settings(text);
}

void save_settings(const std::string& path, const Settings& settings) {
    if (path.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    const std::string fresh = path + ".new";
    {
        std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
        file << format_settings(settings);
        if (!file) return;
    }
    std::filesystem::rename(fresh, path, ignored);
}

}  // namespace oomlab::window
