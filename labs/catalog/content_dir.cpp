#include "labs/catalog/content_dir.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace oomlab {
namespace fs = std::filesystem;

Result<std::string> content_dir() {
    std::error_code ec;
    std::vector<fs::path> tried;
    if (const char* env = std::getenv("OOMLAB_CONTENT"); env != nullptr && *env != '\0') {
        if (fs::is_directory(fs::path(env) / "gpus", ec)) return std::string(env);
        return fail(
            Error::environment("OOMLAB_CONTENT=" + std::string(env) +
                               " has no gpus/ folder: it must name oomlab's content folder"));
    }
    const fs::path self = fs::read_symlink("/proc/self/exe", ec);
    if (!ec) {
        tried.push_back(self.parent_path() / "content");
        tried.push_back(self.parent_path().parent_path() / "share" / "oomlab" / "content");
    }
    tried.emplace_back(OOMLAB_SOURCE_CONTENT);
    if (!ec) tried.push_back(self.parent_path() / ".." / ".." / ".." / "content");
    std::string all;
    for (const fs::path& path : tried) {
        if (fs::is_directory(path / "gpus", ec)) return path.lexically_normal().string();
        all += (all.empty() ? "" : ", ") + path.lexically_normal().string();
    }
    return fail(
        Error::environment("content/ was not found (tried " + all + "): set OOMLAB_CONTENT to it"));
}

std::vector<std::string> names_in(const std::string& folder, std::string_view ending) {
    std::vector<std::string> names;
    std::error_code ec;
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
        std::string name = it->path().filename().string();
        if (name.size() > ending.size() &&
            name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
            names.push_back(name.substr(0, name.size() - ending.size()));
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool is_plain_name(std::string_view text) {
    return !text.empty() && text.size() <= 64 && text.front() != '.' &&
           text.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
               std::string_view::npos;
}

}  // namespace oomlab
