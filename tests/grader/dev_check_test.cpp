#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "grader/dev_check_rubrics.hpp"

using namespace oomlab;
using namespace oomlab::grader;

TEST_SUITE("dev check of rubrics") {
    TEST_CASE("the rubrics, incidents and corpus of this tree are sound") {
        const auto findings = dev_check_rubrics(OOMLAB_SOURCE_DIR "/content", OOMLAB_SOURCE_DIR "/tests/grader/corpus");
        REQUIRE_MESSAGE(findings.has_value(), (findings ? "" : findings.error().message));
        for (const RubricFinding& f : *findings) CHECK_MESSAGE(!f.error, f.place << ": " << f.text);
    }
    TEST_CASE("an unknown key is refused with its place and the nearest known one") {
        namespace fs = std::filesystem;
        const fs::path content = fs::temp_directory_path() / ("oomlab-dev-check-" + std::to_string(::getpid()));
        fs::remove_all(content);
        fs::create_directories(content);
        fs::copy(OOMLAB_SOURCE_DIR "/content/interview", content / "interview", fs::copy_options::recursive);
        const fs::path file = content / "interview" / "q1.toml";
        std::ostringstream text;
        text << std::ifstream(file).rdbuf();
        std::string changed = text.str();
        changed.replace(changed.find("\nweight = "), 10, "\nwieght = ");
        std::ofstream(file) << changed;
        const auto r = dev_check_rubrics(content.string(), "");
        REQUIRE_FALSE(r);
        CHECK(r.error().message.find("q1.toml:") != std::string::npos);
        CHECK(r.error().message.find("wieght") != std::string::npos);
        CHECK(r.error().message.find("weight") != std::string::npos);
        fs::remove_all(content);
    }
}
