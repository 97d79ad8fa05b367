// Runs a scenario text on a simulated chip in this process, without a trace unless one is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "labs/catalog/model_config.hpp"
#include "labs/server/engine.hpp"
#include "labs/server/program/open_chip.hpp"

namespace oomlab::test {

struct QuietConsole final : server::Console {
    std::vector<std::string> lines;
    void line(const std::string& text) override { lines.push_back(text); }
};

struct ServerRun {
    QuietConsole console;
    std::unique_ptr<Device> device;
    std::unique_ptr<server::Engine> engine;
    int exit_status = -1;
    std::string error;
};

struct RunOptions {
    bool replay = true, check = true, results = false;
    trace::Writer* writer = nullptr;
};

inline std::unique_ptr<ServerRun> run_server(const std::string& text, const RunOptions& options = {},
                                             std::vector<PlannedRequest> requests = {}) {
    auto run = std::make_unique<ServerRun>();
    const auto broken = [&](const Error& e) {
        run->error = e.message;
        return std::move(run);
    };
    auto scenario = parse_scenario(text, "test.toml");
    if (!scenario) return broken(scenario.error());
    for (const PlannedRequest& r : requests) scenario->workload.requests.push_back(r);
    auto shape = load_model_shape(scenario->model.config);
    if (!shape) return broken(shape.error());
    auto device = server::open_chip(*scenario, "", *shape);
    if (!device) return broken(device.error());
    run->device = std::move(*device);
    auto config = server::resolve_config(*scenario, *shape, run->device->props());
    if (!config) return broken(config.error());
    run->engine = std::make_unique<server::Engine>(std::move(*config), *run->device, options.writer, run->console);
    run->engine->replay = options.replay;
    run->engine->check_invariants = options.check;
    run->engine->keep_results = options.results;
    run->exit_status = run->engine->run();
    return run;
}

}  // namespace oomlab::test
