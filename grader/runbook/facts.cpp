#include "grader/runbook/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "grader/runbook/drill.hpp"
#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/toml_reader.hpp"

namespace oomlab::grader {
namespace {

Result<toml::table> parse_file(const std::string& file) {
    OOMLAB_TRY(text, read_text_file(file));
    return parse_toml(text, file);
}

void read_fact(const toml::node& node, const std::string& name, TomlReader& r, const DrillLanguage& language, Incident& card) {
    const auto kind = language.facts.find(name);
    if (kind == language.facts.end()) return r.error(&node, fmt::format("unknown fact '{}'", name));
    if (kind->second.kind == FactKind::Kind::flag) {
        if (const auto v = node.value<bool>()) {
            card.facts[name] = *v;
            return;
        }
    } else if (kind->second.kind == FactKind::Kind::number) {
        if (const toml::array* a = node.as_array(); a != nullptr && a->size() == 2) {
            card.ranges[name] = {a->get(0)->value_or(0.0), a->get(1)->value_or(0.0)};
            return;
        }
        if (const auto v = node.value<double>()) {
            card.facts[name] = *v;
            return;
        }
    } else if (const auto v = node.value<std::string>(); v && std::find(kind->second.words.begin(), kind->second.words.end(), *v) != kind->second.words.end()) {
        card.facts[name] = *v;
        return;
    }
    r.error(&node, fmt::format("'{}' has a value of the wrong kind", name));
}

}  // namespace

std::string show(const FactValue& value) {
    if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
    if (const double* d = std::get_if<double>(&value)) return fmt::format("{:g}", *d);
    return std::get<std::string>(value);
}

Result<DrillLanguage> load_drill_language(const std::string& content_dir) {
    const std::string file = content_dir + "/runbook/facts.toml";
    OOMLAB_TRY(root, parse_file(file));
    std::optional<Error> error;
    DrillLanguage out;
    TomlReader r(root, file, "", error);
    for (const toml::table* t : r.tables("fact")) {
        TomlReader fr(*t, file, "fact", error);
        const std::string name = fr.text("name", "");
        FactKind kind;
        const std::string k = fr.one_of("kind", "word", {"flag", "number", "word"});
        kind.kind = k == "flag" ? FactKind::Kind::flag : k == "number" ? FactKind::Kind::number : FactKind::Kind::word;
        kind.meaning = fr.text("meaning", "");
        kind.words = fr.texts("words");
        fr.finish();
        out.facts.emplace(name, std::move(kind));
    }
    for (const toml::table* t : r.tables("step")) {
        TomlReader sr(*t, file, "step", error);
        const std::string name = sr.text("name", "");
        Step step;
        step.meaning = sr.text("meaning", "");
        step.captures = sr.flag("captures", false);
        step.restarts = sr.flag("restarts", false);
        step.dangerous = sr.text("dangerous", "");
        sr.finish();
        out.steps.emplace(name, std::move(step));
    }
    r.finish();
    if (error) return fail(*error);
    return out;
}

Result<std::vector<Incident>> load_incidents(const std::string& content_dir, const DrillLanguage& language) {
    const std::string folder = content_dir + "/runbook/incidents";
    std::vector<Incident> out;
    for (const std::string& name : names_in(folder, ".toml")) {
        const std::string file = folder + "/" + name + ".toml";
        OOMLAB_TRY(root, parse_file(file));
        std::optional<Error> error;
        TomlReader r(root, file, "", error);
        for (const toml::table* t : r.tables("incident")) {
            TomlReader ir(*t, file, "incident", error);
            Incident card;
            card.id = ir.text("id", "");
            card.story = ir.text("story", "");
            card.because = ir.text("because", "");
            card.basis = ir.one_of("basis", "simulator", {"simulator", "field"});
            for (const u64 type : ir.counts("types")) card.types.push_back(static_cast<int>(type));
            card.cures = ir.texts("cures");
            card.look_alike = ir.flag("look_alike", false);
            for (const std::string& c : card.cures)
                if (const auto step = language.steps.find(c); step == language.steps.end() || !step->second.dangerous.empty()) ir.error(t, fmt::format("'{}' is no safe step", c));
            if (const toml::table* facts = ir.table("facts"))
                for (const auto& [key, node] : *facts) read_fact(node, std::string(key.str()), ir, language, card);
            ir.finish();
            const bool typed = !card.types.empty() && std::all_of(card.types.begin(), card.types.end(), [](int v) { return v >= 1 && v <= 6; });
            if (card.id.empty() || card.story.empty() || card.because.empty() || card.cures.empty() || !typed)
                ir.error(t, "an incident needs id, story, because, types (1 to 6) and cures");
            out.push_back(std::move(card));
        }
        r.finish();
        if (error) return fail(*error);
    }
    if (out.empty()) return fail(Error::io(folder + ": no incidents"));
    return out;
}

}  // namespace oomlab::grader
