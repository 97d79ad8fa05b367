#include "labs/validate/detail.hpp"

#include <fmt/format.h>
#include <time.h>

#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/toml_reader.hpp"
#include "labs/server/program/open_chip.hpp"

namespace oomlab::validate {

double Row::difference() const {
    if (kind != Kind::percent) return simulated - published;
    return published == 0 ? 0 : 100 * (simulated - published) / published;
}

bool Row::holds() const {
    constexpr double kRounding = 1e-9;
    switch (kind) {
        case Kind::at_most: return simulated <= published + kRounding;
        case Kind::at_least: return simulated >= published - kRounding;
        default: return std::abs(difference()) <= tolerance + kRounding;
    }
}

bool Report::holds() const {
    for (const Row& r : rows) {
        if (!r.holds()) return false;
    }
    return true;
}

Result<Figures> Figures::load(const std::string& name) {
    OOMLAB_TRY(dir, content_dir());
    const std::string path = dir + "/validation/" + name + ".toml";
    OOMLAB_TRY(text, read_text_file(path));
    OOMLAB_TRY(root, parse_toml(text, path));
    std::optional<Error> error;
    TomlReader r(root, path, "", error);
    Figures out;
    out.title = r.text("title", name);
    r.text("source", "");
    if (const toml::table* figures = r.table("figure")) {
        for (const auto& [key, value] : *figures) {
            const toml::table* t = value.as_table();
            if (t == nullptr) {
                r.error(&value, "figure." + std::string(key.str()) + " is a table");
                break;
            }
            TomlReader f(*t, path, "figure." + std::string(key.str()) + ".", error);
            Figure figure;
            figure.published = f.number("published", 0, -1e15, 1e15);
            figure.tolerance = f.number("tolerance", 0, 0, 1e15);
            const std::string kind = f.one_of("kind", "percent", {"percent", "points", "absolute", "at_most", "at_least"});
            figure.kind = kind == "percent"    ? Row::Kind::percent
                          : kind == "points"   ? Row::Kind::points
                          : kind == "absolute" ? Row::Kind::absolute
                          : kind == "at_most"  ? Row::Kind::at_most
                                               : Row::Kind::at_least;
            figure.unit = f.text("unit", "");
            f.finish();
            out.figures_[std::string(key.str())] = figure;
        }
    }
    r.finish();
    if (error) return fail(*error);
    return out;
}

void Figures::row(Report& report, const std::string& name, double simulated) const {
    const auto found = figures_.find(name);
    OOMLAB_CHECK(found != figures_.end());
    Row row;
    row.what = name;
    row.unit = found->second.unit;
    row.published = found->second.published;
    row.simulated = simulated;
    row.tolerance = found->second.tolerance;
    row.kind = found->second.kind;
    report.rows.push_back(row);
}

Result<std::unique_ptr<Served>> serve(const std::string& scenario_text, const ModelShape& shape,
                                      std::vector<PlannedRequest> requests, const ServeOptions& options) {
    OOMLAB_TRY(scenario, parse_scenario(scenario_text, "validation"));
    for (PlannedRequest& r : requests) scenario.workload.requests.push_back(r);
    auto served = std::make_unique<Served>();
    OOMLAB_TRY(device, server::open_chip(scenario, "", shape));
    served->device = std::move(device);
    OOMLAB_TRY(config, server::resolve_config(scenario, shape, served->device->props()));
    served->engine = std::make_unique<server::Engine>(std::move(config), *served->device, nullptr, served->console);
    served->engine->keep_results = options.results;
    served->engine->watch_slots = options.slots;
    served->engine->replay = options.replay;
    timespec a{}, b{};
    clock_gettime(CLOCK_MONOTONIC, &a);
    served->exit_status = served->engine->run();
    clock_gettime(CLOCK_MONOTONIC, &b);
    served->wall_s = static_cast<double>(b.tv_sec - a.tv_sec) + 1e-9 * static_cast<double>(b.tv_nsec - a.tv_nsec);
    return served;
}

Result<std::unique_ptr<Served>> serve(const std::string& scenario_text, std::vector<PlannedRequest> requests,
                                      const ServeOptions& options) {
    OOMLAB_TRY(scenario, parse_scenario(scenario_text, "validation"));
    OOMLAB_TRY(shape, load_model_shape(scenario.model.config));
    return serve(scenario_text, shape, std::move(requests), options);
}

std::vector<std::string> case_names() { return {"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R10", "R12"}; }

Result<std::vector<Report>> run_all(const Options& options) {
    using Case = Result<Report> (*)(const Options&);
    static constexpr Case kCases[] = {measured_run, forgotten_gigabyte, paged_attention, exact_arithmetic, chunked_prefill,
                                      page_size, start_up, pathologies, memory_profiling};
    const std::vector<std::string> names = case_names();
    std::vector<Report> reports;
    for (std::size_t i = 0; i < names.size(); ++i) {
        bool wanted = options.names.empty();
        for (const std::string& n : options.names) wanted = wanted || n == names[i];
        if (!wanted) continue;
        OOMLAB_TRY(report, kCases[i](options));
        report.name = names[i];
        reports.push_back(std::move(report));
    }
    return reports;
}

}  // namespace oomlab::validate
