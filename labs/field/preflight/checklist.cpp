#include "labs/field/preflight/checklist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "labs/field/preflight/checker.hpp"

namespace oomlab::field {

namespace check_text {

std::string gib(double bytes) {
    return fmt::format("{:.2f} GiB", bytes / static_cast<double>(kGiB));
}
bool has(const std::string& text, const char* part) {
    auto it = std::search(text.begin(), text.end(), part,
                          part + std::char_traits<char>::length(part), [](char a, char b) {
                              return std::tolower(static_cast<unsigned char>(a)) ==
                                     std::tolower(static_cast<unsigned char>(b));
                          });
    return it != text.end();
}

}  // namespace check_text

void Checker::twelve() {
    budget();
    utilization();
    model_length();
    sequences();
    chunked_prefill();
    input_cap();
    expandable_segments();
    longest_prompt();
    container_limit();
    monitoring();
    preemption_alert();
    runbook();
}

const char* check_state_name(CheckState s) {
    return s == CheckState::pass ? "pass" : s == CheckState::fail ? "fail" : "cannot_know";
}

int PreflightReport::failed() const {
    int n = 0;
    for (const auto* list : {&items, &mistakes})
        for (const CheckItem& i : *list) n += i.state == CheckState::fail;
    return n;
}

PreflightReport check_deployment(const Deployment& deployment, const PreflightFacts& facts) {
    PreflightReport r;
    r.deployment = deployment;
    r.facts = facts;
    if (facts.shape && facts.gpu) {
        auto budget = compute_budget(*facts.shape, *facts.gpu, deployment.flags);
        if (budget) {
            find_changes(*budget, {});
            r.budget = std::move(*budget);
        } else {
            r.budget_error = budget.error().message;
        }
    }
    Checker checker(r);
    checker.twelve();
    checker.seven();
    return r;
}

}  // namespace oomlab::field
