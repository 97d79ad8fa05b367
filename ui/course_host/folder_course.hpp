// The course in the window: reads the learner's folder, and does everything else by running the verbs
// that a person would type, so that the window can do what the terminal can and nothing besides.
#pragma once

#include <memory>
#include <string>

#include "grader/course/folder.hpp"
#include "kernels/base/result.hpp"
#include "ui/course_host/verb.hpp"
#include "ui/window/hosts.hpp"

namespace oomlab::window {

class FolderCourse final : public CourseHost {
  public:
    // The learner's folder at or above `from`. On failure: Error::usage that says how to make one.
    static Result<std::unique_ptr<FolderCourse>> open(const std::string& from);

    const CoursePage& page() const override { return page_; }
    void act(CourseVerb verb, const std::string& argument) override;
    bool poll() override;

  private:
    FolderCourse(course::Folder folder, std::vector<course::Exercise> exercises);
    const course::Exercise& current() const { return exercises_[page_.current]; }
    void go_to(std::size_t exercise);
    void reread();                       // folder, states, files
    void begin(CourseVerb verb, const std::string& busy, const std::vector<std::string>& arguments,
               const std::string& input = "");
    void ended(int status);
    void lock(const std::string& text);
    void ask_next();
    std::string scenario() const;        // the learner's file that was edited last

    course::Folder folder_;
    std::vector<course::Exercise> exercises_;
    CoursePage page_;
    Verb verb_;
    CourseVerb doing_ = CourseVerb::check;
    int question_ = 0;
    std::string lint_wanted_, lint_done_;
    int turns_ = 0;
};

}  // namespace oomlab::window
