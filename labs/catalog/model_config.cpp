#include "labs/catalog/model_config.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/text_file.hpp"

namespace oomlab {
namespace fs = std::filesystem;

Result<std::string> find_model_config(const std::string& name_or_path) {
    std::error_code ec;
    if (is_plain_name(name_or_path)) {
        OOMLAB_TRY(content, content_dir());
        std::string name = name_or_path;
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        const fs::path path = fs::path(content) / "models" / (name + ".json");
        if (fs::is_regular_file(path, ec)) return path.string();
    }
    if (fs::is_directory(name_or_path, ec)) {
        const fs::path inside = fs::path(name_or_path) / "config.json";
        if (fs::is_regular_file(inside, ec)) return inside.string();
        return fail(Error::io(name_or_path + ": this folder has no config.json"));
    }
    if (fs::exists(name_or_path, ec)) return name_or_path;
    const auto names = model_names();
    const std::string close = nearest(name_or_path, names);
    std::string list;
    for (const std::string& n : names) list += (list.empty() ? "" : " ") + n;
    return fail(Error::io(name_or_path + ": no such file and no model of that name" +
                          (close.empty() ? "" : " (did you mean " + close + "?)") +
                          "; known: " + list));
}

Result<ModelShape> load_model_shape(const std::string& name_or_path) {
    OOMLAB_TRY(path, find_model_config(name_or_path));
    OOMLAB_TRY(text, read_text_file(path, 8 * kMiB));
    OOMLAB_TRY(shape, parse_config_json(text, name_or_path));
    if (shape.name.empty()) shape.name = name_or_path;
    return shape;
}

std::vector<std::string> model_names() {
    auto content = content_dir();
    if (!content) return {};
    return names_in(*content + "/models", ".json");
}

}  // namespace oomlab
