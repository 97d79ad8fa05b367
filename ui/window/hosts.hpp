// What the window can ask of the rest of the program: the course and the running server. Interfaces
// only, so that the window links neither; whoever implements them runs verbs of `oomlab` or talks to
// the supervisor's channel. Nothing here may block: act() starts, poll() collects.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::window {

// [COURSE]
struct CourseLine {
    enum class State { pass, not_yet, blocked, error, info };
    State state = State::info;
    std::string id, text;
    i64 trace_us = -1;   // the moment in the run that it speaks of; -1: none
};

struct CourseExercise {
    enum class State { not_started, begun, passed };
    std::string id, title;
    State state = State::not_started;
};

// Everything the course's panel shows. Text is shown as plain text, never interpreted.
struct CoursePage {
    std::string folder;                      // the learner's
    std::vector<CourseExercise> exercises;
    std::size_t current = 0;
    std::string title, task;
    bool wants_prediction = false, prediction_locked = false;
    std::string prediction;                  // as the learner wrote it (TOML)
    std::string prediction_path;             // what the budget bar draws as a ghost, once locked
    std::string hint;                        // the steps given so far
    std::vector<CourseLine> checks;
    std::string output;                      // of the last verb
    std::string busy;                        // "running lab_a/type_2"; empty: idle
    std::string trace_path;                  // of the run to look at; empty: none
    std::string question, answer;            // interview: the question asked, the answer so far
    std::vector<CourseLine> marks;           // interview: what the answer covered
    std::string runbook;                     // the learner's entry
    std::vector<CourseLine> lint;
};

// The same letters as in the terminal where there is one.
enum class CourseVerb {
    run,          // R
    hint,         // H
    next,         // N
    check,        // C
    reset,        // X; the panel has asked first
    open,         // argument: the exercise's id
    predict,      // argument: the prediction's text; locks it
    ask,          // I: the next interview question
    answer,       // argument: the answer's text
    lint,         // argument: the runbook's text
    save_runbook  // argument: the runbook's text
};

class CourseHost {
  public:
    virtual ~CourseHost() = default;
    virtual const CoursePage& page() const = 0;
    virtual void act(CourseVerb verb, const std::string& argument) = 0;
    // Collects what finished since. Returns whether the page changed.
    virtual bool poll() = 0;
};

// [CONTROLS]
struct Knob {
    std::string name;    // "gpu_memory_utilization": the field's spelling
    std::string value;   // as it stands in the scenario
};
struct ControlState {
    bool attached = false;     // a run that can be controlled is on the other end
    bool can_pace = false;     // pause, step and speed: on the simulated chip alone
    bool running = false, paused = false;
    double speed = 0;          // virtual seconds a second; 0: as fast as it goes
    std::string why_not;       // one line when something above is false
    std::vector<Knob> knobs;
};
enum class ControlVerb { pause, go, step, slower, faster, stop };

class ControlHost {
  public:
    virtual ~ControlHost() = default;
    virtual const ControlState& state() const = 0;
    virtual void act(ControlVerb verb) = 0;
    // Runs the same scenario with these knobs; the run before is kept for comparison.
    virtual void run_again(const std::vector<Knob>& knobs) = 0;
    virtual bool poll() = 0;
};

}  // namespace oomlab::window
