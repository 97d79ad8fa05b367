#include "labs/catalog/text_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace oomlab {

Result<std::string> read_text_file(const std::string& path, u64 max_bytes) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) {
        return fail(Error::io(fmt::format("{}: {}", path, std::strerror(errno))));
    }
    if (S_ISDIR(info.st_mode)) return fail(Error::io(path + ": is a folder, not a file"));
    const auto too_large = [&] {
        return fail(Error::io(
            fmt::format("{}: is larger than the {} that is read here", path, human_bytes(max_bytes))));
    };
    if (S_ISREG(info.st_mode) && static_cast<u64>(info.st_size) > max_bytes) return too_large();
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return fail(Error::io(fmt::format("{}: {}", path, std::strerror(errno))));
    std::string text;
    char buffer[1 << 16];
    std::size_t n = 0;
    while ((n = std::fread(buffer, 1, sizeof buffer, file)) > 0 && text.size() <= max_bytes) {
        text.append(buffer, n);
    }
    std::fclose(file);
    if (text.size() > max_bytes) return too_large();
    return text;
}

std::optional<double> parse_seconds(std::string_view text) {
    double number = 0;
    const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (ec != std::errc() || !(number >= 0)) return std::nullopt;
    const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
    if (unit == "s" || unit.empty()) return number;
    if (unit == "ms") return number / 1e3;
    if (unit == "m" || unit == "min") return number * 60;
    if (unit == "h") return number * 3600;
    if (unit == "d") return number * 86400;
    return std::nullopt;
}

std::string one_line(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return text;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    std::string best;
    std::size_t best_distance = 4;
    for (const std::string& candidate : known) {
        std::vector<std::size_t> row(candidate.size() + 1);
        for (std::size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
        for (std::size_t i = 1; i <= word.size(); ++i) {
            std::size_t diagonal = row[0];
            row[0] = i;
            for (std::size_t j = 1; j <= candidate.size(); ++j) {
                const std::size_t up = row[j];
                const std::size_t change = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
                row[j] = std::min({up + 1, row[j - 1] + 1, change});
                diagonal = up;
            }
        }
        if (row.back() < best_distance) {
            best_distance = row.back();
            best = candidate;
        }
    }
    return best;
}

}  // namespace oomlab
