// The course proven by machine: starters fail, solutions pass, hints are whole, and known cheats are
// caught with the reason.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "grader/report/report.hpp"
#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/text_file.hpp"

using namespace oomlab;
using namespace oomlab::course;
namespace fs = std::filesystem;

namespace {

struct Lab {
    std::string root;
    std::vector<Exercise> course;
    Folder folder;

    static Lab make() {
        std::string at = fs::temp_directory_path().string() + "/oomlab-course-XXXXXX";
        REQUIRE(mkdtemp(at.data()) != nullptr);
        auto course = load_course();
        REQUIRE_MESSAGE(course.has_value(), course.error().message);
        auto folder = Folder::start(at, *course, 42);
        REQUIRE_MESSAGE(folder.has_value(), folder.error().message);
        return Lab{at, *course, *folder};
    }
    ~Lab() {
        std::error_code ec;
        if (!root.empty()) fs::remove_all(root, ec);
    }
    Lab(std::string r, std::vector<Exercise> c, Folder f) : root(std::move(r)), course(std::move(c)), folder(std::move(f)) {}
    Lab(const Lab&) = delete;

    const Exercise& at(const std::string& id) const {
        for (const Exercise& e : course) {
            if (e.id == id) return e;
        }
        FAIL("no exercise " << id);
        return course.front();
    }
    void predict(const Exercise& e) {
        for (const PredictLine& line : e.predict) folder.progress(e.id).predicted[line.key] = "a guess";
    }
    void solve(const Exercise& e) {
        predict(e);
        for (const auto& f : fs::directory_iterator(e.folder + "/solution")) {
            if (f.path().extension() == ".toml") write(e, f.path().filename().string(), folder.instantiate(e, *read_text_file(f.path().string())));
        }
    }
    void write(const Exercise& e, const std::string& file, const std::string& text) const {
        fs::remove(folder.path(e, file));
        std::ofstream(folder.path(e, file)) << text;
    }
    std::string read(const Exercise& e, const std::string& file) const { return *read_text_file(folder.path(e, file)); }
    CheckResult check(const Exercise& e) {
        auto r = check_exercise(e, folder, CheckOptions{});
        REQUIRE_MESSAGE(r.has_value(), r.error().message);
        return *r;
    }
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    return text.replace(at, from.size(), to);
}

const CheckPoint& point(const CheckResult& r, const std::string& id) {
    for (const CheckPoint& p : r.points) {
        if (p.id == r.exercise + "." + id) return p;
    }
    FAIL("no point " << id);
    return r.points.front();
}

}  // namespace

TEST_CASE("course: every exercise has a task, its files and four hints, and starters do not pass") {
    Lab lab = Lab::make();
    CHECK(lab.course.size() == 12);
    for (const Exercise& e : lab.course) {
        CAPTURE(e.id);
        CHECK(e.hints.size() == 4);
        CHECK(fs::exists(lab.root + "/" + e.id + "/README.md"));
        for (const std::string& f : e.files) {
            CHECK(fs::exists(lab.folder.path(e, f)));
            CHECK(lab.read(e, f).find('@') == std::string::npos);
        }
        lab.predict(e);
        if (e.id == "d") continue;   // three hours: its starter says nothing, which the next case covers
        CHECK_FALSE(lab.check(e).passed());
    }
}

TEST_CASE("course: the solutions of lab A and of the incident pass") {
    Lab lab = Lab::make();
    for (const char* id : {"a1", "a2", "a3", "a4", "a5", "a6", "incident"}) {
        const Exercise& e = lab.at(id);
        lab.solve(e);
        const CheckResult r = lab.check(e);
        bool could_run = true;
        for (const CheckPoint& p : r.points) could_run = could_run && p.state != CheckState::not_run;
        if (!could_run) {
            MESSAGE(id, " could not run here: ", r.points.front().saw);
            continue;
        }
        CAPTURE(check_text(r));
        CHECK(r.passed());
    }
}

TEST_CASE("course: lab B compares with its own bisection") {
    Lab lab = Lab::make();
    const Exercise& e = lab.at("b");
    lab.solve(e);
    lab.write(e, "answer.toml", "cliff_tokens = 5000\ncliff_tokens_batch_4 = 1250\nactivation_bytes_per_token = 118784\nformula = \"6 I + 8 h\"\n");
    const CheckResult wrong = lab.check(e);
    CHECK(point(wrong, "cliff").state == CheckState::fail);
    // 6 x 14,336 + 8 x 4,096 = 118,784: the shape of every variant of the task.
    CHECK(point(wrong, "slope").state == CheckState::pass);
    CHECK(point(wrong, "cured").state == CheckState::pass);
}

TEST_CASE("cheats: dropping traffic, deleting the bug, changing the card or the model is no cure") {
    Lab lab = Lab::make();
    const Exercise& a4 = lab.at("a4");
    lab.solve(a4);
    lab.write(a4, "cured.toml", replaced(lab.read(a4, "cured.toml"), "[[fault]]\nkind = \"request_retained\"\nbytes = \"320KiB\"", ""));
    CHECK(point(lab.check(a4), "cured").saw.find("[[fault]]") != std::string::npos);
    const Exercise& a2 = lab.at("a2");
    lab.solve(a2);
    const std::string cure = lab.read(a2, "cured.toml");
    lab.write(a2, "cured.toml", replaced(cure, "prompt_tokens = 23000", "prompt_tokens = 2300"));
    CHECK(point(lab.check(a2), "cured").saw.find("workload") != std::string::npos);
    lab.write(a2, "cured.toml", replaced(cure, "[workload]", "[gateway]\nmax_input_tokens = 20000\n\n[workload]"));
    const CheckResult dropped = lab.check(a2);
    CHECK(point(dropped, "cured").state == CheckState::fail);
    CHECK(point(dropped, "cured").saw.find("turned away") != std::string::npos);
    lab.write(a2, "cured.toml", replaced(cure, "sim:l4", "sim:h200"));
    CHECK(point(lab.check(a2), "cured").saw.find("device") != std::string::npos);
}

TEST_CASE("cheats: a wrong type, a quoted message from elsewhere and a link are seen") {
    Lab lab = Lab::make();
    const Exercise& a2 = lab.at("a2");
    lab.solve(a2);
    lab.write(a2, "broken.toml", *read_text_file(lab.at("a6").folder + "/solution/broken.toml"));
    const CheckResult other = lab.check(a2);
    CHECK(point(other, "happened").state == CheckState::pass);
    CHECK(point(other, "type").state == CheckState::fail);
    CHECK(point(other, "type").saw.find("type 6") != std::string::npos);
    lab.solve(a2);
    lab.write(a2, "record.toml", replaced(lab.read(a2, "record.toml"), "CUDA out of memory. Tried to allocate", "CUDA out of memory. Tried to allocate 999.99 GiB"));
    CHECK(point(lab.check(a2), "explained").saw.find("message") != std::string::npos);
    fs::remove(lab.folder.path(a2, "broken.toml"));
    fs::create_symlink("/etc/hostname", lab.folder.path(a2, "broken.toml"));
    CHECK(point(lab.check(a2), "happened").saw.find("symbolic link") != std::string::npos);
}

TEST_CASE("cheats: a huge file and requests from outside the folder are refused in one line") {
    Lab lab = Lab::make();
    const Exercise& a2 = lab.at("a2");
    lab.solve(a2);
    const std::string broken = lab.read(a2, "broken.toml");
    lab.write(a2, "broken.toml", "");
    fs::resize_file(lab.folder.path(a2, "broken.toml"), 2ULL << 30);   // sparse
    CHECK(point(lab.check(a2), "happened").saw.find("4 MiB") != std::string::npos);
    lab.write(a2, "broken.toml", replaced(broken, "[workload]\n", "[workload]\nrequests_file = \"/etc/passwd\"\n"));
    CHECK(point(lab.check(a2), "happened").saw.find("inside") != std::string::npos);
}

TEST_CASE("course: a broken state is moved aside and reset keeps what was there") {
    Lab lab = Lab::make();
    std::ofstream(lab.root + "/.oomlab/state.json") << "{ not json";
    CHECK_FALSE(Folder::find(lab.root).has_value());
    CHECK(fs::exists(lab.root + "/.oomlab/state.json.broken"));
    CHECK(Folder::find(lab.root).has_value());
    const Exercise& a1 = lab.at("a1");
    lab.write(a1, "broken.toml", "# mine\n");
    const auto kept = lab.folder.reset(a1);
    REQUIRE(kept.has_value());
    CHECK(*read_text_file(*kept + "/broken.toml") == "# mine\n");
    CHECK(lab.read(a1, "broken.toml").find("# mine") == std::string::npos);
}

TEST_CASE("grade: every form is made from one record, and what was not graded is no zero") {
    CheckResult r;
    r.exercise = "a5";
    r.title = "Exit <137>";
    r.points = {{"a5.happened", "It fails", CheckState::pass, 3, 3, "seen", "asked", ""}, {"a5.cured", "Cured", CheckState::not_run, 0, 3, "no cgroup here", "", ""}};
    Grade g;
    g.results = {r};
    for (const char* form : {"text", "json", "gradescope", "junit", "classroom50", "autolab", "csv"}) {
        CAPTURE(form);
        const auto text = export_grade(g, form);
        REQUIRE(text.has_value());
        CHECK(!text->empty());
    }
    CHECK(export_grade(g, "json")->find("\"score\": null") != std::string::npos);
    CHECK(export_grade(g, "junit")->find("<skipped") != std::string::npos);
    CHECK(export_grade(g, "junit")->find("Exit <137>") == std::string::npos);
    CHECK_FALSE(export_grade(g, "canvas-xyz").has_value());
    g.results.push_back(r);
    CHECK_FALSE(export_grade(g, "json").has_value());   // two checks of one name
}

TEST_CASE("course: every item that the index names is taught in a file that is there") {
    const std::string content = *content_dir();
    const std::string index = *read_text_file(content + "/course.toml");
    std::size_t items = 0;
    for (std::size_t at = 0; (at = index.find("= \"labs/", at)) != std::string::npos; ++at) {
        const std::size_t begin = at + 3, end = index.find('"', begin);
        CAPTURE(index.substr(begin, end - begin));
        CHECK(fs::exists(content + "/" + index.substr(begin, end - begin)));
        ++items;
    }
    CHECK(items >= 15);
}
