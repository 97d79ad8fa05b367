// Lab D: an hour under load, three times. Which line grows, how fast, why, when it ends, and the repair.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "grader/checks/parts.hpp"
#include "labs/catalog/drawn_fault.hpp"
#include "labs/catalog/model_config.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/diagnosis/trend.hpp"

namespace oomlab::course {
namespace {

using diagnosis::Trend;

struct Lines {
    Trend allocated, gap, outside;
};

Lines trends(const RunEvidence& r, double until_s) {
    std::vector<diagnosis::TrendSample> a, g, o;
    for (const auto& s : r.series) {
        if (s.at_s > until_s) break;
        a.push_back({s.at_s, static_cast<double>(s.allocated)});
        g.push_back({s.at_s, static_cast<double>(s.reserved) - static_cast<double>(s.allocated)});
        o.push_back({s.at_s, static_cast<double>(s.device_used) - static_cast<double>(s.reserved)});
    }
    diagnosis::TrendOptions allocated, gap;
    gap.quantum = 20.0 * 1024 * 1024;
    allocated.find_restarts = gap.find_restarts = false;
    return {find_trend(a, allocated), find_trend(g, gap), find_trend(o, allocated)};
}

const char* line_of(const std::string& kind) {
    if (kind == "healthy") return "nothing";
    if (kind == "fragmenting_sizes") return "gap";
    if (kind == "outside_growth") return "outside";
    return "allocated";
}

void judge_run(const Exercise& e, Folder& folder, const CheckOptions& options, int n, std::map<std::string, std::string>& answers, Checklist& list) {
    const double unit = e.points / 10 / 3;
    const std::string run_name = fmt::format("run{}", n), fixed_name = fmt::format("fixed{}.toml", n);
    CheckPoint& line = list.add(run_name + ".line", fmt::format("Run {}: which line grows", n), 3 * unit);
    CheckPoint& rate = list.add(run_name + ".rate", fmt::format("Run {}: how fast, and when it ends", n), 2 * unit);
    CheckPoint& cause = list.add(run_name + ".cause", fmt::format("Run {}: the cause", n), 2 * unit);
    CheckPoint& fixed = list.add(run_name + ".fixed", fmt::format("Run {}: an hour that is flat", n), 3 * unit);
    CheckPoint* all[] = {&line, &rate, &cause, &fixed};
    auto text = learner_text(folder, e, run_name + ".toml");
    if (!text) {
        for (CheckPoint* p : all) Checklist::broken(*p, text.error());
        return;
    }
    auto scenario = parse_scenario(*text, e.id + "/" + run_name + ".toml");
    if (!scenario) {
        for (CheckPoint* p : all) Checklist::broken(*p, scenario.error());
        return;
    }
    const auto drawn = std::find_if(scenario->faults.begin(), scenario->faults.end(), [](const FaultSpec& f) { return f.kind == "drawn"; });
    if (drawn == scenario->faults.end()) {
        for (CheckPoint* p : all) Checklist::decide(*p, false, "the drawn fault is gone from " + run_name + ".toml", "the run as it was handed out", "oomlab reset " + e.id);
        return;
    }
    const std::string grows = answers[run_name + ".grows"];
    if (grows.empty()) {
        for (CheckPoint* p : all) {
            p->saw = "answer.toml says nothing about it yet";
            p->next = fmt::format("oomlab run {}/{}.toml --csv {}.csv, then fill in [{}]", e.id, run_name, run_name, run_name);
        }
        return;
    }
    auto shape = load_model_shape(scenario->model.config);
    auto run = evidence_of(folder, e, run_name + ".toml", options);
    if (!shape || !run) {
        for (CheckPoint* p : all) Checklist::broken(*p, !shape ? shape.error() : run.error());
        return;
    }
    const FaultSpec truth = draw_fault(*drawn, shape->hidden_size);
    const std::string right = line_of(truth.kind);
    const double died_s = run->outcome == "served" || run->series.empty() ? 1e18 : run->series.back().at_s - 30;
    const Lines t = trends(*run, died_s);
    const Trend& grown = right == "gap" ? t.gap : right == "outside" ? t.outside : t.allocated;
    Checklist::decide(line, grows == right, fmt::format("you: {}; the series say: allocated {} , gap {} , outside {}", grows, trend_name(t.allocated.kind), trend_name(t.gap.kind), trend_name(t.outside.kind)),
                      "allocated, gap (reserved - allocated), outside (device used - reserved) or nothing", "plot the three lines: oomlab leak on the CSV shows their slopes");
    const auto said = answer_bytes(answers, run_name + ".bytes_per_hour");
    const auto minutes = answer_number(answers, run_name + ".dies_after_minutes");
    if (right == "nothing") {
        Checklist::decide(rate, said.value_or(0) < 32e6 && minutes.value_or(0) == 0, "a healthy hour: no rate, no end", "0 and 0", "a warm-up or a load ramp is no leak");
    } else {
        const double slope = grown.slope_per_hour;
        const bool near = said && std::abs(*said - slope) <= 0.2 * std::abs(slope) + 16e6;
        const bool ends = run->outcome != "served";
        const double end_min = run->series.empty() ? 0 : run->series.back().at_s / 60;
        const bool when = minutes && (ends ? std::abs(*minutes - end_min) <= 0.15 * end_min + 2 : *minutes == 0 || *minutes > 55);
        Checklist::decide(rate, near && when,
                          fmt::format("slope {} an hour [{}, {}]; {}", human_bytes_signed(static_cast<i64>(slope)), human_bytes_signed(static_cast<i64>(grown.low_per_hour)),
                                      human_bytes_signed(static_cast<i64>(grown.high_per_hour)), ends ? fmt::format("it died after {:.0f} minutes", end_min) : "it lives through the hour"),
                          "bytes_per_hour within 20 %, dies_after_minutes within 15 % (0: not within the hour)", "take the slope between steps, after the warm-up", near || when ? rate.max / 2 : 0);
    }
    Checklist::decide(cause, answers[run_name + ".cause"] == truth.kind || (truth.kind == "healthy" && answers[run_name + ".cause"] == "none"),
                      grows == right ? "compared with the seeded cause" : "the line comes first", "the kind of fault, by its name in the task", "what is kept, for whom, and when? The block map says who owns it");
    // The hour after the repair: the fault stays planted, its repair is applied, nothing grows.
    auto after = learner_text(folder, e, fixed_name);
    auto repaired = after ? parse_scenario(*after, e.id + "/" + fixed_name) : Result<Scenario>(fail(after.error()));
    if (!repaired) return Checklist::broken(fixed, repaired.error());
    const bool same = std::any_of(repaired->faults.begin(), repaired->faults.end(), [&](const FaultSpec& f) { return f.kind == "drawn" && f.seed == drawn->seed; });
    if (!same || repaired->workload.duration_s < scenario->workload.duration_s) {
        return Checklist::decide(fixed, false, "the fault or the hour is not the same as in " + run_name + ".toml", "the same hour with [fix] apply", "copy " + run_name + ".toml and add the repair");
    }
    auto flat = evidence_of(folder, e, fixed_name, options);
    if (!flat) return Checklist::broken(fixed, flat.error());
    const Lines f = trends(*flat, 1e18);
    const bool still = f.allocated.rising() || f.gap.rising() || f.outside.rising();
    const bool all_served = flat->outcome == "served" && flat->served.completed_within == flat->served.within_limits;
    Checklist::decide(fixed, !still && all_served,
                      fmt::format("{}, {} of {} requests completed; allocated {}, gap {}, outside {}", flat->outcome, flat->served.completed_within, flat->served.within_limits,
                                  trend_name(f.allocated.kind), trend_name(f.gap.kind), trend_name(f.outside.kind)),
                      "served, everything completed, and no line grows", "a wrong repair changes nothing: two may be tried at a time");
}

}  // namespace

Result<CheckResult> check_leak(const Exercise& e, Folder& folder, const CheckOptions& options) {
    Checklist list;
    list.result.exercise = e.id;
    list.result.title = e.title;
    list.result.points.reserve(12);
    auto answers = read_answers(folder, e, "answer.toml");
    if (!answers) {
        Checklist::broken(list.add("answer", "The answers", e.points), answers.error());
        return list.result;
    }
    for (int n = 1; n <= 3; ++n) judge_run(e, folder, options, n, *answers, list);
    return list.result;
}

}  // namespace oomlab::course
