#include "grader/course/exercise.hpp"

#include <fmt/format.h>

#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/toml_reader.hpp"

namespace oomlab::course {

Result<Exercise> load_exercise(const std::string& folder, const std::string& id) {
    const std::string path = folder + "/lab.toml";
    OOMLAB_TRY(text, read_text_file(path));
    OOMLAB_TRY(root, parse_toml(text, path));
    std::optional<Error> error;
    TomlReader r(root, path, "", error);
    Exercise e;
    e.id = id;
    e.folder = folder;
    e.title = r.text("title", id);
    e.kind = r.one_of("kind", "induce", {"induce", "cliff", "budget", "leak", "runbook", "interview", "incident"});
    e.type = static_cast<int>(r.count("type", 0, 0, 6));
    e.files = r.texts("files");
    e.hints = r.texts("hints");
    e.points = r.number("points", 10, 0, 1000);
    e.version = r.count("version", 1, 1, 1000);
    if (e.hints.size() != 4) r.error(r.node("hints"), "hints has four steps: nudge, hint, fill-in, tell");
    for (const toml::table* t : r.tables("predict")) {
        TomlReader p(*t, path, "predict.", error);
        e.predict.push_back({p.text("key", ""), p.text("ask", ""), p.one_of("unit", "", {"", "bytes", "tokens", "minutes"})});
        p.finish();
    }
    for (const toml::table* t : r.tables("variant")) {
        Variant v;
        for (const auto& [key, value] : *t) v.values[std::string(key.str())] = value.value<std::string>().value_or("");
        e.variants.push_back(std::move(v));
    }
    if (const toml::table* t = r.table("limits")) {
        for (const auto& [key, value] : *t) e.limits[std::string(key.str())] = value.value<double>().value_or(0);
    }
    if (const toml::table* t = r.table("words")) {
        TomlReader w(*t, path, "words.", error);
        for (const auto& [key, value] : *t) {
            static_cast<void>(value);
            e.words[std::string(key.str())] = w.texts(key.str());
        }
        w.finish();
    }
    r.finish();
    if (error) return fail(*error);
    return e;
}

Result<std::vector<Exercise>> load_course() {
    OOMLAB_TRY(content, content_dir());
    const std::string path = content + "/course.toml";
    OOMLAB_TRY(text, read_text_file(path));
    OOMLAB_TRY(root, parse_toml(text, path));
    std::optional<Error> error;
    TomlReader r(root, path, "", error);
    r.table("teaches");
    const std::vector<std::string> ids = r.texts("exercises");
    r.finish();
    if (error) return fail(*error);
    std::vector<Exercise> list;
    for (const std::string& id : ids) {
        if (!is_plain_name(id)) return fail(Error::parse(path + ": '" + id + "' is no exercise name"));
        OOMLAB_TRY(e, load_exercise(content + "/labs/" + id, id));
        list.push_back(std::move(e));
    }
    return list;
}

}  // namespace oomlab::course
