// The prevention checklist, twelve items, and the seven common mistakes, for one deployment: each
// passes, fails, or cannot be known from what was given, with the number behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "labs/field/budget/budget.hpp"
#include "labs/field/preflight/deployment.hpp"

namespace oomlab::field {

enum class CheckState { pass, fail, cannot_know };
const char* check_state_name(CheckState s);  // "pass", "fail", "cannot_know"

struct CheckItem {
    std::string id, title;
    CheckState state = CheckState::cannot_know;
    std::string number;  // the figure behind it
    std::string why;     // one sentence
    std::string remedy;  // what to change, or what to give so that it can be judged
};

// What the command itself does not say; each makes one or two more items judgeable.
struct PreflightFacts {
    std::optional<ModelShape> shape;
    std::optional<GpuProfile> gpu;
    std::optional<u64> gateway_max_input, gateway_max_output, mean_tokens, longest_prompt,
        host_memory_bytes;
    std::optional<std::string> runbook_text, monitoring_text;  // files' contents
    std::vector<std::string> notes;                            // how model and card were found
};

struct PreflightReport {
    Deployment deployment;
    PreflightFacts facts;
    std::optional<Budget> budget;
    std::string budget_error;
    std::vector<CheckItem> items;     // twelve
    std::vector<CheckItem> mistakes;  // seven
    int failed() const;
};

PreflightReport check_deployment(const Deployment& deployment, const PreflightFacts& facts);

// The shape that ships under a name like the served model's ("meta-llama/Llama-3.1-8B-Instruct-AWQ"
// -> "llama-3.1-8b", with awq), or nothing. `quantization` is what the name itself says.
struct ModelGuess {
    std::string name, quantization;
};
std::optional<ModelGuess> guess_model(const std::string& served,
                                      const std::vector<std::string>& known);

std::string preflight_text(const PreflightReport& report);
std::string preflight_json(const PreflightReport& report);

}  // namespace oomlab::field
