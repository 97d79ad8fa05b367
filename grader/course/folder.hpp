// The learner's folder: plain files to edit, and .oomlab/ with what is remembered. Every write is a
// temporary neighbour and a rename, so progress survives a kill at any moment. A state that cannot be
// read is moved aside and said, never overwritten.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grader/course/exercise.hpp"

namespace oomlab::course {

struct Progress {
    bool passed = false, started = false, solution_seen = false;
    int hints = 0;
    double score = -1;                           // -1: not checked yet
    std::string last_check;                      // one line
    std::map<std::string, std::string> predicted;
    bool prediction_locked = false;
};

class Folder {
  public:
    // Makes the folder, or completes it: a file that is there is never overwritten. `seed` draws the
    // variants. On failure: Error::io.
    static Result<Folder> start(const std::string& path, const std::vector<Exercise>& course, u64 seed);
    // The folder at or above `from`. On failure: Error::usage that says how to make one.
    static Result<Folder> find(const std::string& from);

    const std::string& root() const { return root_; }
    std::string path(const Exercise& e, const std::string& file) const { return root_ + "/" + e.id + "/" + file; }
    u64 seed() const { return seed_; }
    Progress& progress(const std::string& exercise) { return progress_[exercise]; }
    Result<void> save() const;
    // A file's text with the variant's values put in. Same seed, same text.
    std::string instantiate(const Exercise& e, std::string text) const;
    // The learner's files go back to the start; what was there is kept under .oomlab/evidence/.
    Result<std::string> reset(const Exercise& e);
    std::vector<std::string> made;               // by start(): files that were not there before

  private:
    Folder() = default;
    std::string root_;
    u64 seed_ = 1;
    std::map<std::string, Progress> progress_;
};

}  // namespace oomlab::course
