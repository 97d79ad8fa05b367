// A request as the engine holds it. One request of n samples is n sequences with one beginning.
#pragma once

#include <vector>

#include "labs/server/kv/kv_pool.hpp"

namespace oomlab::server {

struct Arrival {
    double at_s = 0;
    u64 prompt_tokens = 0, output_tokens = 0, n = 1;
    double cancel_at_s = 1e300;
    u64 prefix_group = 0, prefix_tokens = 0;
};

struct Request {
    u32 number = 0;                // in order of arrival, from 0
    Arrival arrival;
    u32 sequences_left = 0;
    u32 preemptions = 0;
    u64 recomputed_tokens = 0;
    bool admitted = false, first_token = false, cancelled = false;
};

struct Sequence {
    enum class State { waiting, running, finished };
    u32 request = 0;
    u32 serial = 0;                // order of creation: ties and the LIFO rule go by it
    State state = State::waiting;
    u64 prompt_tokens = 0, output_tokens = 0;
    u64 generated = 0;             // sampled so far
    u64 computed = 0;              // tokens whose KV stands in the cache
    double arrival_s = 0, first_token_s = -1, last_token_s = -1;
    double cancel_at_s = 1e300;
    ContentKey content;
    std::vector<u32> blocks;
    u64 published = 0;             // full blocks whose content has a name
    u64 reserved_tokens = 0;       // reservation policies: room asked for at admission
    u64 slot = 0;                  // and where it is in the buddy system
    bool preempted_before = false;
    bool prefilling = true;        // its known tokens are not all computed yet

    u64 known() const { return prompt_tokens + generated; }
};

}  // namespace oomlab::server
