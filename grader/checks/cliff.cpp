// Lab B: the prompt length at which a configuration dies. The check bisects by itself and compares.
#include <fmt/format.h>

#include <cmath>

#include "grader/checks/parts.hpp"
#include "labs/catalog/model_config.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/lab_b_cliff/cliff.hpp"

namespace oomlab::course {
namespace {

double limit(const Exercise& e, const char* key, double otherwise) {
    const auto found = e.limits.find(key);
    return found == e.limits.end() ? otherwise : found->second;
}

}  // namespace

Result<CheckResult> check_cliff(const Exercise& e, Folder& folder, const CheckOptions& options) {
    Checklist list;
    list.result.exercise = e.id;
    list.result.title = e.title;
    list.result.points.reserve(4);
    const double unit = e.points / 10;
    CheckPoint& cliff = list.add("cliff", "The length at which it dies", 3 * unit);
    CheckPoint& batch = list.add("batch", "The cliff of a batch of four", 1 * unit);
    CheckPoint& slope = list.add("slope", "Activation bytes a token, with the formula", 3 * unit);
    CheckPoint& cured = list.add("cured", "Chunked prefill: no prompt up to max_model_len fails", 3 * unit);
    auto answers = read_answers(folder, e, "answer.toml");
    auto text = learner_text(folder, e, "scenario.toml");
    if (!answers || !text) {
        for (CheckPoint* p : {&cliff, &batch, &slope, &cured}) Checklist::broken(*p, !answers ? answers.error() : text.error());
        return list.result;
    }
    auto scenario = parse_scenario(*text, e.id + "/scenario.toml");
    if (!scenario) {
        for (CheckPoint* p : {&cliff, &batch, &slope, &cured}) Checklist::broken(*p, scenario.error());
        return list.result;
    }
    const auto given = answer_number(*answers, "cliff_tokens");
    if (!given || *given <= 0) {
        Checklist::decide(cliff, false, "answer.toml has no cliff_tokens yet", "the longest prompt that fits, within the step",
                          "find it with `oomlab probe --prompt-tokens N`, halving the bracket each time");
        for (CheckPoint* p : {&batch, &slope, &cured}) Checklist::block(*p, cliff.title);
        return list.result;
    }
    if (options.say) options.say("bisecting the cliff by ourselves");
    lab_b::CliffSetup setup{folder.path(e, "scenario.toml"), "", {}};
    auto limits = lab_b::limits_of(setup);
    if (!limits) {
        for (CheckPoint* p : {&cliff, &batch, &slope, &cured}) Checklist::broken(*p, limits.error());
        return list.result;
    }
    lab_b::Range range = lab_b::default_range(limits->max_model_len);
    auto found = lab_b::bisect(setup, 1, range);
    if (!found) {
        for (CheckPoint* p : {&cliff, &batch, &slope, &cured}) Checklist::broken(*p, found.error());
        return list.result;
    }
    if (!found->found) {
        Checklist::decide(cliff, false, "no prompt up to max_model_len fails with scenario.toml: there is no cliff to find", "a configuration with a cliff",
                          "scenario.toml is the configuration of the task: `oomlab reset " + e.id + "` brings it back");
        for (CheckPoint* p : {&batch, &slope, &cured}) Checklist::block(*p, cliff.title);
        return list.result;
    }
    const double tolerance = std::max(static_cast<double>(range.step), limit(e, "cliff_percent", 1.5) / 100 * static_cast<double>(found->fits_tokens));
    Checklist::decide(cliff, std::abs(*given - static_cast<double>(found->fits_tokens)) <= tolerance,
                      fmt::format("you: {:.0f} tokens; ours: {} fit and {} fail", *given, found->fits_tokens, found->fails_tokens),
                      fmt::format("the longest prompt that fits, within {:.0f} tokens", tolerance), "probe between the longest that fits and the shortest that fails");
    const auto four = answer_number(*answers, "cliff_tokens_batch_4");
    const double expected = static_cast<double>(found->fits_tokens) / 4;
    Checklist::decide(batch, four && std::abs(*four - expected) <= 0.04 * expected + 32,
                      four ? fmt::format("you: {:.0f} tokens each; a quarter of the cliff is {:.0f}", *four, expected) : "answer.toml has no cliff_tokens_batch_4",
                      "the length at which four prompts of one batch die", "a step's tokens are what counts, whoever brings them: oomlab probe --batch 4");

    // The slope between two probes that fit: bytes that each further token takes.
    const u64 high = found->fits_tokens, low = high / 2;
    auto a = lab_b::probe(setup, low, 1), b = lab_b::probe(setup, high, 1);
    if (!a || !b) {
        Checklist::broken(slope, !a ? a.error() : b.error());
    } else {
        const double measured = static_cast<double>(b->peak_activation_bytes - a->peak_activation_bytes) / static_cast<double>(high - low);
        const auto bytes = answer_number(*answers, "activation_bytes_per_token");
        const double allowed = limit(e, "slope_percent", 5) / 100 * measured;
        std::string missing;
        const auto words = e.words.find("formula");
        const bool formula = words == e.words.end() || mentions_all((*answers)["formula"], words->second, missing);
        const bool near = bytes && std::abs(*bytes - measured) <= allowed;
        Checklist::decide(slope, near && formula,
                          fmt::format("{}; measured between two probes: {:.0f} bytes a token{}", bytes ? fmt::format("you: {:.0f}", *bytes) : "no activation_bytes_per_token",
                                      measured, formula ? "" : "; the formula does not mention " + missing),
                          "bytes that each token of a step takes, and the formula they come from",
                          "count what is alive when the MLP's product is made: gate and up, their product, and the hidden states", near ? slope.max / 2 : 0);
    }

    auto chunked = learner_text(folder, e, "chunked.toml");
    if (!chunked) {
        Checklist::broken(cured, chunked.error());
        return list.result;
    }
    auto cure = parse_scenario(*chunked, e.id + "/chunked.toml");
    if (!cure) {
        Checklist::broken(cured, cure.error());
        return list.result;
    }
    const std::string asked = "the same model, card and max_model_len, and no prompt up to it fails";
    if (cure->model.config != scenario->model.config || cure->device.name != scenario->device.name ||
        cure->server.max_model_len != scenario->server.max_model_len) {
        Checklist::decide(cured, false, "chunked.toml changes the model, the card or max_model_len", asked, "change how prompts are processed, nothing else");
        return list.result;
    }
    lab_b::CliffSetup with{folder.path(e, "chunked.toml"), "", {}};
    for (const u64 length : {range.high, range.high * 3 / 4, found->fails_tokens + 500}) {
        auto p = lab_b::probe(with, std::min(length, range.high), 1);
        if (!p) {
            Checklist::broken(cured, p.error());
            return list.result;
        }
        if (p->fits) continue;
        Checklist::decide(cured, false, fmt::format("a prompt of {} tokens still fails ({})", p->prompt_tokens, p->outcome), asked, "enable_chunked_prefill bounds a step to what was profiled");
        return list.result;
    }
    Checklist::decide(cured, true, fmt::format("prompts of {}, {} and {} tokens fit", found->fails_tokens + 500, range.high * 3 / 4, range.high), asked, "");
    return list.result;
}

}  // namespace oomlab::course
