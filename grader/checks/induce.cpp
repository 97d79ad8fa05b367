// Lab A: a server made to fail as type N, explained, and cured. The trace is believed, not the record.
#include <fmt/format.h>

#include <algorithm>

#include "grader/checks/parts.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/catalog/text_file.hpp"
#include "labs/diagnosis/six_types.hpp"

namespace oomlab::course {
namespace {

const char* when_of(int type) {
    switch (type) {
        case 1: return "at_load";
        case 2: return "first_long_prompt";
        case 3: return "under_load";
        case 4: return "after_hours";
        case 5: return "process_gone";
        case 6: return "not_memory";
    }
    return "nothing failed";
}

bool same_dist(const TokenDist& a, const TokenDist& b) {
    if (a.kind != b.kind || a.value != b.value || a.mean != b.mean || a.cv != b.cv || a.low != b.low || a.high != b.high ||
        a.parts.size() != b.parts.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.parts.size(); ++i) {
        if (a.parts[i].share != b.parts[i].share || !same_dist(a.parts[i].tokens, b.parts[i].tokens)) return false;
    }
    return true;
}

// "" when both workloads send the same requests; otherwise what differs.
std::string workload_difference(const Scenario::Workload& a, const Scenario::Workload& b) {
    if (a.seed != b.seed) return "workload.seed";
    if (a.duration_s != b.duration_s) return "workload.duration";
    if (a.poisson != b.poisson || a.rate_repeat_s != b.rate_repeat_s || a.arrival_rate.size() != b.arrival_rate.size()) return "workload.arrival_rate";
    for (std::size_t i = 0; i < a.arrival_rate.size(); ++i) {
        if (a.arrival_rate[i].at_s != b.arrival_rate[i].at_s || a.arrival_rate[i].rate != b.arrival_rate[i].rate) return "workload.arrival_rate";
    }
    if (a.concurrency != b.concurrency) return "workload.concurrency";
    if (!same_dist(a.prompt_tokens, b.prompt_tokens)) return "workload.prompt_tokens";
    if (!same_dist(a.output_tokens, b.output_tokens)) return "workload.output_tokens";
    if (a.n != b.n || a.cancel_share != b.cancel_share || a.cancel_after_s != b.cancel_after_s || a.shared_prefix != b.shared_prefix) return "workload";
    if (a.requests.size() != b.requests.size()) return "the number of [[workload.request]]";
    for (std::size_t i = 0; i < a.requests.size(); ++i) {
        const PlannedRequest &p = a.requests[i], &q = b.requests[i];
        if (p.at_s != q.at_s || p.prompt_tokens != q.prompt_tokens || p.output_tokens != q.output_tokens || p.n != q.n ||
            p.count != q.count || p.every_s != q.every_s || p.cancel_after_s != q.cancel_after_s) {
            return fmt::format("[[workload.request]] number {}", i + 1);
        }
    }
    return "";
}

std::string faults_of(const Scenario& s) {
    std::vector<std::string> kinds;
    for (const FaultSpec& f : s.faults) {
        kinds.push_back(fmt::format("{} {} {} {} {} {}", f.kind, f.from_s, f.share, f.bytes, f.bytes_per_hour, f.bytes_per_request));
    }
    std::sort(kinds.begin(), kinds.end());
    return fmt::format("{}", fmt::join(kinds, ", "));
}

std::string what_happened(const RunEvidence& r) {
    if (r.outcome == "served") return "the server served everything; nothing failed";
    if (r.type == 0) return fmt::format("the run ended as {}, and no type is proven", r.outcome);
    return fmt::format("this is a type {} ({}): {}", r.type, diagnosis::type_title(r.type),
                       r.summary.empty() ? fmt::format("it failed in the phase {}", r.phase) : r.summary);
}

void judge_record(const Exercise& e, Folder& folder, const RunEvidence& r, CheckPoint& p) {
    auto answers = read_answers(folder, e, "record.toml");
    if (!answers) return Checklist::broken(p, answers.error());
    std::vector<std::string> wrong;
    double good = 0;
    const auto is = [&](bool ok, const std::string& otherwise) {
        if (ok) good += 0.25;
        else wrong.push_back(otherwise);
    };
    is((*answers)["type"] == std::to_string(r.type), fmt::format("type: you wrote '{}'", (*answers)["type"]));
    is((*answers)["when"] == when_of(r.type), fmt::format("when: you wrote '{}'", (*answers)["when"]));
    const std::string message = (*answers)["message"];
    if (r.message.empty()) {
        is(message.empty() || mentions(message, "none|no message|no traceback|nothing|killed"), "message: this death leaves no message of its own; say so");
    } else {
        std::string quoted = message;
        while (!quoted.empty() && (quoted.back() == '.' || quoted.back() == ' ')) quoted.pop_back();
        is(quoted.size() >= 12 && r.message.find(quoted) != std::string::npos,
           "message: quote a stretch of the message as it was printed (twelve characters or more)");
    }
    std::string missing;
    const auto words = e.words.find("evidence");
    const bool said = (*answers)["evidence"].size() >= 20 && (words == e.words.end() || mentions_all((*answers)["evidence"], words->second, missing));
    is(said, missing.empty() ? "evidence: say which figures or lines tell this type from the others"
                             : "evidence: it does not mention " + missing);
    Checklist::decide(p, wrong.empty(), wrong.empty() ? "type, time, message and evidence agree with the trace" : fmt::format("{}", fmt::join(wrong, "; ")),
                      "record.toml says type, when, message and the evidence, as the run shows them",
                      "open record.toml, and look at the run again: oomlab run " + e.id + "/broken.toml", p.max * good);
}

void judge_cure(const Exercise& e, Folder& folder, const CheckOptions& options, const Scenario& broken, CheckPoint& p) {
    const std::string asked = "cured.toml serves the same workload without an OOM, every request within the task's limits completed";
    auto text = learner_text(folder, e, "cured.toml");
    if (!text) return Checklist::broken(p, text.error());
    auto cured = parse_scenario(*text, e.id + "/cured.toml");
    if (!cured) return Checklist::broken(p, cured.error());
    if (const std::string other = workload_difference(broken.workload, cured->workload); !other.empty()) {
        return Checklist::decide(p, false, fmt::format("{} differs between broken.toml and cured.toml", other), asked,
                                 "a cure keeps the traffic: copy [workload] from broken.toml and change the server");
    }
    if (broken.device.name != cured->device.name || broken.device.memory_limit != cured->device.memory_limit) {
        return Checklist::decide(p, false, "the device differs from broken.toml's", asked, "cure it on the card you have");
    }
    if (broken.model.config != cured->model.config) {
        return Checklist::decide(p, false, "the model differs from broken.toml's", asked, "the service keeps its model: change how it is loaded or served");
    }
    if (faults_of(broken) != faults_of(*cured)) {
        return Checklist::decide(p, false, "the [[fault]] of broken.toml is gone or changed", asked,
                                 "deleting the bug is not a cure: keep [[fault]] and name the repair in [fix] apply");
    }
    if (broken.host.checkpoint_bytes != cured->host.checkpoint_bytes) {
        return Checklist::decide(p, false, "host.checkpoint_bytes differs: the checkpoint is as large as it is", asked, "change how it is loaded");
    }
    auto run = evidence_of(folder, e, "cured.toml", options);
    if (!run) return Checklist::broken(p, run.error());
    if (run->outcome != "served") {
        return Checklist::decide(p, false, "cured.toml still fails: " + what_happened(*run), asked, "read the message again, then `oomlab hint " + e.id + "`");
    }
    const Served& s = run->served;
    const bool all = s.completed_within == s.within_limits;
    std::string saw = fmt::format("served; {} of {} requests within the limits completed", s.completed_within, s.within_limits);
    if (s.rejected_within != 0) saw += fmt::format(", {} were turned away by the gateway", s.rejected_within);
    if (s.failed_within != 0) saw += fmt::format(", {} failed", s.failed_within);
    Checklist::decide(p, all, saw, asked, "turning legitimate traffic away is not a cure: serve it", 0);
}

}  // namespace

Result<CheckResult> check_induce(const Exercise& e, Folder& folder, const CheckOptions& options) {
    Checklist list;
    list.result.exercise = e.id;
    list.result.title = e.title;
    Progress& progress = folder.progress(e.id);
    const double unit = e.points / 10;
    list.result.points.reserve(5);
    CheckPoint& happened = list.add("happened", "It fails", 3 * unit);
    CheckPoint& type = list.add("type", fmt::format("It fails as type {}: {}", e.type, diagnosis::type_title(e.type)), 2 * unit);
    CheckPoint& explained = list.add("explained", "The record explains it", 2 * unit);
    CheckPoint& cured = list.add("cured", "The same workload, cured", 3 * unit);

    if (!e.predict.empty() && progress.predicted.empty() && !options.fresh) {
        happened.saw = "no prediction yet";
        happened.asked = "a prediction before the first run";
        happened.next = "oomlab predict " + e.id;
        for (CheckPoint* p : {&type, &explained, &cured}) Checklist::block(*p, "the prediction");
        return list.result;
    }
    progress.prediction_locked = true;

    auto text = learner_text(folder, e, "broken.toml");
    auto starter = read_text_file(e.folder + "/broken.toml");
    if (!text || !starter) {
        Checklist::broken(happened, !text ? text.error() : starter.error());
        for (CheckPoint* p : {&type, &explained, &cured}) Checklist::block(*p, happened.title);
        return list.result;
    }
    auto broken = parse_scenario(*text, e.id + "/broken.toml");
    auto healthy = parse_scenario(folder.instantiate(e, *starter), e.id);
    if (!broken || !healthy) {
        Checklist::broken(happened, !broken ? broken.error() : healthy.error());
        for (CheckPoint* p : {&type, &explained, &cured}) Checklist::block(*p, happened.title);
        return list.result;
    }
    const std::string asked = fmt::format("broken.toml, edited until the server fails as type {}", e.type);
    auto run = evidence_of(folder, e, "broken.toml", options);
    if (!run) {
        Checklist::broken(happened, run.error());
        for (CheckPoint* p : {&type, &explained, &cured}) Checklist::block(*p, happened.title);
        return list.result;
    }
    const bool failed = run->outcome != "served" && run->outcome != "timeout";
    if (failed && broken->device.name != healthy->device.name) {
        Checklist::decide(happened, false, "the device was changed", asked, "break it on the card of the task: " + healthy->device.name);
    } else {
        Checklist::decide(happened, failed, what_happened(*run), asked,
                          *text == folder.instantiate(e, *starter) ? "broken.toml is still the healthy server: change one thing, then `oomlab run " + e.id + "/broken.toml`"
                                                                     : "`oomlab hint " + e.id + "` helps in four steps");
    }
    if (happened.state != CheckState::pass) {
        for (CheckPoint* p : {&type, &explained, &cured}) Checklist::block(*p, happened.title);
        return list.result;
    }
    Checklist::decide(type, run->type == e.type, what_happened(*run), asked,
                      "the wrong way to fail is worth knowing, and it is not this task: undo the edit and try another");
    if (type.state != CheckState::pass) {
        for (CheckPoint* p : {&explained, &cured}) Checklist::block(*p, type.title);
        return list.result;
    }
    judge_record(e, folder, *run, explained);
    judge_cure(e, folder, options, *broken, cured);
    return list.result;
}

}  // namespace oomlab::course
