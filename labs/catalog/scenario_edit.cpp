#include "labs/catalog/scenario_edit.hpp"

#include <sstream>

#include "labs/catalog/toml_reader.hpp"

namespace oomlab {

Result<std::string> edit_scenario(std::string_view text, const std::string& file, const ScenarioChange& change) {
    OOMLAB_TRY(table, parse_toml(text, file));
    for (const std::string& name : change.drop) table.erase(name);
    if (!change.requests.empty()) {
        toml::array requests;
        for (const PlannedRequest& r : change.requests) {
            toml::table row;
            row.insert("at", r.at_s);
            row.insert("prompt_tokens", static_cast<i64>(r.prompt_tokens));
            row.insert("output_tokens", static_cast<i64>(r.output_tokens));
            row.insert("n", static_cast<i64>(r.n));
            row.insert("count", static_cast<i64>(r.count));
            if (r.every_s > 0) row.insert("every", r.every_s);
            requests.push_back(std::move(row));
        }
        i64 seed = 1;
        if (const toml::table* old = table["workload"].as_table()) seed = (*old)["seed"].value_or(i64{1});
        toml::table workload;
        workload.insert("seed", seed);
        workload.insert("request", std::move(requests));
        table.insert_or_assign("workload", std::move(workload));
    }
    for (const ScenarioChange::Setting& s : change.set) {
        if (table.get_as<toml::table>(s.section) == nullptr) table.insert_or_assign(s.section, toml::table{});
        toml::table& section = *table.get_as<toml::table>(s.section);
        std::visit([&](const auto& v) { section.insert_or_assign(s.key, v); }, s.value);
    }
    std::ostringstream out;
    out << table << "\n";
    return out.str();
}

}  // namespace oomlab
