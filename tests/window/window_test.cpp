// The window driven without a window: what is drawn, what a click or a key does, and that nothing is cut
// off or covered at the sizes that people have.
#include <doctest/doctest.h>

#include "tests/support/synthetic_trace.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/window_driver.hpp"

using namespace oomlab;
using namespace oomlab::window;
using oomlab::testing::SyntheticRun;
using oomlab::testing::WindowDriver;

namespace {

std::unique_ptr<view::LiveTrace> trace_of(const test::TempDir& dir, const char* name, const SyntheticRun& run) {
    testing::write_synthetic_trace(dir.file(name), run);
    auto live = view::LiveTrace::open(dir.file(name));
    REQUIRE(live);
    return std::move(*live);
}

view::Prediction guess() {
    auto p = view::parse_prediction("context='600MiB'\nweights='15GiB'\nkv='4GiB'\nactivations='700MiB'\ngraphs='400MiB'", "guess");
    REQUIRE(p);
    return *p;
}

void check_no_faults(const WindowDriver& d) {
    for (const std::string& fault : d.faults()) FAIL_CHECK(fault);
}

// A course that remembers what it was asked to do.
class FakeCourse final : public CourseHost {
  public:
    FakeCourse() {
        page_.folder = "/home/learner/oom";
        page_.exercises = {{"a1", "Lab A, type 1: it does not fit", CourseExercise::State::passed},
                           {"a2", "Lab A, type 2: the long prompt", CourseExercise::State::begun}};
        page_.current = 1;
        page_.title = "Lab A, type 2: the long prompt";
        page_.task = "Change scenario.toml so that the server starts, serves, and dies of one long prompt.\n"
                     "Predict first what each owner will hold.";
        page_.wants_prediction = true;
        page_.prediction = "weights = \"15 GiB\"";
    }
    const CoursePage& page() const override { return page_; }
    void act(CourseVerb verb, const std::string& argument) override {
        said.emplace_back(verb, argument);
        if (verb == CourseVerb::predict) page_.prediction_locked = true;
        if (verb == CourseVerb::ask) page_.question = "The server dies only on long prompts: what happens, and what is the fix?";
        if (verb == CourseVerb::hint) page_.hint = "What does the profile not see?";
        if (verb == CourseVerb::check)
            page_.checks = {{CourseLine::State::pass, "fails", "It failed while serving.", -1},
                            {CourseLine::State::not_yet, "type", "This is type 3: the KV pool was full.", 5'000'000},
                            {CourseLine::State::blocked, "cure", "Opens after the type is right.", -1}};
    }
    bool poll() override { return false; }
    std::vector<std::pair<CourseVerb, std::string>> said;

  private:
    CoursePage page_;
};

class FakeControl final : public ControlHost {
  public:
    FakeControl() {
        state_.attached = state_.can_pace = state_.running = true;
        state_.knobs = {{"gpu_memory_utilization", "0.90"}, {"max_num_seqs", "64"}};
    }
    const ControlState& state() const override { return state_; }
    void act(ControlVerb verb) override {
        said.push_back(verb);
        if (verb == ControlVerb::pause) state_.paused = true;
        if (verb == ControlVerb::go) state_.paused = false;
        if (verb == ControlVerb::stop) state_.running = false;
    }
    void run_again(const std::vector<Knob>& knobs) override { again = knobs; }
    bool poll() override { return false; }
    std::vector<ControlVerb> said;
    std::vector<Knob> again;

  private:
    ControlState state_;
};

}  // namespace

TEST_CASE("window: an empty one says why and what fills it") {
    WindowDriver d(1280, 720);
    d.frames();
    CHECK(d.seen().shows("oomlab run"));
    CHECK(d.seen().find("status.word")->text == "NO DATA");
    check_no_faults(d);
}

TEST_CASE("window: a failed run answers the four questions on one screen") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    CHECK(d.seen().find("status.word")->text == "OOM");                      // am I fine
    CHECK(d.seen().find("status.headroom")->text == "0.95 GiB");
    CHECK(d.seen().find("status.gap.rest")->text == "largest: weights");     // who holds the most
    CAPTURE(d.seen().find("status.growth")->text);
    CHECK(d.seen().find("status.growth")->text.starts_with("flat"));                   // is it growing
    CHECK(d.seen().shows("2  activation spike"));                            // why did it die
    CHECK(d.seen().shows("enable_chunked_prefill"));
    CHECK(d.seen().find("status.device.label")->text == "device, simulated");
    CHECK(d.seen().find("timeline.oom") != nullptr);
    check_no_faults(d);
}

TEST_CASE("window: nothing is cut off or covered at any size, theme, scale or panel") {
    test::TempDir dir;
    SyntheticRun leak, kill, recover;
    leak.leaks = true;
    leak.ends_in_oom = false;
    leak.seconds = 600;
    kill.killed_by_host = true;
    kill.ends_in_oom = false;
    recover.recovers = true;
    testing::write_synthetic_trace(dir.file("oom.omtrace"), {});
    testing::write_synthetic_trace(dir.file("leak.omtrace"), leak);
    testing::write_synthetic_trace(dir.file("kill.omtrace"), kill);
    testing::write_synthetic_trace(dir.file("recover.omtrace"), recover);
    struct Size {
        int width, height, text;
    };
    const Size sizes[] = {{1280, 720, 100}, {1440, 900, 100}, {1280, 720, 200}, {1024, 640, 100}, {1920, 1080, 150}, {1440, 900, 75},
                          {1920, 1080, 300}};
    for (const Size& size : sizes)
        for (const char* name : {"oom", "leak", "kill", "recover"})
            for (const bool course_there : {false, true}) {
                CAPTURE(size.width);
                CAPTURE(size.text);
                CAPTURE(name);
                CAPTURE(course_there);
                Settings settings;
                settings.text_percent = size.text;
                FakeCourse course;
                WindowDriver d(size.width, size.height, settings);
                auto live = view::LiveTrace::open(dir.file(std::string(name) + ".omtrace"));
                REQUIRE(live);
                d.app().open(std::move(*live));
                d.app().set_prediction(guess());
                if (course_there) d.app().set_course(&course);
                for (int panel = 1; panel < static_cast<int>(PanelId::count_); ++panel) {
                    d.key('0' + panel, false, false, true);
                    d.frames();
                    CAPTURE(panel);
                    check_no_faults(d);
                }
                for (int mode = 0; mode < 3; ++mode) {
                    d.key('4', false, false, true);
                    d.key('T');
                    check_no_faults(d);
                }
            }
}

TEST_CASE("window: every text is drawn in the light theme and in present mode as well") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.key('K');
    CHECK(d.app().settings().theme == paint::ThemeName::light);
    d.frames();
    check_no_faults(d);
    d.key(kKeyF11);
    d.frames();
    CHECK(d.seen().find("budget") != nullptr);
    CHECK(d.seen().find("events") == nullptr);
    CHECK(d.app().kit().em == doctest::Approx(32));
    check_no_faults(d);
}

TEST_CASE("keys: W and S zoom, A and D pan, Space follows") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    const i64 all = d.app().state().range().length();
    d.key(' ');
    CHECK_FALSE(d.app().state().following());
    d.key('W');
    const TimeRange closer = d.app().state().range();
    CHECK(closer.length() < all);
    d.key('D');
    CHECK(d.app().state().range().from_us > closer.from_us);
    d.key('A');
    CHECK(d.app().state().range().from_us == doctest::Approx(static_cast<double>(closer.from_us)).epsilon(0.001));
    d.key('S');
    CHECK(d.app().state().range().length() == doctest::Approx(static_cast<double>(all)).epsilon(0.001));
    d.key(' ');
    CHECK(d.app().state().following());
}

TEST_CASE("keys: events are stepped through and rewind the status and the map") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    const std::string end = d.seen().find("status.time")->text;
    for (int i = 0; i < 200; ++i) d.app().key({','}, false);
    d.frames();
    REQUIRE(d.app().state().event());
    CHECK(d.seen().find("status.time")->text != end);
    CHECK(d.seen().find("status.word")->text != "OOM");
    const std::size_t before = *d.app().state().event();
    d.key('.');
    CHECK(*d.app().state().event() == before + 1);
    d.key('G');
    CHECK(d.seen().find("status.word")->text == "OOM");
    d.key(kKeyEscape);
    d.key(kKeyEscape);
    CHECK(d.app().state().at_end());
}

TEST_CASE("keys: one request is followed with the brackets") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    d.app().state().pin_request(100);
    d.key('[');
    REQUIRE(d.app().state().event());
    CHECK(d.app().model().events()[*d.app().state().event()].request == 100);
    CHECK(d.app().model().events()[*d.app().state().event()].kind == view::EventKind::completion);
    d.key('[');
    CHECK(d.app().model().events()[*d.app().state().event()].request == 100);
}

TEST_CASE("mouse: a drag over the timeline shows start, end and change by owner") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    SyntheticRun leak;
    leak.leaks = true;
    leak.ends_in_oom = false;
    leak.seconds = 600;
    d.app().open(trace_of(dir, "a.omtrace", leak));
    d.frames();
    const Rect plot = d.seen().find("timeline.plot")->rect;
    d.drag(plot.x0 + 100, plot.y0 + 50, plot.x0 + 500, plot.y0 + 60);
    REQUIRE(d.app().state().selection());
    CHECK(d.seen().find("timeline.delta") != nullptr);
    CHECK(d.seen().shows("activations"));
    CHECK(d.seen().shows("+"));
    d.key('F');
    CHECK(d.app().state().range() == *d.app().state().selection());
}

TEST_CASE("mouse: a click on the timeline moves the moment, the wheel zooms there, right drag pans") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    const Rect plot = d.seen().find("timeline.plot")->rect;
    d.click_at((plot.x0 + plot.x1) / 2, plot.y0 + 40);
    const i64 moment = d.app().state().moment_us(d.app().model());
    const TimeRange all = d.app().state().range();
    CHECK(moment == doctest::Approx(static_cast<double>(all.from_us + all.length() / 2)).epsilon(0.01));
    d.wheel(1);
    CHECK(d.app().state().range().length() < all.length());
    const TimeRange before = d.app().state().range();
    d.drag(plot.x0 + 300, plot.y0 + 40, plot.x0 + 200, plot.y0 + 40, 1);
    CHECK(d.app().state().range().from_us > before.from_us);
}

TEST_CASE("events: the filter hides, says how many, and is cleared by its button") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    d.key('/');
    d.frames();
    d.type("retry");
    CHECK(d.app().state().filter.text() == "retry");
    CHECK(d.seen().shows("1 of 1012"));
    d.type(" req:9");
    CHECK(d.seen().find("events.hidden") != nullptr);
    // Letters go into the box, not to the window.
    CHECK(d.app().settings().theme == paint::ThemeName::dark);
    d.click("events.clear");
    CHECK(d.app().state().filter.everything());
}

TEST_CASE("events: a click on a row selects it, a group's button hides its kinds") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    d.click("events.kind");
    CHECK(d.app().state().event());
    const std::string title = d.seen().find("events.title")->text;
    d.click("events.group1");
    CHECK(d.seen().find("events.title")->text != title);
}

TEST_CASE("map: modes by key and button, a block's request is pinned by a click") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    CHECK(d.seen().shows("largest hole"));
    CHECK(d.seen().shows("lost to a request of 1.90 GiB"));
    d.click("map.kv");
    CHECK(d.app().state().map_mode == MapMode::kv_grid);
    const Rect image = d.seen().find("map.image")->rect;
    d.click_at(image.x0 + 4, image.y0 + 4);
    CHECK(d.app().state().request() != trace::kNoRequest);
    d.key('T');
    CHECK(d.seen().find("figures.driver") != nullptr);
    CHECK(d.seen().find("figures.left") != nullptr);
}

TEST_CASE("map: segments without a hole are left out on demand, and their bytes are said") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    d.key('Y');
    d.frames();
    CHECK(d.seen().shows("without a hole not drawn"));
}

TEST_CASE("course: the box, the lock, then run and the same letters as in the terminal") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    FakeCourse course;
    d.app().set_course(&course);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    d.key('R');
    CHECK(course.said.empty());   // nothing runs before the prediction is locked
    CHECK(d.seen().find("course.may_run") != nullptr);
    d.key('E');
    d.frames();
    d.type("x");
    d.click("course.lock");
    REQUIRE(course.said.size() == 1);
    CHECK(course.said[0].first == CourseVerb::predict);
    CHECK(course.said[0].second.find("15 GiB") != std::string::npos);
    d.key('R');
    CHECK(course.said.back().first == CourseVerb::run);
    d.key('H');
    CHECK(d.seen().shows("What does the profile not see?"));
    d.key('C');
    CHECK(d.seen().shows("not yet  type"));
    d.click("course.check1.go");
    CHECK(d.app().state().moment_us(d.app().model()) == 5'000'000);
    d.key('X');
    CHECK(course.said.back().first == CourseVerb::check);   // it asks first
    d.click("course.reset.yes");
    CHECK(course.said.back().first == CourseVerb::reset);
}

TEST_CASE("course: an interview question is asked, answered and handed in") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    FakeCourse course;
    d.app().set_course(&course);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    d.key('I');
    d.frames();
    CHECK(d.seen().shows("The server dies only on long prompts"));
    d.key('E');
    d.frames();
    d.type("chunked prefill");
    d.click("course.hand_in");
    CHECK(course.said.back().first == CourseVerb::answer);
    CHECK(course.said.back().second == "chunked prefill");
    check_no_faults(d);
}

TEST_CASE("controls: pause, step and speed go to the server and knobs run it again") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    FakeControl control;
    d.app().set_control(&control);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames();
    d.key('J');
    d.key('B');
    d.click("controls.step");
    d.click("controls.pause");
    const std::vector<ControlVerb> wanted = {ControlVerb::step, ControlVerb::pause, ControlVerb::step, ControlVerb::go};
    CHECK(control.said == wanted);
    control.act(ControlVerb::stop);
    d.frames();
    d.click("controls.knobs");
    d.frames();
    CHECK(d.seen().shows("gpu_memory_utilization"));
    d.click("knobs.run");
    CHECK(control.again.size() == 2);
}

TEST_CASE("key card: every binding has a help text, and any key closes it") {
    for (const Binding& b : bindings()) {
        if (b.keys == nullptr) continue;
        CHECK(std::string(b.help).size() > 0);
    }
    WindowDriver d(1440, 900);
    d.frames();
    d.key('/', false, true, false);
    d.frames();
    CHECK(d.seen().find("keys.key") != nullptr);
    check_no_faults(d);
    d.key('W');
    d.frames();
    CHECK(d.seen().find("keys.key") == nullptr);
}

TEST_CASE("text: bigger and smaller stay between 75 and 300 percent") {
    WindowDriver d(1440, 900);
    for (int i = 0; i < 12; ++i) d.key('=', true);
    CHECK(d.app().settings().text_percent == 300);
    d.frames();
    CHECK(d.app().kit().em == doctest::Approx(48));
    for (int i = 0; i < 12; ++i) d.key('-', true);
    CHECK(d.app().settings().text_percent == 75);
}

TEST_CASE("idle: a finished trace asks for no more frames, and pictures are not painted again") {
    test::TempDir dir;
    WindowDriver d(1440, 900);
    d.app().open(trace_of(dir, "a.omtrace", {}));
    d.frames(6);
    CHECK_FALSE(d.app().poll(0));
    CHECK_FALSE(d.app().wants_frame());
    const int uploads = d.uploads();
    d.frames(10);
    CHECK(d.uploads() == uploads);
}

TEST_CASE("settings: what is written is read back, broken lines are skipped, limits hold") {
    Settings s;
    s.theme = paint::ThemeName::light;
    s.text_percent = 175;
    s.left_permille = 300;
    s.patterns = false;
    const Settings back = parse_settings(format_settings(s));
    CHECK(back.theme == s.theme);
    CHECK(back.text_percent == 175);
    CHECK(back.left_permille == 300);
    CHECK_FALSE(back.patterns);
    const Settings odd = parse_settings("text_percent = 9000\nwidth = abc\nnonsense\n= =\ntheme = plaid\n");
    CHECK(odd.text_percent == 300);
    CHECK(odd.width == 1440);
    CHECK(odd.theme == paint::ThemeName::dark);
}
