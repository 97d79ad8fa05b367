#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "labs/supervisor/machine.hpp"
#include "ui/cli/command.hpp"

namespace oomlab::cli {

namespace {
using supervisor::Finding;
using supervisor::Health;

const char* mark(Health health) {
    switch (health) {
        case Health::good: return "ok";
        case Health::info: return "-";
        case Health::limited: return "!";
        case Health::missing: return "MISSING";
    }
    return "?";
}

void print_text(const std::vector<Finding>& findings, bool ready) {
    for (const Finding& f : findings) {
        std::fputs(fmt::format("{:>7}  {:<11}{}\n", mark(f.health), f.topic, f.what).c_str(), stdout);
        if (!f.why.empty()) std::fputs(fmt::format("{:20}{}\n", "", f.why).c_str(), stdout);
    }
    std::puts(ready ? "\nThis machine can run the course." : "\nThis machine cannot run the course yet.");
}

void print_json(const std::vector<Finding>& findings, bool ready) {
    auto list = nlohmann::json::array();
    for (const Finding& f : findings) {
        list.push_back({{"topic", f.topic}, {"health", supervisor::health_name(f.health)},
                        {"what", f.what}, {"why", f.why}});
    }
    const nlohmann::json all = {{"ready", ready}, {"findings", list}};
    std::puts(all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}
}  // namespace

void add_doctor(CLI::App& app, int& exit_status) {
    auto* cmd = app.add_subcommand("doctor", "What this machine offers, what will be used, and why");
    const auto json = std::make_shared<bool>(false);
    cmd->add_flag("--json", *json, "Print one JSON object");
    cmd->callback([&exit_status, json] {
        const auto findings = supervisor::examine_machine(
            {supervisor::own_program_folder(), OOMLAB_WINDOW_BUILT != 0});
        const bool ready = std::none_of(findings.begin(), findings.end(), [](const Finding& f) {
            return f.health == Health::missing;
        });
        if (*json) {
            print_json(findings, ready);
        } else {
            print_text(findings, ready);
        }
        exit_status = ready ? 0 : 3;
    });
}

}  // namespace oomlab::cli
