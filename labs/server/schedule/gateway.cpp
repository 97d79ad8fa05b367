#include "labs/server/schedule/gateway.hpp"

#include <fmt/format.h>

namespace oomlab::server {

std::optional<Rejection> judge(const Scenario::Gateway& g, const Arrival& a, u64 max_model_len,
                               u64 in_flight) {
    const auto refuse = [](int status, std::string message) {
        return std::optional<Rejection>(Rejection{status, std::move(message)});
    };
    if (g.max_concurrent_requests != 0 && in_flight >= g.max_concurrent_requests) {
        return refuse(429, fmt::format("{} requests are in flight; the limit is {}. Try again later.",
                                       in_flight, g.max_concurrent_requests));
    }
    if (g.max_input_tokens != 0 && a.prompt_tokens > g.max_input_tokens) {
        return refuse(400, fmt::format("The prompt has {} tokens; this service accepts at most {}.",
                                       a.prompt_tokens, g.max_input_tokens));
    }
    if (g.max_output_tokens != 0 && a.output_tokens > g.max_output_tokens) {
        return refuse(400, fmt::format("max_tokens is {}; this service accepts at most {}.",
                                       a.output_tokens, g.max_output_tokens));
    }
    if (g.max_n != 0 && a.n > g.max_n) {
        return refuse(400, fmt::format("n is {}; this service accepts at most {}.", a.n, g.max_n));
    }
    for (const GatewayRule& rule : g.deny) {
        const double value = static_cast<double>(rule.field == "prompt_tokens"   ? a.prompt_tokens
                                                 : rule.field == "output_tokens" ? a.output_tokens
                                                                                 : a.n);
        const bool hit = rule.op == ">"    ? value > rule.value
                         : rule.op == ">=" ? value >= rule.value
                         : rule.op == "<"  ? value < rule.value
                         : rule.op == "<=" ? value <= rule.value
                                           : value == rule.value;
        if (hit) return refuse(400, fmt::format("Requests with {} are refused for now.", rule.text));
    }
    // vLLM's own limit: prompt and output must fit the context.
    if (a.prompt_tokens + 1 > max_model_len) {
        return refuse(400, fmt::format("This model's maximum context length is {} tokens. However, your "
                                       "prompt has {} tokens.",
                                       max_model_len, a.prompt_tokens));
    }
    return std::nullopt;
}

}  // namespace oomlab::server
