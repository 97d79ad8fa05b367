// The forward pass as a table: which op makes which tensor, and which tensors die with it. The server
// allocates by this table on every chip; the activation law (6I + 8h bytes a token for a gated MLP
// in 16 bit) is what it comes to, and removing a row changes the peak.
//
// Shapes: T tokens of the step, S rows that are sampled, h hidden, I intermediate, V vocabulary.
#pragma once

#include <vector>

#include "labs/server/config.hpp"

namespace oomlab::server {

enum class Op : u16 {
    embed, hidden, input_norm, qkv, rope, kv_append, attention, o_proj, post_norm,
    quantize_input, gate_up_int32, gate_up, moe_workspace, act, down,
    final_norm, gather, logits, logits_f32, sampler_a, sampler_b, sampler_c, sampler_d, sampler_e,
    sample, count_
};
const char* op_name(Op op);

// Where a tensor lives between the op that makes it and the one that ends it.
enum Slot : unsigned {
    kX,      // residual stream [T, h], the whole pass
    kHidden, // hidden states [T, h]: output of the layer before, normed in place, held by the caller
             // until the layer ends
    kQkv,    // [T, (heads + 2 kv_heads) head_dim / tp], alive until attention's module returns
    kAtt,    // [T, heads head_dim / tp]
    kO,      // attention's output [T, h], normed in place: the input of the MLP
    kD,      // output of this layer [T, h]; becomes kHidden when the layer ends
    kQ8,     // int8 copy of the MLP's input [T, h]
    kGu32,   // int32 product of the int8 gate and up projection [T, 2I / tp]
    kGu,     // gate and up [T, 2I / tp]
    kMoe,    // expert workspace before 0.17 [T, top_k (2 I_moe / tp + h)]
    kA,      // their product [T, I / tp]
    kG,      // gathered rows [S, h]
    kL16, kL32, kS0, kS1, kS2, kS3, kS4,   // logits and the sampler's copies [S, V]
    kSlots
};

struct OpRow {
    Op op;
    int out = -1;                 // slot, -1: nothing is allocated
    bool by_rows = false;         // sized by S instead of T
    u64 bytes_per_item_tenths = 0;   // bytes a token (or row), times ten
    unsigned frees = 0;           // bit mask of slots that die after it
};

struct OpTable {
    std::vector<OpRow> begin;     // before the layers
    std::vector<OpRow> layer;     // every layer
    std::vector<OpRow> head;      // after them
    // Allocations of one step: begin + layers * layer + head.
    u64 allocations(u64 layers) const;
};
OpTable make_op_table(const ServerConfig& config);

}  // namespace oomlab::server
