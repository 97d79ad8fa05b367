// Shared by the engines' budgets. Private to this room.
#pragma once

#include <string>

#include "labs/field/budget/budget.hpp"

namespace oomlab::field {

// "14.99 GiB" (two decimals always, a sign when negative); "476,016".
std::string gib_text(i64 bytes);
inline std::string gib_text(u64 bytes) {
    return gib_text(static_cast<i64>(bytes));
}
std::string grouped(u64 n);
std::string decimal(double value, int digits);

// What the engine's code chooses for flags that were not given.
void resolve_vllm(Budget& b);
void resolve_sglang(Budget& b);

void budget_vllm(Budget& b);
void budget_sglang(Budget& b);
Result<void> budget_llama_cpp(Budget& b);

// Weights and activations of every pipeline stage; b.weights_bytes and b.activation of the
// tightest.
void plan_stages(Budget& b);
void add_weights_and_activation_lines(Budget& b);
// NCCL's buffers, taken before the engine measures anything.
u64 communication_bytes(const Budget& b);
u64 graph_bytes(const Budget& b, u64 captures);
// Tokens, blocks, concurrency and the longest request from the pool's size.
void plan_pool(Budget& b);
// Blocks of one request of `tokens`.
u64 blocks_for(const Budget& b, u64 tokens);
void add_line(Budget& b, const char* id, const char* title, i64 bytes, std::string moment,
              std::string formula, std::string numbers, std::string error, bool inside);

}  // namespace oomlab::field
