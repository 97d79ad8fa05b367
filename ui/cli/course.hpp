// What the verbs of the course share: the folder around us, one exercise of it, and saying where one is.
#pragma once

#include <string>
#include <vector>

#include "grader/course/folder.hpp"

namespace oomlab::cli {

struct CourseHere {
    std::vector<course::Exercise> exercises;
    course::Folder folder;
};
Result<CourseHere> course_here();
// By name; the folder one stands in when the name is empty, else the next one to do.
Result<const course::Exercise*> pick_exercise(CourseHere& here, const std::string& name);
const course::Exercise* next_exercise(CourseHere& here);
// Where one stands, as `oomlab` alone prints it.
std::string standing(CourseHere& here);
// The same in full: every exercise with its state.
std::string listing(CourseHere& here);

}  // namespace oomlab::cli
