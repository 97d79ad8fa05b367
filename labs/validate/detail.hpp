// What the cases share: the numbers of a case from content/validation, and a server in this process.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "labs/catalog/model_config.hpp"
#include "labs/server/engine.hpp"
#include "labs/validate/validate.hpp"

namespace oomlab::validate {

struct Figure {
    double published = 0, tolerance = 0;
    Row::Kind kind = Row::Kind::percent;
    std::string unit;
};
// content/validation/<case>.toml: [figure.NAME] published, tolerance, kind, unit.
class Figures {
  public:
    static Result<Figures> load(const std::string& name);
    // Adds a row; a figure that the file does not have is our bug.
    void row(Report& report, const std::string& name, double simulated) const;
    bool has(const std::string& name) const { return figures_.count(name) != 0; }
    const Figure& at(const std::string& name) const { return figures_.at(name); }
    std::string title;

  private:
    std::map<std::string, Figure> figures_;
};

struct Silent final : server::Console {
    void line(const std::string&) override {}
};

struct Served {
    std::unique_ptr<Device> device;
    std::unique_ptr<server::Engine> engine;
    Silent console;
    int exit_status = -1;
    double wall_s = 0;
};
struct ServeOptions {
    bool results = false, slots = false, replay = true;
};
Result<std::unique_ptr<Served>> serve(const std::string& scenario_text, std::vector<PlannedRequest> requests,
                                      const ServeOptions& options = {});
Result<std::unique_ptr<Served>> serve(const std::string& scenario_text, const ModelShape& shape,
                                      std::vector<PlannedRequest> requests, const ServeOptions& options = {});

Result<Report> measured_run(const Options& options);        // R1
Result<Report> forgotten_gigabyte(const Options& options);  // R2
Result<Report> paged_attention(const Options& options);     // R3
Result<Report> exact_arithmetic(const Options& options);    // R4
Result<Report> chunked_prefill(const Options& options);     // R5
Result<Report> page_size(const Options& options);           // R6
Result<Report> start_up(const Options& options);            // R7
Result<Report> pathologies(const Options& options);         // R10
Result<Report> memory_profiling(const Options& options);    // R12

}  // namespace oomlab::validate
