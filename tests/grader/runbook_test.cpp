#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "grader/runbook/drill.hpp"
#include "grader/runbook/lint.hpp"
#include "grader/runbook/marking.hpp"
#include "tests/grader/agreement.hpp"

using namespace oomlab;
using namespace oomlab::grader;

namespace {
const RunbookRules& rules() {
    static const RunbookRules r = [] {
        auto made = load_runbook_rules(OOMLAB_SOURCE_DIR "/content");
        REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
        return std::move(*made);
    }();
    return r;
}
std::string slurp(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}
}  // namespace

TEST_SUITE("runbook") {
    TEST_CASE("the labelled runbooks of the field are marked as two readers mark them") {
        const std::string folder = OOMLAB_SOURCE_DIR "/../shared/field/answers/";
        std::ifstream in(folder + "runbooks.tsv");
        if (!in) {
            MESSAGE("skipped: the field's labelled runbooks are not beside this checkout");
            return;
        }
        test::Agreement all;
        std::string line;
        std::getline(in, line);
        while (std::getline(in, line)) {
            std::istringstream cells(line);
            std::string file, kind, score;
            std::getline(cells, file, '\t');
            std::getline(cells, kind, '\t');
            std::getline(cells, score, '\t');
            const auto m = mark_runbook(rules(), slurp(folder + "runbooks/" + file));
            REQUIRE(m);
            all.add(m->mark.score, std::stod(score));
            if (kind == "dangerous") {
                bool dangerous = false;
                for (const Caught& c : m->mark.misconceptions) dangerous = dangerous || c.dangerous;
                CHECK_MESSAGE(dangerous, file);
            }
            if (kind == "excellent") CHECK_MESSAGE(m->mark.misconceptions.empty(), file);
        }
        MESSAGE("runbooks: n=" << all.got.size() << " mean error " << all.mean_error() << ", pass agreement " << all.pass_agreement()
                               << ", r " << all.correlation());
        CHECK(all.mean_error() <= 12);
        CHECK(all.pass_agreement() >= 0.9);
        CHECK(all.correlation() >= 0.85);
    }
    TEST_CASE("markdown: headings, code and tables keep their lines and sections") {
        const auto md = parse_markdown("# A\n\ntext\n\n## B\n\n    kubectl get pods\n\n| x | y |\n|---|---|\n| 137 | host |\n");
        REQUIRE(md);
        REQUIRE(md->blocks.size() == 6);
        CHECK(md->blocks[2].section == 2);
        CHECK(md->blocks[3].kind == MdBlock::Kind::code);
        REQUIRE(md->code.size() == 1);
        CHECK(md->code[0].line == 7);
        CHECK(md->blocks[5].text == "137 -> host");
    }
    TEST_CASE("commands that nobody has are named with what to write instead") {
        const auto faults = [&](const char* line) { return check_commands(rules().commands, {{line, 1, false}}).faults; };
        CHECK(faults("kubectl -n a logs pod/x --previous > x.log").empty());
        CHECK(faults("journalctl -fu osprey --since -1h | grep -i killed").empty());
        CHECK(faults("mytool --anything goes").empty());
        REQUIRE(faults("kubectl logs x --last-crash").size() == 1);
        CHECK(faults("kubectl logs x --last-crash")[0].what.find("use --previous") != std::string::npos);
        CHECK(faults("sudo dmesg --oom-only").size() == 1);
        CHECK(faults("kubectl rollback deploy/x").size() == 1);
    }
    TEST_CASE("forbidding a danger is not advising it") {
        const auto dangers = [&](const std::string& text) {
            const auto m = mark_runbook(rules(), text);
            REQUIRE(m);
            std::size_t n = 0;
            for (const Caught& c : m->mark.misconceptions) n += c.dangerous ? 1 : 0;
            return n;
        };
        CHECK(dangers("# R\n\nRaise gpu_memory_utilization to 0.97 and restart.\n") == 1);
        CHECK(dangers("# R\n\nNever raise gpu_memory_utilization during an incident.\n") == 0);
        CHECK(dangers("# R\n\nSwitch off the OOM killer.\n") == 1);
        CHECK(dangers("# R\n\nDo not switch off the OOM killer.\n") == 0);
        CHECK(dangers("# R\n\n## Common mistakes\n\n- Raising gpu_memory_utilization\n") == 0);
    }
    TEST_CASE("too large a file is refused, odd bytes are not") {
        CHECK_FALSE(mark_runbook(rules(), std::string(kMaxRunbookBytes + 1, 'x')));
        CHECK(mark_runbook(rules(), std::string("\x00\xff# \x1b[31m red\n", 14)));
        CHECK(mark_runbook(rules(), ""));
    }
}

namespace {
struct Stage {
    DrillLanguage language;
    std::vector<Incident> cards;
};
const Stage& stage() {
    static const Stage s = [] {
        Stage made;
        auto language = load_drill_language(OOMLAB_SOURCE_DIR "/content");
        REQUIRE_MESSAGE(language.has_value(), (language ? "" : language.error().message));
        made.language = std::move(*language);
        auto cards = load_incidents(OOMLAB_SOURCE_DIR "/content", made.language);
        REQUIRE_MESSAGE(cards.has_value(), (cards ? "" : cards.error().message));
        made.cards = std::move(*cards);
        return made;
    }();
    return s;
}
Result<DecisionTable> table_in(const std::string& runbook) {
    auto md = parse_markdown(runbook);
    REQUIRE(md);
    return find_decision_table(*md, "r.md", stage().language);
}
std::string fenced(const std::string& rules_text) { return "# R\n\n```toml\n" + rules_text + "```\n"; }
}  // namespace

TEST_SUITE("drill") {
    TEST_CASE("there are at least forty incidents, of every type, from simulator and field, with look-alikes") {
        CHECK(stage().cards.size() >= 40);
        int types[7] = {}, look_alikes = 0, field = 0;
        for (const Incident& c : stage().cards) {
            ++types[c.types.front()];
            look_alikes += c.look_alike ? 1 : 0;
            field += c.basis == "field" ? 1 : 0;
        }
        for (int t = 1; t <= 6; ++t) CHECK(types[t] >= 5);
        CHECK(look_alikes >= 10);
        CHECK(field >= 15);
    }
    TEST_CASE("a sound table passes under every seed and leads to nothing dangerous") {
        const auto table = table_in(slurp(OOMLAB_SOURCE_DIR "/tests/grader/corpus/runbook_good.md"));
        REQUIRE_MESSAGE(table.has_value(), (table ? "" : table.error().message));
        for (u64 seed = 1; seed <= 40; ++seed) {
            const DrillResult r = play_drill(*table, stage().cards, stage().language, seed);
            CHECK_MESSAGE(r.pass, drill_as_text(r));
            CHECK(r.played.size() >= kDrillLeast);
        }
    }
    TEST_CASE("the sound runbook also passes mark and lint") {
        const std::string text = slurp(OOMLAB_SOURCE_DIR "/tests/grader/corpus/runbook_good.md");
        const auto m = mark_runbook(rules(), text);
        REQUIRE(m);
        CHECK_MESSAGE(m->mark.score >= 85, runbook_as_text(rules(), *m));
        const auto findings = lint_runbook(rules(), stage().language, text, "r.md");
        REQUIRE(findings);
        for (const Finding& f : *findings) CHECK_MESSAGE(f.weight != Finding::Weight::error, f.text);
    }
    TEST_CASE("one seed, one drill") {
        const auto table = table_in(slurp(OOMLAB_SOURCE_DIR "/tests/grader/corpus/runbook_good.md"));
        REQUIRE(table);
        const auto play = [&](u64 seed) { return drill_as_json(play_drill(*table, stage().cards, stage().language, seed)); };
        CHECK(play(7) == play(7));
        CHECK(play(7) != play(8));
    }
    TEST_CASE("the unedited skeleton fails mark, lint and drill") {
        const auto text = runbook_skeleton(OOMLAB_SOURCE_DIR "/content", stage().language);
        REQUIRE(text);
        const auto m = mark_runbook(rules(), *text);
        REQUIRE(m);
        CHECK_MESSAGE(m->mark.score < 20, runbook_as_text(rules(), *m));
        const auto table = table_in(*text);
        REQUIRE_MESSAGE(table.has_value(), (table ? "" : table.error().message));
        for (u64 seed = 1; seed <= 20; ++seed) CHECK_FALSE(play_drill(*table, stage().cards, stage().language, seed).pass);
        const auto findings = lint_runbook(rules(), stage().language, *text, "r.md");
        REQUIRE(findings);
        CHECK(findings->size() > 8);
    }
    TEST_CASE("one type for everything fails, whatever the steps") {
        std::string all = "steps = [\"capture\"";
        for (const auto& [name, step] : stage().language.steps)
            if (step.dangerous.empty() && name != "capture") all += ", \"" + name + "\"";
        for (int type = 1; type <= 6; ++type) {
            const auto table = table_in(fenced("[[rule]]\ntype = " + std::to_string(type) + "\n" + all + "]\n"));
            REQUIRE(table);
            for (u64 seed = 1; seed <= 10; ++seed) CHECK_FALSE(play_drill(*table, stage().cards, stage().language, seed).pass);
        }
    }
    TEST_CASE("a restart before the capture is dangerous, and so is a larger share") {
        const auto restart = table_in(fenced("[[rule]]\ntype = 3\nsteps = [\"restart\", \"capture\"]\n"));
        REQUIRE(restart);
        CHECK(play_drill(*restart, stage().cards, stage().language, 1).dangers == kDrillDefault);
        const auto raise = table_in(fenced("[[rule]]\ntype = 2\nsteps = [\"capture\", \"raise_utilization\"]\n"));
        REQUIRE(raise);
        CHECK(play_drill(*raise, stage().cards, stage().language, 1).dangers == kDrillDefault);
    }
    TEST_CASE("mistakes in a table are named with their line and the nearest name") {
        const auto message = [&](const std::string& rules_text) {
            const auto t = table_in(fenced(rules_text));
            REQUIRE_FALSE(t);
            return t.error().message;
        };
        CHECK(message("[[rule]]\nif = { exit_cod = 137 }\ntype = 5\n").find("r.md:5:") == 0);
        CHECK(message("[[rule]]\nif = { exit_cod = 137 }\ntype = 5\n").find("nearest: 'exit_code'") != std::string::npos);
        CHECK(message("[[rule]]\nif = { when = \"at_lod\" }\ntype = 1\n").find("nearest: 'at_load'") != std::string::npos);
        CHECK(message("[[rule]]\ntype = 1\nsteps = [\"captur\"]\n").find("nearest: 'capture'") != std::string::npos);
        CHECK(message("[[rule]]\nif = { prompt_tokens = \"> many\" }\ntype = 2\n").find("comparison") != std::string::npos);
        CHECK(message("[[rule]]\ntype = 9\n").find("1 to 6") != std::string::npos);
        CHECK(message("[[rule]]\ntype = \n").find("r.md:5:") == 0);
    }
    TEST_CASE("no table, or two of them, is an error and no crash") {
        CHECK_FALSE(table_in("# R\n\ntext\n"));
        CHECK_FALSE(table_in(fenced("[[rule]]\ntype = 1\n") + fenced("[[rule]]\ntype = 2\n")));
    }
    TEST_CASE("an absent fact fulfils no condition") {
        const auto table = table_in(fenced("[[rule]]\nif = { kv_usage = \"< 0.5\" }\ntype = 2\n"));
        REQUIRE(table);
        CHECK(decide(*table, {}) == nullptr);
        CHECK(decide(*table, {{"kv_usage", 0.4}}) != nullptr);
        CHECK(decide(*table, {{"kv_usage", 0.5}}) == nullptr);
    }
}
