// Reads the sources: who includes whom, words that have no place here, and what lies about.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = OOMLAB_SOURCE_DIR;
const std::vector<std::string> kTop = {"kernels", "labs", "grader", "ui", "tests"};

struct Source {
    std::string path, text;
};

const std::vector<Source>& sources() {
    static const std::vector<Source> kAll = [] {
        std::vector<Source> all;
        for (const std::string& top : kTop) {
            for (const auto& f : fs::recursive_directory_iterator(kRoot / top)) {
                const std::string ext = f.path().extension().string();
                if (!f.is_regular_file() || (ext != ".cpp" && ext != ".hpp" && ext != ".cu" && ext != ".cuh")) continue;
                std::ifstream in(f.path());
                std::stringstream text;
                text << in.rdbuf();
                all.push_back({fs::relative(f.path(), kRoot).string(), text.str()});
            }
        }
        std::sort(all.begin(), all.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
        return all;
    }();
    return kAll;
}

// "labs/server/engine.cpp" is in the room "labs/server"; grader and ui have their rooms one level down.
std::string room_of(const std::string& path) {
    const std::size_t first = path.find('/'), second = path.find('/', first + 1);
    return second == std::string::npos ? path.substr(0, first) : path.substr(0, second);
}

std::vector<std::string> includes_of(const std::string& text) {
    std::vector<std::string> list;
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
        const std::string mark = "#include \"";
        if (line.rfind(mark, 0) != 0) continue;
        list.push_back(line.substr(mark.size(), line.find('"', mark.size()) - mark.size()));
    }
    return list;
}

bool begins(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

}  // namespace

// A room may include what stands beside it here, itself, kernels/base, and the plain enums of a chip.
TEST_CASE("tidy: a room includes only the rooms below it") {
    const std::map<std::string, std::set<std::string>> allowed = {
        {"kernels/base", {}},
        {"kernels/device", {}},
        {"kernels/ops", {"kernels/device"}},
        {"kernels/sim", {"kernels/device", "kernels/ops"}},
        {"kernels/cuda", {"kernels/device", "kernels/ops"}},
        {"labs/trace", {}},
        {"labs/shapes", {}},
        {"labs/catalog", {"labs/shapes"}},
        {"labs/server", {"kernels/device", "kernels/ops", "labs/trace", "labs/shapes", "labs/catalog"}},
        {"labs/diagnosis", {"labs/trace", "labs/shapes"}},
        {"labs/supervisor", {"labs/trace"}},
    };
    // Files that join rooms by design: the programs that pick a chip.
    const std::set<std::string> joins = {"labs/server/program/open_sim.cpp", "labs/server/program/open_cuda.cpp"};
    for (const Source& s : sources()) {
        const auto rule = allowed.find(room_of(s.path));
        if (rule == allowed.end() || joins.count(s.path) != 0) continue;
        for (const std::string& include : includes_of(s.text)) {
            const std::string room = room_of(include);
            const bool ours = begins(include, "kernels/") || begins(include, "labs/") || begins(include, "grader/") || begins(include, "ui/") || begins(include, "tests/");
            const bool plain = include == "kernels/device/owner.hpp" || include == "kernels/device/device_error.hpp" || include == "kernels/device/ops.hpp";
            const bool fine = !ours || plain || room == rule->first || room == "kernels/base" || rule->second.count(room) != 0;
            CHECK_MESSAGE(fine, s.path << " includes " << include);
        }
    }
}

TEST_CASE("tidy: grader and ui know the trace, never the server or a chip") {
    for (const Source& s : sources()) {
        if (!begins(s.path, "grader/") && !begins(s.path, "ui/")) continue;
        for (const std::string& include : includes_of(s.text)) {
            const bool forbidden = begins(include, "labs/server/") || begins(include, "kernels/sim/") || begins(include, "kernels/cuda/") ||
                                   begins(include, "labs/validate/") || (begins(s.path, "grader/") && begins(include, "ui/"));
            CHECK_MESSAGE(!forbidden, s.path << " includes " << include);
        }
    }
}

TEST_CASE("tidy: randomness comes from prng.hpp, and only tests include tests") {
    const std::vector<std::string> banned = {"std::rand(", "random_device", "mt19937", "std::views", "source_location"};
    for (const Source& s : sources()) {
        if (s.path == "tests/tidy/tidy_test.cpp") continue;
        for (const std::string& word : banned) CHECK_MESSAGE(s.text.find(word) == std::string::npos, s.path << " says " << word);
        if (begins(s.path, "tests/")) continue;
        for (const std::string& include : includes_of(s.text)) CHECK_MESSAGE(!begins(include, "tests/"), s.path << " includes " << include);
    }
}

TEST_CASE("tidy: cudaMalloc is called in kernels/cuda alone") {
    for (const Source& s : sources()) {
        if (begins(s.path, "kernels/cuda/") || begins(s.path, "kernels/ops/cuda/") || begins(s.path, "tests/")) continue;
        CHECK_MESSAGE(s.text.find("cudaMalloc(") == std::string::npos, s.path);
    }
}

TEST_CASE("tidy: a source that no CMake list names is a stray") {
    std::map<std::string, std::string> lists;
    for (const std::string& top : kTop) {
        for (const auto& f : fs::recursive_directory_iterator(kRoot / top)) {
            if (f.path().filename() != "CMakeLists.txt") continue;
            std::ifstream in(f.path());
            std::stringstream text;
            text << in.rdbuf();
            lists[f.path().string()] = text.str();
        }
    }
    for (const Source& s : sources()) {
        if (fs::path(s.path).extension() != ".cpp" && fs::path(s.path).extension() != ".cu") continue;
        const std::string name = fs::path(s.path).filename().string();
        const bool named = std::any_of(lists.begin(), lists.end(), [&](const auto& l) {
            return l.second.find(name) != std::string::npos || l.second.find(fs::path(name).stem().string()) != std::string::npos;
        });
        CHECK_MESSAGE(named, s.path);
    }
}

TEST_CASE("tidy: the top level is what the owner fixed") {
    const std::set<std::string> fixed = {"CMakeLists.txt", "CMakePresets.json", "labs", "kernels", "grader", "ui", "content", "tests", "README.md", "build"};
    for (const auto& f : fs::directory_iterator(kRoot)) {
        const std::string name = f.path().filename().string();
        CHECK_MESSAGE((name.front() == '.' || fixed.count(name) != 0), name);
    }
}
