// A trace file and its model, kept up to date. Opening never waits for the writer and never changes
// the file; what is not there yet comes with a later poll.
#pragma once

#include <memory>
#include <string>

#include "labs/trace/reader.hpp"
#include "ui/view_model/model.hpp"

namespace oomlab::view {

class LiveTrace {
  public:
    // On failure: Error::io or Error::parse, one line.
    static Result<std::unique_ptr<LiveTrace>> open(const std::string& path);

    // Folds what is new. Returns whether anything changed. When the file was put in place anew (the
    // supervisor compacts it after the server's death, or the run was repeated) it is read again.
    bool poll();

    const Model& model() const { return model_; }
    const std::string& path() const { return path_; }
    bool finished() const { return reader_->finished(); }
    u64 dropped() const { return reader_->dropped(); }
    // Why the log ends early, "" when all is well.
    std::string damage() const { return reader_->damage(); }
    u64 times_reopened() const { return reopened_; }

  private:
    LiveTrace(std::string path, std::unique_ptr<trace::Reader> reader);
    std::string path_;
    std::unique_ptr<trace::Reader> reader_;   // before the model: its views point into the file
    Model model_;
    std::size_t wall_records_ = 0;
    u64 identity_ = 0, reopened_ = 0;   // of the file behind the path
};

// A trace file for what a person typed: the file itself, or the newest *.omtrace in or below the
// folder (a run's folder, a learner's folder). On failure: Error::io with what was looked for.
Result<std::string> find_trace(const std::string& path);

}  // namespace oomlab::view
