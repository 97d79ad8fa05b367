#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

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
