// What ptxas says of every kernel on every architecture (tests/gpu/kernel_resources.sh wrote it): none
// spills registers to memory, and each is small enough that several thread blocks stay resident.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

TEST_CASE("resources: no kernel spills on any architecture") {
    std::ifstream file(OOMLAB_SOURCE_DIR "/tests/gpu/kernel_resources.tsv");
    REQUIRE(file.good());
    std::map<std::string, std::set<std::string>> kernels;   // by architecture
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#' || line.rfind("architecture", 0) == 0) continue;
        std::istringstream fields(line);
        std::string architecture, kernel;
        std::getline(fields, architecture, '\t');
        std::getline(fields, kernel, '\t');
        unsigned registers = 0, shared = 0, stack = 0, stored = 0, loaded = 0;
        fields >> registers >> shared >> stack >> stored >> loaded;
        CAPTURE(architecture);
        CAPTURE(kernel);
        REQUIRE_FALSE(fields.fail());
        CHECK(stored == 0);
        CHECK(loaded == 0);
        CHECK(registers <= 255);
        CHECK(shared <= 48 * 1024);
        CHECK(kernels[architecture].insert(kernel).second);
    }
    for (const char* architecture : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
        CAPTURE(architecture);
        CHECK(kernels[architecture] == kernels["sm_90"]);
        CHECK(kernels[architecture].size() >= 90);
    }
}
