#include "grader/course/folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kernels/base/prng.hpp"
#include "labs/catalog/text_file.hpp"
#include "labs/runner/run_scenario.hpp"

namespace oomlab::course {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string state_path(const std::string& root) { return root + "/.oomlab/state.json"; }

Result<void> make_folder(const std::string& path) {
    std::error_code ec;
    fs::create_directories(path, ec);
    if (ec) return fail(Error::io(fmt::format("{}: {}", path, ec.message())));
    return {};
}

Result<void> copy_start_files(const Exercise& e, Folder& folder) {
    OOMLAB_TRY_VOID(make_folder(folder.root() + "/" + e.id));
    std::vector<std::string> files = e.files;
    files.insert(files.begin(), "README.md");
    for (const std::string& file : files) {
        const std::string to = folder.path(e, file);
        struct stat info {};
        if (lstat(to.c_str(), &info) == 0) continue;
        OOMLAB_TRY(text, read_text_file(e.folder + "/" + file));
        OOMLAB_TRY_VOID(runner::write_file(to, folder.instantiate(e, text)));
        folder.made.push_back(e.id + "/" + file);
    }
    return {};
}

}  // namespace

std::string Folder::instantiate(const Exercise& e, std::string text) const {
    if (e.variants.empty()) return text;
    Prng prng = Prng(seed_).fork(e.id);
    const Variant& v = e.variants[prng.below(e.variants.size())];
    std::map<std::string, std::string> values = v.values;
    for (int i = 1; i <= 9; ++i) values[fmt::format("SEED{}", i)] = std::to_string(Prng(seed_).fork(e.id + std::to_string(i)).next() >> 40);
    for (const auto& [name, value] : values) {
        const std::string mark = "@" + name + "@";
        for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size()) text.replace(at, mark.size(), value);
    }
    return text;
}

Result<Folder> Folder::start(const std::string& path, const std::vector<Exercise>& course, u64 seed) {
    OOMLAB_TRY_VOID(make_folder(path + "/.oomlab"));
    Folder f;
    std::error_code ec;
    f.root_ = fs::canonical(path, ec).string();
    if (ec) return fail(Error::io(fmt::format("{}: {}", path, ec.message())));
    struct stat info {};
    if (stat(state_path(f.root_).c_str(), &info) == 0) {
        OOMLAB_TRY(there, find(f.root_));
        f = std::move(there);
    } else {
        f.seed_ = seed;
    }
    for (const Exercise& e : course) OOMLAB_TRY_VOID(copy_start_files(e, f));
    OOMLAB_TRY_VOID(f.save());
    return f;
}

Result<Folder> Folder::find(const std::string& from) {
    const std::string root = runner::learner_folder(from);
    if (root.empty()) {
        return fail(Error::usage("this is no folder of the course: make one with `oomlab start DIR`, then cd into it"));
    }
    Folder f;
    f.root_ = root;
    const std::string path = state_path(root);
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return f;
    OOMLAB_TRY(text, read_text_file(path));
    try {
        const json j = json::parse(text);
        f.seed_ = j.at("seed").get<u64>();
        for (const auto& [id, p] : j.at("exercises").items()) {
            Progress& out = f.progress_[id];
            out.passed = p.value("passed", false);
            out.started = p.value("started", false);
            out.solution_seen = p.value("solution_seen", false);
            out.hints = p.value("hints", 0);
            out.score = p.value("score", -1.0);
            out.last_check = p.value("last_check", "");
            out.prediction_locked = p.value("prediction_locked", false);
            const json predicted = p.value("predicted", json::object());
            for (const auto& [key, value] : predicted.items()) out.predicted[key] = value.get<std::string>();
        }
    } catch (const json::exception& e) {
        const std::string aside = path + ".broken";
        std::rename(path.c_str(), aside.c_str());
        return fail(Error::parse(fmt::format("{}: cannot be read ({}); moved to {}, your files are untouched: run the command again",
                                             path, e.what(), aside)));
    }
    return f;
}

Result<void> Folder::save() const {
    json j;
    j["format"] = 1;
    j["seed"] = seed_;
    j["exercises"] = json::object();
    for (const auto& [id, p] : progress_) {
        j["exercises"][id] = {{"passed", p.passed}, {"started", p.started}, {"solution_seen", p.solution_seen}, {"hints", p.hints},
                              {"score", p.score}, {"last_check", p.last_check}, {"prediction_locked", p.prediction_locked},
                              {"predicted", p.predicted}};
    }
    return runner::write_file(state_path(root_), j.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

Result<std::string> Folder::reset(const Exercise& e) {
    int n = 1;
    std::string keep;
    do keep = fmt::format("{}/.oomlab/evidence/{}-{}", root_, e.id, n++);
    while (fs::exists(keep));
    OOMLAB_TRY_VOID(make_folder(keep));
    std::error_code ec;
    for (const std::string& file : e.files) {
        const std::string from = path(e, file);
        if (!fs::exists(from)) continue;
        fs::rename(from, keep + "/" + file, ec);
        if (ec) return fail(Error::io(fmt::format("{}: {}", from, ec.message())));
    }
    const Progress old = progress_[e.id];
    progress_[e.id] = Progress{};
    progress_[e.id].hints = old.hints;
    OOMLAB_TRY_VOID(copy_start_files(e, *this));
    OOMLAB_TRY_VOID(save());
    return keep;
}

}  // namespace oomlab::course
