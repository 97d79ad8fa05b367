// A scenario's text with another workload: what a probe, a stress run or a check gives to a server.
// The model, the server, the host and the faults stay as the author wrote them; comments are lost.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "labs/catalog/scenario.hpp"

namespace oomlab {

struct ScenarioChange {
    // Replaces [workload] altogether when not empty.
    std::vector<PlannedRequest> requests;
    // Tables that go: "gateway", "action", ...
    std::vector<std::string> drop;
    struct Setting {
        std::string section, key;
        std::variant<bool, i64, double, std::string> value;
    };
    std::vector<Setting> set;
};

// On failure: Error::parse with the place, for text that is no TOML. What comes out is TOML, but
// only parse_scenario says whether it is a scenario.
Result<std::string> edit_scenario(std::string_view text, const std::string& file, const ScenarioChange& change);

}  // namespace oomlab
