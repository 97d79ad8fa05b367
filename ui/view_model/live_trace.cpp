#include "ui/view_model/live_trace.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

#include <filesystem>

namespace oomlab::view {

namespace fs = std::filesystem;

namespace {
// Device and number of the file that the path names now; 0 when there is none.
u64 identity_of(const std::string& path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return 0;
    return static_cast<u64>(st.st_ino) ^ static_cast<u64>(st.st_dev) << 48;
}
}  // namespace

LiveTrace::LiveTrace(std::string path, std::unique_ptr<trace::Reader> reader)
    : path_(std::move(path)), reader_(std::move(reader)) {}

Result<std::unique_ptr<LiveTrace>> LiveTrace::open(const std::string& path) {
    OOMLAB_TRY(reader, trace::Reader::open(path));
    std::unique_ptr<LiveTrace> live(new LiveTrace(path, std::move(reader)));
    live->identity_ = identity_of(path);
    live->poll();
    return live;
}

bool LiveTrace::poll() {
    const u64 now = identity_of(path_);
    bool again = false;
    if (now != identity_ && now != 0) {
        if (auto reader = trace::Reader::open(path_)) {
            model_ = Model();   // its views point into the old file
            reader_ = std::move(*reader);
            wall_records_ = 0;
            identity_ = now;
            ++reopened_;
            again = true;
        }
    }
    const std::size_t read =
        reader_->poll([this](const trace::RecordView& record) { model_.fold(record); });
    std::size_t wall = 0;
    reader_->wall([&](const trace::RecordView&) { ++wall; });
    if (wall != wall_records_) {
        wall_records_ = wall;
        model_.forget_wall();
        reader_->wall([this](const trace::RecordView& record) { model_.fold_wall(record); });
        return true;
    }
    return read > 0 || again;
}

Result<std::string> find_trace(const std::string& path) {
    constexpr int kMostDepth = 4;
    constexpr std::size_t kMostFiles = 100'000;
    std::error_code ec;
    if (fs::is_regular_file(path, ec)) return path;
    if (!fs::is_directory(path, ec))
        return fail(Error::io(fmt::format("{}: no such file or folder", path)));
    fs::path newest;
    fs::file_time_type newest_time{};
    std::size_t seen = 0;
    fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, ec);
    for (; !ec && at != fs::recursive_directory_iterator() && seen < kMostFiles; at.increment(ec)) {
        ++seen;
        if (at.depth() >= kMostDepth) at.disable_recursion_pending();
        if (at->path().extension() != ".omtrace" || !at->is_regular_file(ec)) continue;
        const auto time = at->last_write_time(ec);
        if (ec) break;
        if (newest.empty() || time > newest_time ||
            (time == newest_time && newest < at->path())) {
            newest = at->path();
            newest_time = time;
        }
    }
    if (newest.empty())
        return fail(Error::io(fmt::format(
            "{}: no trace (*.omtrace) in this folder yet; make one with: oomlab run", path)));
    return newest.string();
}

}  // namespace oomlab::view
