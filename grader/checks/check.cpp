#include "grader/checks/check.hpp"

#include "grader/checks/parts.hpp"

namespace oomlab::course {

const char* check_state_name(CheckState s) {
    switch (s) {
        case CheckState::pass: return "pass";
        case CheckState::fail: return "fail";
        case CheckState::blocked: return "blocked";
        case CheckState::not_run: return "not_run";
        case CheckState::error: return "error";
    }
    return "";
}

namespace {
bool judged(const CheckPoint& p) { return p.state == CheckState::pass || p.state == CheckState::fail; }
}  // namespace

double CheckResult::score() const {
    double s = 0;
    for (const CheckPoint& p : points) s += judged(p) ? p.score : 0;
    return s;
}
double CheckResult::max() const {
    double s = 0;
    for (const CheckPoint& p : points) s += judged(p) || p.state == CheckState::blocked ? p.max : 0;
    return s;
}
double CheckResult::max_all() const {
    double s = 0;
    for (const CheckPoint& p : points) s += p.max;
    return s;
}
bool CheckResult::passed() const {
    for (const CheckPoint& p : points) {
        if (p.state != CheckState::pass) return false;
    }
    return !points.empty();
}
bool CheckResult::graded() const {
    for (const CheckPoint& p : points) {
        if (judged(p)) return true;
    }
    return false;
}

CheckPoint& Checklist::add(const std::string& id, const std::string& title, double max) {
    CheckPoint p;
    p.id = result.exercise + "." + id;
    p.title = title;
    p.max = max;
    result.points.push_back(std::move(p));
    return result.points.back();
}

void Checklist::decide(CheckPoint& p, bool good, std::string saw, std::string asked, std::string next, double partial) {
    p.state = good ? CheckState::pass : CheckState::fail;
    p.score = good ? p.max : partial;
    p.saw = std::move(saw);
    p.asked = std::move(asked);
    p.next = good ? "" : std::move(next);
}

void Checklist::block(CheckPoint& p, const std::string& after) {
    p.state = CheckState::blocked;
    p.saw = "unlocks after: " + after;
}

void Checklist::broken(CheckPoint& p, const Error& error) {
    p.state = error.kind == Error::Kind::environment ? CheckState::not_run
              : error.kind == Error::Kind::internal  ? CheckState::error
                                                     : CheckState::fail;
    p.saw = error.message;
    p.next = error.kind == Error::Kind::environment ? "run `oomlab doctor`: it says what this machine lacks" : "mend the file and check again";
}

Result<CheckResult> check_exercise(const Exercise& e, Folder& folder, const CheckOptions& options) {
    if (e.kind == "induce") return check_induce(e, folder, options);
    if (e.kind == "cliff") return check_cliff(e, folder, options);
    if (e.kind == "budget") return check_budget(e, folder, options);
    if (e.kind == "leak") return check_leak(e, folder, options);
    if (e.kind == "runbook") return check_runbook(e, folder, options);
    if (e.kind == "interview") return check_interview(e, folder, options);
    return check_incident(e, folder, options);
}

}  // namespace oomlab::course
