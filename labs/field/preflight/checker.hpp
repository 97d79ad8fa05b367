// One pass over a deployment: what `check_deployment` is made of. Private to this room.
#pragma once

#include <optional>
#include <string>

#include "labs/field/preflight/checklist.hpp"

namespace oomlab::field {

class Checker {
  public:
    explicit Checker(PreflightReport& r)
        : r_(r),
          flags_(r.deployment.flags),
          facts_(r.facts),
          budget_(r.budget ? &*r.budget : nullptr) {}
    void twelve();
    void seven();  // after twelve(): three of the mistakes are items seen from the other side

  private:
    using State = CheckState;
    std::string spelled(const char* name) const { return flag_spelling(flags_.engine, name); }
    bool llama() const { return flags_.engine == Engine::llama_cpp; }
    CheckItem& add(const char* id, const char* title, State state, std::string number,
                   std::string why, std::string remedy) {
        r_.items.push_back(
            {id, title, state, std::move(number), std::move(why), std::move(remedy)});
        return r_.items.back();
    }
    std::string missing() const {
        std::string out;
        if (!facts_.shape) out = "--config (the model's config.json)";
        if (!facts_.gpu) out += (out.empty() ? "" : " and ") + std::string("--gpu");
        return "give " + out;
    }

    // The plan: what follows from the command, the model and the card (check_plan.cpp).
    void budget();
    void utilization();
    void model_length();
    std::optional<double> allowed_sequences() const;
    void sequences();
    void chunked_prefill();
    void longest_prompt();
    // Operations: what stands around the server (check_operations.cpp).
    void input_cap();
    void expandable_segments();
    void container_limit();
    void monitoring();
    void preemption_alert();
    void runbook();

    PreflightReport& r_;
    const ServerFlags& flags_;
    const PreflightFacts& facts_;
    const Budget* budget_;
};

namespace check_text {
std::string gib(double bytes);
inline std::string gib(u64 bytes) {
    return gib(static_cast<double>(bytes));
}
inline std::string gib(i64 bytes) {
    return gib(static_cast<double>(bytes));
}
// Is `part` in the text, whatever the case?
bool has(const std::string& text, const char* part);
}  // namespace check_text

}  // namespace oomlab::field
