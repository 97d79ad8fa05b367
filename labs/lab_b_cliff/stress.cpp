#include "labs/lab_b_cliff/stress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/catalog/scenario_edit.hpp"
#include "labs/catalog/text_file.hpp"

namespace oomlab::lab_b {

namespace {

struct Cap {
    u64 value;
    std::string why;
    void at_most(u64 limit, const std::string& reason) {
        if (limit < value) *this = {limit, reason};
    }
};

// The largest figure that no deny rule on `field` refuses.
void apply_rules(const Scenario::Gateway& gateway, const char* field, Cap& cap) {
    for (const GatewayRule& rule : gateway.deny) {
        if (rule.field != field) continue;
        const double v = rule.value;
        if (v < 0 || v > 1e9) continue;
        const u64 whole = static_cast<u64>(std::floor(v));
        if (rule.op == ">") cap.at_most(whole, "gateway.deny \"" + rule.text + "\"");
        if (rule.op == ">=") cap.at_most(whole > 0 ? whole - 1 : 0, "gateway.deny \"" + rule.text + "\"");
        if (rule.op == "==" && cap.value == whole) cap.at_most(whole - 1, "gateway.deny \"" + rule.text + "\"");
    }
}

}  // namespace

Result<StressPlan> plan_stress(const CliffSetup& setup, const Limits& limits) {
    OOMLAB_TRY(text, read_text_file(setup.scenario_path));
    OOMLAB_TRY(scenario, parse_scenario(text, setup.scenario_path));
    const Scenario::Gateway& g = scenario.gateway;
    const u64 whole = std::max<u64>(2, limits.max_model_len);

    Cap prompt{whole - 1, fmt::format("max_model_len = {}", limits.max_model_len)};
    if (g.max_input_tokens != 0) prompt.at_most(g.max_input_tokens, fmt::format("gateway.max_input_tokens = {}", g.max_input_tokens));
    apply_rules(g, "prompt_tokens", prompt);
    Cap output{whole - 1, fmt::format("max_model_len = {}", limits.max_model_len)};
    if (g.max_output_tokens != 0) output.at_most(g.max_output_tokens, fmt::format("gateway.max_output_tokens = {}", g.max_output_tokens));
    apply_rules(g, "output_tokens", output);
    Cap batch{std::max<u64>(1, limits.max_num_seqs), fmt::format("max_num_seqs = {}", limits.max_num_seqs)};
    if (g.max_concurrent_requests != 0) {
        batch.at_most(g.max_concurrent_requests, fmt::format("gateway.max_concurrent_requests = {}", g.max_concurrent_requests));
    }
    Cap n{1, "one output each"};
    if (g.max_n != 0) n = {g.max_n, fmt::format("gateway.max_n = {}", g.max_n)};
    apply_rules(g, "n", n);
    if (prompt.value == 0 || output.value == 0 || n.value == 0) {
        return fail(Error::usage(setup.scenario_path + ": the gateway accepts no request at all"));
    }

    StressPlan plan;
    plan.longest_prompt = prompt.value;
    plan.longest_output = std::min(output.value, whole - 1);
    plan.batch = batch.value;
    plan.n = n.value;
    PlannedRequest first;   // the longest prompts, all at once
    first.prompt_tokens = plan.longest_prompt;
    first.output_tokens = std::max<u64>(1, std::min(plan.longest_output, whole - plan.longest_prompt));
    first.count = plan.batch;
    first.n = plan.n;
    PlannedRequest second;  // the longest outputs, enough of them to fill the pool twice
    second.output_tokens = plan.longest_output;
    second.prompt_tokens = std::max<u64>(1, std::min(plan.longest_prompt, whole - plan.longest_output));
    const u64 each = second.prompt_tokens + second.output_tokens;
    second.count = std::min<u64>(plan.batch, 2 * std::max<u64>(1, limits.kv_tokens / std::max<u64>(1, each)) + 1);
    plan.long_outputs = second.count;

    ScenarioChange change;
    change.drop = {"action", "run"};
    change.requests = {first, second};
    OOMLAB_TRY(edited, edit_scenario(text, setup.scenario_path, change));
    plan.scenario_text = std::move(edited);
    plan.lines = {fmt::format("{} prompts of {} tokens at once ({}; {})", first.count, first.prompt_tokens, prompt.why, batch.why),
                  fmt::format("{} requests of {} output tokens ({})", second.count, second.output_tokens, output.why)};
    if (plan.n > 1) plan.lines.push_back(fmt::format("n = {} outputs for each prompt ({})", plan.n, n.why));
    return plan;
}

}  // namespace oomlab::lab_b
