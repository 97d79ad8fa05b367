// A real window on a display of our own (Xvfb): GLFW, OpenGL, the loop that sleeps. A script presses keys
// through the app while the loop runs; without Xvfb the case says so and passes.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/synthetic_trace.hpp"
#include "tests/support/temp_dir.hpp"
#include "ui/window/platform/glfw_window.hpp"

using namespace oomlab;
using namespace oomlab::window;

namespace {

class Display {
  public:
    Display() {
        int fds[2];
        if (::pipe(fds) != 0) return;
        ::fcntl(fds[0], F_SETFD, FD_CLOEXEC);
        const std::string number = std::to_string(fds[1]);
        const char* argv[] = {"Xvfb", "-displayfd", number.c_str(), "-screen", "0", "1440x900x24", "-nolisten", "tcp", nullptr};
        posix_spawn_file_actions_t quiet;
        ::posix_spawn_file_actions_init(&quiet);
        ::posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
        const bool started = ::posix_spawnp(&pid_, "Xvfb", &quiet, nullptr, const_cast<char* const*>(argv), environ) == 0;
        ::posix_spawn_file_actions_destroy(&quiet);
        ::close(fds[1]);
        char text[16] = {};
        if (started && ::read(fds[0], text, sizeof(text) - 1) > 0) {
            const std::string name = ":" + std::to_string(std::atoi(text));
            ::setenv("DISPLAY", name.c_str(), 1);
            ready_ = true;
        }
        from_server_ = fds[0];   // kept open: the server writes once more and would die of a broken pipe
    }
    ~Display() {
        if (from_server_ >= 0) ::close(from_server_);
        if (pid_ <= 0) return;
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }
    bool ready() const { return ready_; }

  private:
    pid_t pid_ = -1;
    bool ready_ = false;
    int from_server_ = -1;
};

// Presses one key each time the loop polls, and notes what the frame before it had found out.
class Script final : public Link {
  public:
    Script(App& app, std::string path, std::vector<Key> keys) : app_(app), path_(std::move(path)), keys_(std::move(keys)) {}
    bool poll(double) override {
        seen.push_back(app_.summary().health);
        if (at_ < keys_.size()) app_.key(keys_[at_++], false);
        return true;
    }
    std::string path() const override { return path_; }
    std::string text() const override { return "scripted"; }
    std::string problem() const override { return ""; }
    std::vector<view::Health> seen;

  private:
    App& app_;
    std::string path_;
    std::vector<Key> keys_;
    std::size_t at_ = 0;
};

}  // namespace

TEST_CASE("real window: opens, draws, obeys keys through every panel, closes by key") {
    Display display;
    if (!display.ready()) {
        MESSAGE("skipped: Xvfb is not here (apt-get install xvfb)");
        return;
    }
    test::TempDir dir;
    testing::write_synthetic_trace(dir.file("a.omtrace"), {});
    auto window = GlfwWindow::create(Settings(), "oomlab", GlfwWindow::Renderer::software);
    if (!window) FAIL(window.error().message);
    App app((*window)->textures(), Settings());
    std::vector<Key> keys = {{' '}, {'W'}, {'D'}, {'S'}, {'G'}, {','}, {'T'}, {'T'}, {'K'}, {'V'}, {'P'}, {'Y'}, {'Z'},
                             {'=', true, false, false}, {'/', false, true, false}, {'W'}, {kKeyF11}, {kKeyF11}};
    for (char panel = '1'; panel <= '6'; ++panel) keys.push_back({panel, false, false, true});
    keys.push_back({'Q', true, false, false});
    const std::size_t presses = keys.size();
    Script script(app, dir.file("a.omtrace"), keys);
    app.set_link(&script);
    (*window)->run(app);
    CHECK(app.wants_quit());
    CHECK(script.seen.size() >= presses);
    CHECK(script.seen.front() == view::Health::no_data);   // nothing was drawn yet
    CHECK(script.seen.back() == view::Health::oom);
    CHECK(app.settings().theme == paint::ThemeName::light);
    CHECK(app.settings().text_percent == 125);
    CHECK(app.settings().width == 1440);
}
