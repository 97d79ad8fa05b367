#include "grader/report/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace oomlab::course {

using nlohmann::ordered_json;

namespace {

std::string clean(const std::string& text) {
    std::string out;
    for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    return out;
}
std::string xml(const std::string& text) {
    std::string out;
    for (const char c : clean(text)) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '"') out += "&quot;";
        else out += c;
    }
    return out;
}
std::string cell(const std::string& text) {
    std::string out = "\"";
    for (const char c : clean(text)) out += c == '"' ? "\"\"" : c == '\n' ? " " : std::string(1, c);
    return out + "\"";
}
double half(double v) { return std::round(2 * v) / 2; }
std::string sentence(const CheckPoint& p) {
    std::string text = p.saw;
    if (p.state != CheckState::pass && !p.asked.empty()) text += (text.empty() ? "" : ". ") + std::string("Asked: ") + p.asked;
    if (!p.next.empty()) text += ". Next: " + p.next;
    return text;
}
bool judged(const CheckPoint& p) { return p.state == CheckState::pass || p.state == CheckState::fail; }

ordered_json point_json(const CheckPoint& p) {
    ordered_json j = {{"id", p.id}, {"title", p.title}, {"state", check_state_name(p.state)}};
    if (judged(p)) j["score"] = p.score;
    else j["score"] = nullptr;   // not graded is not zero
    j["max"] = p.max;
    j["saw"] = p.saw;
    j["asked"] = p.asked;
    j["next"] = p.next;
    return j;
}

ordered_json results_json(const std::vector<CheckResult>& results) {
    ordered_json list = ordered_json::array();
    for (const CheckResult& r : results) {
        ordered_json points = ordered_json::array();
        for (const CheckPoint& p : r.points) points.push_back(point_json(p));
        list.push_back({{"exercise", r.exercise}, {"title", r.title}, {"passed", r.passed()}, {"graded", r.graded()}, {"score", r.score()}, {"max", r.max_all()}, {"checks", points}});
    }
    return list;
}

std::string dump(const ordered_json& j, int indent = 2) { return j.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace); }

std::string junit(const Grade& g) {
    std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
    std::string suites;
    for (const CheckResult& r : g.results) {
        std::size_t f = 0, e = 0, s = 0;
        std::string cases;
        for (const CheckPoint& p : r.points) {
            const std::string name = p.id.substr(p.id.find('.') + 1);
            cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0.0\">", xml(r.exercise), xml(name));
            if (p.state == CheckState::fail) {
                ++f;
                cases += fmt::format("<failure message=\"{}\" type=\"NotYet\"/>", xml(sentence(p)));
            } else if (p.state == CheckState::error) {
                ++e;
                cases += fmt::format("<error message=\"{}\" type=\"Grader\"/>", xml(p.saw));
            } else if (p.state != CheckState::pass) {
                ++s;
                cases += fmt::format("<skipped message=\"{}\"/>", xml(p.saw.empty() ? check_state_name(p.state) : p.saw));
            }
            cases += "</testcase>\n";
        }
        suites += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"0.0\">\n    <properties>"
                              "<property name=\"score\" value=\"{}\"/><property name=\"max_score\" value=\"{}\"/></properties>\n{}  </testsuite>\n",
                              xml(r.exercise), r.points.size(), f, e, s, half(r.score()), half(r.max_all()), cases);
        tests += r.points.size();
        failures += f;
        errors += e;
        skipped += s;
    }
    return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"oomlab\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.1f}\">\n{}</testsuites>\n",
                       tests, failures, errors, skipped, g.wall_s, suites);
}

ordered_json gradescope(const Grade& g) {
    ordered_json tests = ordered_json::array();
    int n = 0;
    for (const CheckResult& r : g.results) {
        ++n;
        int k = 0;
        for (const CheckPoint& p : r.points) {
            ++k;
            if (!judged(p) && p.state != CheckState::blocked) continue;   // said in `output` below
            tests.push_back({{"score", half(p.score)}, {"max_score", half(p.max)}, {"status", p.state == CheckState::pass ? "passed" : "failed"},
                             {"name", r.title + ": " + p.title}, {"number", fmt::format("{}.{}", n, k)}, {"output", sentence(p)}, {"tags", {r.exercise}}});
        }
    }
    std::string not_graded;
    for (const CheckResult& r : g.results) {
        for (const CheckPoint& p : r.points) {
            if (!judged(p) && p.state != CheckState::blocked) not_graded += p.id + " ";
        }
    }
    return {{"output", not_graded.empty() ? "everything was graded" : "not graded (never counted as zero): " + not_graded}, {"execution_time", g.wall_s}, {"tests", tests}};
}

ordered_json classroom50(const Grade& g) {
    const auto env = [](const char* name) { const char* v = std::getenv(name); return std::string(v != nullptr ? v : ""); };
    ordered_json tests = ordered_json::array();
    long long score = 0, max = 0;
    for (const CheckResult& r : g.results) {
        for (const CheckPoint& p : r.points) {
            const long long s = std::llround(10 * (judged(p) ? p.score : 0)), m = std::llround(10 * p.max);
            score += s;
            max += m;
            tests.push_back({{"test-name", p.id}, {"passed", p.state == CheckState::pass}, {"score", s}, {"max-score", m}, {"state", check_state_name(p.state)}, {"message", sentence(p)}});
        }
    }
    return {{"schema", "classroom50/result/v1"}, {"classroom", env("CLASSROOM")}, {"assignment", env("ASSIGNMENT")}, {"submission", env("SUBMISSION_TAG")},
            {"commit", env("COMMIT_URL")}, {"release", env("RELEASE_URL")}, {"review", env("REVIEW_URL")}, {"score", score}, {"max-score", max}, {"tests", tests}};
}

}  // namespace

double Grade::score() const {
    double s = 0;
    for (const CheckResult& r : results) s += r.score();
    return s;
}
double Grade::max() const {
    double s = 0;
    for (const CheckResult& r : results) s += r.max();
    return s;
}
double Grade::max_all() const {
    double s = 0;
    for (const CheckResult& r : results) s += r.max_all();
    return s;
}
bool Grade::passed() const {
    for (const CheckResult& r : results) {
        if (!r.passed()) return false;
    }
    return !results.empty();
}

std::string check_text(const CheckResult& r) {
    std::string out = fmt::format("{}  {}\n", r.exercise, r.title);
    for (const CheckPoint& p : r.points) {
        const char* mark = p.state == CheckState::pass ? "[x]" : p.state == CheckState::fail ? "[ ]" : p.state == CheckState::error ? "[!]" : "[-]";
        out += fmt::format("  {} {}", mark, p.title);
        if (judged(p)) out += fmt::format("  {:g}/{:g}", half(p.score), half(p.max));
        out += "\n";
        if (!p.saw.empty()) out += fmt::format("      {}: {}\n", p.state == CheckState::blocked || p.state == CheckState::not_run ? "not yet" : "saw", clean(p.saw));
        if (p.state == CheckState::fail && !p.asked.empty()) out += fmt::format("      asked: {}\n", clean(p.asked));
        if (!p.next.empty()) out += fmt::format("      next: {}\n", clean(p.next));
    }
    return out;
}

std::string check_json(const std::vector<CheckResult>& results) { return dump(results_json(results)); }

Result<std::string> export_grade(const Grade& g, const std::string& format) {
    std::set<std::string> names;
    for (const CheckResult& r : g.results) {
        for (const CheckPoint& p : r.points) {
            if (!names.insert(p.id).second) return fail(Error::internal("two checks have the name " + p.id));
            if (p.score < 0 || p.score > p.max + 1e-9) return fail(Error::internal(fmt::format("{} scores {} of {}", p.id, p.score, p.max)));
        }
    }
    if (format == "json") {
        return dump({{"folder", g.folder_name}, {"passed", g.passed()}, {"score", g.score()}, {"max", g.max_all()}, {"max_graded", g.max()}, {"exercises", results_json(g.results)}}) + "\n";
    }
    if (format == "gradescope") return dump(gradescope(g)) + "\n";
    if (format == "classroom50") return dump(classroom50(g)) + "\n";
    if (format == "junit") return junit(g);
    if (format == "autolab") {
        ordered_json scores = ordered_json::object();
        for (const CheckResult& r : g.results) {
            if (r.graded()) scores[r.exercise] = half(r.score());
        }
        return ordered_json{{"scores", scores}}.dump() + "\n";   // the last line, alone
    }
    if (format == "csv") {
        std::string out = "exercise,title,state,score,max_score,feedback\n";
        for (const CheckResult& r : g.results) {
            std::string say;
            for (const CheckPoint& p : r.points) {
                if (p.state != CheckState::pass) say += p.title + ": " + sentence(p) + " ";
            }
            out += fmt::format("{},{},{},{},{:.2f},{}\n", r.exercise, cell(r.title), r.passed() ? "pass" : r.graded() ? "fail" : "not_run",
                               r.graded() ? fmt::format("{:.2f}", half(r.score())) : "", half(r.max_all()), cell(say));
        }
        return out;
    }
    if (format == "text") {
        std::string out;
        for (const CheckResult& r : g.results) out += check_text(r) + "\n";
        out += fmt::format("score {:g} of {:g}", half(g.score()), half(g.max_all()));
        if (g.max() < g.max_all()) out += fmt::format(" ({:g} were graded; what was not graded is not a zero)", half(g.max()));
        return out + "\n";
    }
    return fail(Error::usage(fmt::format("no such format: {} (known: text json gradescope junit classroom50 autolab csv)", format)));
}

}  // namespace oomlab::course
