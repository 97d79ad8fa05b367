// oomlab-validate: published results against ours. `oomlab validate` runs it.
//   oomlab-validate [NAME ...] [--json] [--serving FOLDER|FILE.json]
// Exit status: 0 all within tolerance (or skipped), 1 not, 2 bad flag or file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "labs/validate/validate.hpp"

using namespace oomlab;
using namespace oomlab::validate;

namespace {

std::string figure(double v) {
    if (v == static_cast<long long>(v) && std::abs(v) < 1e12) return fmt::format("{}", static_cast<long long>(v));
    return fmt::format("{:.2f}", v);
}

std::string tolerance(const Row& r) {
    switch (r.kind) {
        case Row::Kind::percent: return fmt::format("{:g} %", r.tolerance);
        case Row::Kind::points: return fmt::format("{:g}", r.tolerance);
        case Row::Kind::absolute: return r.tolerance == 0 ? "exact" : fmt::format("{:g}", r.tolerance);
        case Row::Kind::at_most: return "at most";
        case Row::Kind::at_least: return "at least";
    }
    return "";
}

std::string difference(const Row& r) {
    return r.kind == Row::Kind::percent ? fmt::format("{:+.1f} %", r.difference()) : fmt::format("{:+.2f}", r.difference());
}

void print(const Report& report) {
    fmt::print("{}  {}\n", report.name, report.title);
    if (!report.skipped.empty()) fmt::print("  skipped: {}\n", report.skipped);
    std::size_t width = 20;
    for (const Row& r : report.rows) width = std::max(width, r.what.size() + r.unit.size() + 3);
    if (!report.rows.empty()) fmt::print("  {:{}}  {:>12}  {:>12}  {:>10}  {:>9}\n", "", width, "published", "simulated", "difference", "tolerance");
    for (const Row& r : report.rows) {
        const std::string what = r.unit.empty() ? r.what : fmt::format("{} ({})", r.what, r.unit);
        fmt::print("  {:{}}  {:>12}  {:>12}  {:>10}  {:>9}  {}\n", what, width, figure(r.published), figure(r.simulated),
                   difference(r), tolerance(r), r.holds() ? "ok" : "OUTSIDE");
    }
    for (const std::string& n : report.notes) fmt::print("  note: {}\n", n);
    if (report.wall_s > 0 && report.simulated_s > 0) {
        fmt::print("  speed: {:.0f} simulated seconds in {:.2f} s, {:.0f} times real time\n", report.simulated_s, report.wall_s,
                   report.simulated_s / report.wall_s);
    }
    fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    bool json = false;
    for (int i = 1; i < argc; ++i) {
        const std::string a = argv[i];
        if (a == "--json") json = true;
        else if (a == "--serving" && i + 1 < argc) options.serving = argv[++i];
        else if (!a.empty() && a[0] != '-') {
            std::string name = a;
            if (name[0] == 'r') name[0] = 'R';
            const auto names = case_names();
            if (std::find(names.begin(), names.end(), name) == names.end()) {
                fmt::print(stderr, "oomlab: validate: no case {}; known: {}\n", a, fmt::join(names, " "));
                return 2;
            }
            options.names.push_back(name);
        } else {
            fmt::print(stderr, "oomlab: validate: unknown flag {} (known: --json --serving PLACE)\n", a);
            return 2;
        }
    }
    auto reports = run_all(options);
    if (!reports) {
        fmt::print(stderr, "oomlab: {}\n", reports.error().message);
        return exit_code(reports.error());
    }
    bool good = true;
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const Report& r : *reports) {
        good = good && r.holds();
        if (!json) {
            print(r);
            continue;
        }
        nlohmann::ordered_json rows = nlohmann::ordered_json::array();
        for (const Row& row : r.rows) {
            rows.push_back({{"what", row.what}, {"unit", row.unit}, {"published", row.published}, {"simulated", row.simulated},
                            {"difference", row.difference()}, {"tolerance", row.tolerance}, {"verdict", row.holds() ? "ok" : "outside"}});
        }
        out.push_back({{"name", r.name}, {"title", r.title}, {"skipped", r.skipped}, {"simulated", true}, {"verdict", r.holds() ? "ok" : "outside"},
                       {"rows", rows}, {"notes", r.notes}, {"simulated_s", r.simulated_s}});
    }
    if (json) fmt::print("{}\n", out.dump(2));
    else fmt::print("all figures of ours are simulated; time constants are the same for every card (0.90 of the bandwidth, 0.65 of the operations, 1 ms a step)\n");
    return good ? 0 : 1;
}
