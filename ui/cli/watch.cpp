// watch: checks again when a file of the exercise is saved; one key for each action.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "ui/cli/command.hpp"
#include "ui/cli/course.hpp"

namespace oomlab::cli {

namespace {

// Keys arrive one by one; the terminal is as before when this goes.
class KeyMode {
  public:
    KeyMode() : active_(isatty(STDIN_FILENO) != 0) {
        if (active_) tcgetattr(STDIN_FILENO, &before_);
        enter();
    }
    ~KeyMode() { restore(); }
    void enter() {
        if (!active_) return;
        termios raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    void restore() {
        if (active_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }

  private:
    bool active_;
    termios before_{};
};

// Runs a verb of ours as a program of its own, so that it behaves here as it does alone.
int run_verb(const std::vector<std::string>& words) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        std::vector<char*> argv;
        static std::string self = "oomlab";
        argv.push_back(self.data());
        std::vector<std::string> copy = words;
        for (std::string& w : copy) argv.push_back(w.data());
        argv.push_back(nullptr);
        execv("/proc/self/exe", argv.data());
        _exit(5);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

long long newest_change(const course::Folder& folder, const course::Exercise& e) {
    long long newest = 0;
    for (const std::string& f : e.files) {
        struct stat info {};
        if (stat(folder.path(e, f).c_str(), &info) == 0) {
            newest = std::max(newest, static_cast<long long>(info.st_mtim.tv_sec) * 1000000000LL + info.st_mtim.tv_nsec);
        }
    }
    return newest;
}

void prompt(CourseHere& here, const course::Exercise& e) {
    std::size_t done = 0;
    for (const course::Exercise& x : here.exercises) done += here.folder.progress(x.id).passed ? 1 : 0;
    fmt::print("\n{}  {}    {} of {} done\n[r]un  [h]int  [n]ext  [l]ist  [c]heck all  [x] reset  [q]uit\n", e.id, e.title, done, here.exercises.size());
    std::fflush(stdout);
}

int watch(const std::string& name) {
    auto here = course_here();
    if (!here) return report(here.error());
    auto picked = pick_exercise(*here, name);
    if (!picked) return report(picked.error());
    const course::Exercise* e = *picked;
    KeyMode keys;
    // A file system that tells of changes is listened to; otherwise times are looked at.
    const int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int watched = notify >= 0 ? inotify_add_watch(notify, (here->folder.root() + "/" + e->id).c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) : -1;
    if (watched < 0) fmt::print("this file system does not tell of changes: looking every second\n");
    run_verb({"check", e->id});
    long long seen = newest_change(here->folder, *e);
    prompt(*here, *e);
    while (true) {
        pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {notify, POLLIN, 0}};
        if (poll(fds, watched >= 0 ? 2 : 1, 1000) < 0) return 0;
        if (watched >= 0 && (fds[1].revents & POLLIN) != 0) {
            char events[4096];
            while (read(notify, events, sizeof events) > 0) {
            }
        }
        const long long now = newest_change(here->folder, *e);
        char key = 0;
        if ((fds[0].revents & (POLLIN | POLLHUP)) != 0 && read(STDIN_FILENO, &key, 1) != 1) return 0;
        if (now == seen && key == 0) continue;
        if (now != seen) {
            seen = now;
            fmt::print("\nsaved: checking\n");
            run_verb({"check", e->id});
        }
        keys.restore();
        if (key == 'q') return 0;
        if (key == 'r') run_verb(e->kind == "induce" ? std::vector<std::string>{"run", e->id + "/broken.toml", "--plain"} : std::vector<std::string>{"check", e->id});
        if (key == 'h') run_verb({"hint", e->id});
        if (key == 'l') run_verb({"list"});
        if (key == 'c') run_verb({"check", "--all"});
        if (key == 'x') run_verb({"reset", e->id});
        auto again = course_here();
        if (!again) return report(again.error());
        const std::string id = e->id;
        *here = std::move(*again);
        e = *pick_exercise(*here, id);
        if (key == 'n') {
            if (const course::Exercise* next = next_exercise(*here)) {
                e = next;
                if (watched >= 0) {
                    inotify_rm_watch(notify, watched);
                    watched = inotify_add_watch(notify, (here->folder.root() + "/" + e->id).c_str(), IN_CLOSE_WRITE | IN_MOVED_TO);
                }
                run_verb({"next"});
            }
        }
        seen = newest_change(here->folder, *e);
        keys.enter();
        prompt(*here, *e);
    }
}

}  // namespace

void add_watch(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("watch", "Check again on every save; one key for each action");
    auto name = std::make_shared<std::string>();
    cmd->add_option("EXERCISE", *name, "Default: the one you are at");
    cmd->callback([=, &exit_status] { exit_status = watch(*name); });
}

}  // namespace oomlab::cli
