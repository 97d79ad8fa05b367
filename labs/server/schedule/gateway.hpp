// The gateway in front of the engine: caps, and a clear 400 or 429 with the limit in its message.
// Each cap is a memory control: input bounds the prefill, output and n bound the KV cache,
// concurrency bounds both.
#pragma once

#include <optional>
#include <string>

#include "labs/catalog/scenario.hpp"
#include "labs/server/schedule/sequence.hpp"

namespace oomlab::server {

struct Rejection {
    int http_status = 400;
    std::string message;
};

// Judges one arrival. `in_flight`: requests admitted and not ended.
std::optional<Rejection> judge(const Scenario::Gateway& limits, const Arrival& arrival,
                               u64 max_model_len, u64 in_flight);

}  // namespace oomlab::server
