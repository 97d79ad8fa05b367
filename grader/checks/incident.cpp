// The worked incident: classify, correlate, reproduce, confirm, fix, measure. Each step is believed
// from the learner's own runs.
#include <fmt/format.h>

#include <cmath>

#include "grader/checks/parts.hpp"
#include "labs/catalog/scenario.hpp"

namespace oomlab::course {

Result<CheckResult> check_incident(const Exercise& e, Folder& folder, const CheckOptions& options) {
    Checklist list;
    list.result.exercise = e.id;
    list.result.title = e.title;
    list.result.points.reserve(8);
    const double unit = e.points / 10;
    CheckPoint& classify = list.add("classify", "Classify by elimination", 1.5 * unit);
    CheckPoint& correlate = list.add("correlate", "What do the deaths have in common", 1.5 * unit);
    CheckPoint& reproduce = list.add("reproduce", "Make it die on purpose", 2 * unit);
    CheckPoint& confirm = list.add("confirm", "The bytes: profiled and real", 2 * unit);
    CheckPoint& fix = list.add("fix", "The peak hour after the fix", 3 * unit);
    auto answers = read_answers(folder, e, "answers.toml");
    if (!answers) {
        for (CheckPoint* p : {&classify, &correlate, &reproduce, &confirm, &fix}) Checklist::broken(*p, answers.error());
        return list.result;
    }
    auto& a = *answers;
    std::string missing;
    const bool type = a["classify.type"] == "2";
    const bool why = mentions_all(a["classify.why_not_others"], {"start|load|serving", "flat|grow|gradual", "traceback|137|host"}, missing);
    Checklist::decide(classify, type && why,
                      type ? (why ? "type 2, and what it is not" : "type 2; the elimination does not mention " + missing)
                           : a["classify.type"].empty() ? "nothing said yet"
                                                        : fmt::format("you: type {}. It dies while serving (not 1), memory is flat between deaths (not 4), there is a traceback (not 5), KV use is far from full (not 3)", a["classify.type"]),
                      "the type, and why it is none of the others", "oomlab run incident/peak.toml, and read when it dies and what grows", type ? classify.max / 2 : 0);
    const auto threshold = answer_number(a, "correlate.prompt_tokens_above");
    Checklist::decide(correlate, threshold && *threshold >= 18000 && *threshold <= 29500,
                      threshold ? fmt::format("you: prompts above {:.0f} tokens", *threshold) : "nothing said yet",
                      "the prompt length that every death shares and no survivor has: between 18,000 and 29,000 in this traffic",
                      "look at the failing request of each death: its prompt is in the failure's line");
    auto died = evidence_of(folder, e, "reproduce.toml", options);
    if (!died) {
        Checklist::broken(reproduce, died.error());
    } else {
        Checklist::decide(reproduce, died->type == 2, died->type == 2 ? "it dies as type 2: " + died->summary : fmt::format("it ended as {} (type {})", died->outcome, died->type),
                          "a fresh server, 40 sequences decoding, one prompt of 30,000 tokens", "add [[workload.request]] entries to reproduce.toml: 40 ordinary ones, then the long one");
    }
    if (!died || died->type != 2) {
        Checklist::block(confirm, reproduce.title);
    } else {
        const auto profiled = answer_bytes(a, "confirm.profiled_activation"), real = answer_bytes(a, "confirm.real_activation");
        const bool first = profiled && std::abs(*profiled - static_cast<double>(died->activation_peak)) <= 0.08 * static_cast<double>(died->activation_peak);
        const bool second = real && *real >= 10.2e9 && *real <= 11.9e9;
        Checklist::decide(confirm, first && second,
                          fmt::format("profiled: {}; by the law, 30,040 tokens need 11.2 GB (12 I + 8 h bytes each, with the int32 product)", human_bytes(died->activation_peak)),
                          "both figures: what the pool was sized with, and what the long prefill needs", "the failure's line says both", first || second ? confirm.max / 2 : 0);
    }
    auto peak_text = learner_text(folder, e, "peak.toml"), fixed_text = learner_text(folder, e, "fixed.toml");
    auto peak = peak_text ? parse_scenario(*peak_text, "incident/peak.toml") : Result<Scenario>(fail(peak_text.error()));
    auto fixed = fixed_text ? parse_scenario(*fixed_text, "incident/fixed.toml") : Result<Scenario>(fail(fixed_text.error()));
    if (!peak || !fixed) {
        Checklist::broken(fix, !peak ? peak.error() : fixed.error());
        return list.result;
    }
    const std::string asked = "the same traffic without an OOM: chunked prefill, input capped at 32,000 with a clear 400, utilization at most 0.90, and all legitimate requests served";
    const bool chunked = fixed->server.enable_chunked_prefill;
    const bool capped = fixed->gateway.max_input_tokens >= 31900 && fixed->gateway.max_input_tokens <= 32768;
    const bool lowered = fixed->server.gpu_memory_utilization <= 0.901;
    const bool same = fixed->workload.seed == peak->workload.seed && fixed->workload.duration_s == peak->workload.duration_s &&
                      fixed->workload.requests.size() == peak->workload.requests.size() && fixed->model.config == peak->model.config &&
                      fixed->device.name == peak->device.name;
    if (!same || !chunked || !capped || !lowered) {
        Checklist::decide(fix, false, !same ? "the traffic, the model or the card differs from peak.toml" : !chunked ? "chunked prefill is off" : !capped ? "no input cap at 32,000" : "utilization is above 0.90",
                          asked, "the three cures each work alone; production wants all three");
        return list.result;
    }
    auto run = evidence_of(folder, e, "fixed.toml", options);
    if (!run) Checklist::broken(fix, run.error());
    else Checklist::decide(fix, run->outcome == "served" && run->served.completed_within == run->served.within_limits,
                           fmt::format("{}; {} of {} requests completed", run->outcome, run->served.completed_within, run->served.within_limits), asked, "read what still fails, and why");
    return list.result;
}

}  // namespace oomlab::course
