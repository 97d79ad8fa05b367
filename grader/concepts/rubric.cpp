#include "grader/concepts/rubric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "labs/catalog/toml_reader.hpp"

namespace oomlab::grader {
namespace {

std::string place(const std::string& file, const toml::node& node) {
    return fmt::format("{}:{}:{}", file, node.source().begin.line, node.source().begin.column);
}

Result<toml::table> parse_file(const std::string& file) {
    OOMLAB_TRY(text, read_text_file(file));
    return parse_toml(text, file);
}

void read_patterns(TomlReader& reader, const char* key, Vocabulary& vocabulary, std::vector<Pattern>& out) {
    const std::vector<std::string> sources = reader.texts(key);
    const toml::array* list = sources.empty() ? nullptr : reader.node(key)->as_array();
    for (std::size_t i = 0; i < sources.size(); ++i) {
        auto pattern = compile_pattern(sources[i], vocabulary);
        if (pattern)
            out.push_back(std::move(*pattern));
        else
            reader.error(list->get(i), pattern.error().message);
    }
}

Result<void> define_sets(const toml::table& sets, const std::string& file, Vocabulary& vocabulary) {
    for (const auto& [key, node] : sets) {
        if (key == "known_words") {
            if (const auto s = node.value<std::string>()) vocabulary.know_words(*s);
            continue;
        }
        const toml::array* a = node.as_array();
        if (a == nullptr) return fail(Error::parse(fmt::format("{}: set '{}' must be a list of terms", place(file, node), key.str())));
        std::vector<std::string> terms;
        for (const toml::node& n : *a) {
            const auto s = n.value<std::string>();
            if (!s) return fail(Error::parse(fmt::format("{}: set '{}' wants strings only", place(file, n), key.str())));
            terms.push_back(*s);
        }
        if (auto r = vocabulary.define(key.str(), terms); !r)
            return fail(Error::parse(fmt::format("{}: {}", place(file, node), r.error().message)));
    }
    return {};
}

Result<void> read_lexicon(const std::string& file, Vocabulary& vocabulary) {
    OOMLAB_TRY(root, parse_file(file));
    return define_sets(root, file, vocabulary);
}

Concept read_concept(const toml::table& table, const std::string& file, Vocabulary& vocabulary, std::optional<Error>& error) {
    Concept c;
    TomlReader r(table, file, "concept", error);
    c.id = r.text("id", "");
    c.name = r.text("name", "");
    c.role = r.one_of("role", "required", {"required", "bonus"}) == "bonus" ? Concept::Role::bonus : Concept::Role::required;
    c.weight = r.number("weight", 1, 0, 100);
    c.mention_share = r.number("mention_share", 0.2, 0, 1);
    c.claim_share = r.number("claim_share", 0.9, 0, 1);
    read_patterns(r, "claim", vocabulary, c.claim);
    read_patterns(r, "explain", vocabulary, c.explain);
    read_patterns(r, "mention", vocabulary, c.mention);
    read_patterns(r, "anti", vocabulary, c.anti);
    c.missing = r.text("missing", "");
    c.deepen = r.text("deepen", "");
    c.hints = r.texts("hints");
    c.evidence = r.text("evidence", "");
    r.finish();
    if (c.id.empty() || c.name.empty() || c.claim.empty()) r.error(&table, "a concept needs id, name and claim");
    return c;
}

Misconception read_misconception(const toml::table& table, const std::string& file, Vocabulary& vocabulary, std::optional<Error>& error,
                                 std::vector<std::string>& skip) {
    Misconception m;
    TomlReader r(table, file, "misconception", error);
    m.id = r.text("id", "");
    read_patterns(r, "any", vocabulary, m.any);
    m.penalty = r.number("penalty", 10, 0, 100);
    m.cap = r.number("cap", 100, 0, 100);
    m.fatal = r.flag("fatal", false);
    m.dangerous = r.flag("dangerous", false);
    m.reply = r.text("reply", "");
    skip = r.texts("skip");
    r.finish();
    if (m.id.empty() || m.any.empty() || m.reply.empty()) r.error(&table, "a misconception needs id, any and reply");
    return m;
}

void read_misconceptions(TomlReader& reader, Rubric& rubric) {
    for (const toml::table* t : reader.tables("misconception")) {
        std::vector<std::string> skip;
        Misconception m = read_misconception(*t, reader.file(), rubric.vocabulary, reader.first_error(), skip);
        if (std::find(skip.begin(), skip.end(), rubric.id) == skip.end()) rubric.misconceptions.push_back(std::move(m));
    }
}

}  // namespace

Result<std::unique_ptr<Rubric>> load_rubric(const RubricFiles& files) {
    auto rubric = std::make_unique<Rubric>();
    rubric->file = files.rubric;
    OOMLAB_TRY_VOID(read_lexicon(files.lexicon, rubric->vocabulary));
    OOMLAB_TRY(root, parse_file(files.rubric));
    std::optional<Error> error;
    TomlReader r(root, files.rubric, "", error);
    rubric->id = r.text("id", "");
    rubric->number = static_cast<int>(r.count("number", 0, 0, 99));
    rubric->title = r.text("title", "");
    rubric->question = r.text("question", "");
    rubric->model_answer = r.text("model_answer", "");
    rubric->pass = r.number("pass", 60, 0, 100);
    rubric->full = r.number("full", 0.9, 0.1, 1);
    rubric->exponent = r.number("exponent", 1, 0.1, 4);
    rubric->words_min = static_cast<u32>(r.count("words_min", 40, 0, 10000));
    rubric->words_max = static_cast<u32>(r.count("words_max", 180, 1, 100000));
    rubric->names_count = r.flag("names_count", false);
    rubric->questions_count = r.flag("questions_count", false);
    if (const toml::table* sets = r.table("sets")) OOMLAB_TRY_VOID(define_sets(*sets, files.rubric, rubric->vocabulary));
    for (const toml::table* t : r.tables("concept")) rubric->concepts.push_back(read_concept(*t, files.rubric, rubric->vocabulary, error));
    read_misconceptions(r, *rubric);
    r.finish();
    if (error) return fail(*error);
    if (rubric->id.empty() || rubric->concepts.empty()) return fail(Error::parse(fmt::format("{}:1:1: a rubric needs an id and concepts", files.rubric)));
    if (!files.shared.empty()) {
        OOMLAB_TRY(shared, parse_file(files.shared));
        TomlReader s(shared, files.shared, "", error);
        read_misconceptions(s, *rubric);
        s.finish();
        if (error) return fail(*error);
    }
    if (auto done = rubric->vocabulary.finish(); !done) return fail(Error::parse(fmt::format("{}:1:1: {}", files.rubric, done.error().message)));
    return rubric;
}

}  // namespace oomlab::grader
