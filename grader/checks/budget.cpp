// Lab C: the memory budget, written and locked before the first run, held line by line against the
// owners that the server measured.
#include <fmt/format.h>

#include <cmath>

#include "grader/checks/parts.hpp"
#include "labs/catalog/scenario.hpp"

namespace oomlab::course {

Result<CheckResult> check_budget(const Exercise& e, Folder& folder, const CheckOptions& options) {
    Checklist list;
    list.result.exercise = e.id;
    list.result.title = e.title;
    const double unit = e.points / 10;
    list.result.points.reserve(12);
    Progress& progress = folder.progress(e.id);
    auto answers = read_answers(folder, e, "budget.toml");
    if (!answers) {
        Checklist::broken(list.add("budget", "The budget", e.points), answers.error());
        return list.result;
    }
    // The budget that counts is the one that was locked.
    std::map<std::string, std::string> locked = progress.predicted;
    if (locked.empty()) {
        CheckPoint& p = list.add("locked", "The budget is locked before the first run", e.points);
        p.saw = "not locked yet";
        p.asked = "fill in budget.toml, then lock it";
        p.next = "oomlab predict " + e.id;
        return list.result;
    }
    auto run = evidence_of(folder, e, "scenario.toml", options);
    if (!run) {
        Checklist::broken(list.add("budget", "The budget", e.points), run.error());
        return list.result;
    }
    struct Line {
        const char* key;
        const char* title;
        double measured;
        double percent;
        double floor;      // bytes that are always forgiven
        const char* formula;
        double points;
    };
    const auto tolerance = [&](const std::string& key, double otherwise) {
        const auto found = e.limits.find(key);
        return found == e.limits.end() ? otherwise : found->second;
    };
    const Line lines[] = {
        {"weights", "Weights", static_cast<double>(run->weights), tolerance("weights_percent", 3), 64e6, "parameters x bytes a parameter / tensor_parallel_size", 2},
        {"kv_pool", "KV pool", static_cast<double>(run->kv_pool), tolerance("kv_percent", 8), 256e6, "total x gpu_memory_utilization - weights - peak activations - libraries", 2},
        {"activations", "Peak activations", static_cast<double>(run->activation_peak), tolerance("activations_percent", 20), 96e6,
         "max(tokens x (6 I + 8 h), 14.4 x max_num_seqs x vocabulary + 4 x tokens x h), in 16 bit", 2},
        {"graphs", "CUDA graphs", static_cast<double>(run->graphs), tolerance("graphs_percent", 60), 256e6, "about 0.1 to 0.3 GiB for the first capture, 4 to 12 MiB for each further size", 1},
        {"context", "Context and framework", static_cast<double>(run->context), tolerance("context_percent", 50), 256e6, "0.3 to 0.6 GiB for the context, 0.1 to 0.3 GiB for the libraries", 1},
        {"communication", "Communication buffers", static_cast<double>(run->communication), 25, 96e6, "none on one card; 0.2 to 2 GiB with tensor parallelism", 1},
    };
    double sum = 0;
    for (const Line& line : lines) {
        CheckPoint& p = list.add(line.key, line.title, line.points * unit);
        const auto given = answer_bytes(locked, std::string(line.key) + ".size");
        sum += given.value_or(0);
        const double error = given ? *given - line.measured : 0;
        const double allowed = std::max(line.floor, line.percent / 100 * line.measured);
        Checklist::decide(p, given && std::abs(error) <= allowed,
                          given ? fmt::format("you: {}; measured: {} ({}, {:+.1f} %)", human_bytes(static_cast<u64>(*given)), human_bytes(static_cast<u64>(line.measured)),
                                              human_bytes_signed(static_cast<i64>(error)), line.measured > 0 ? 100 * error / line.measured : 0.0)
                                : "no size was locked",
                          fmt::format("within {} of what the server measured", human_bytes(static_cast<u64>(allowed))), fmt::format("the formula: {}", line.formula));
    }
    CheckPoint& total = list.add("sum", "The sum, and the headroom", unit);
    const auto said = answer_bytes(locked, "total.size");
    const auto headroom = answer_bytes(locked, "headroom.size");
    const bool adds = said && std::abs(*said - sum) <= 0.01 * sum + 32e6;
    const bool rest = said && headroom && std::abs(static_cast<double>(run->device_total) - *said - *headroom) <= 0.02 * static_cast<double>(run->device_total);
    Checklist::decide(total, adds && rest,
                      fmt::format("your lines add up to {}, the card has {}", human_bytes(static_cast<u64>(sum)), human_bytes(run->device_total)),
                      "total is the sum of the lines, headroom is what the card has left", "add them up again: every line of a budget recomputes from the others",
                      adds ? total.max / 2 : 0);
    return list.result;
}

}  // namespace oomlab::course
