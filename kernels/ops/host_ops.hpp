// The ops of kernels/device/ops.hpp, computed on the host: what a small simulated chip runs, and
// what the GPU's kernels are held against.
//
// Every row of a result is computed in an order that depends on the row's own inputs and positions
// alone. So the same tokens come out however a prompt is cut into chunks, whichever rows share its
// batch, and whatever size a KV block has.
//
// An op with a null tensor among those it needs computes nothing ("cost only"). Addresses are
// device addresses; `Translate` turns them into host pointers. Thread safe on disjoint outputs.
#pragma once

#include "kernels/device/ops.hpp"

namespace oomlab::host {

// Device addresses as host memory. Either one stretch (address - first + base), or, where
// allocations are scattered, a function. A tensor must be contiguous on the host.
struct Translate {
    char* base = nullptr;
    u64 first = 0;
    char* (*lookup)(void* context, u64 address) = nullptr;
    void* context = nullptr;

    char* operator()(u64 address) const {
        return lookup != nullptr ? lookup(context, address) : base + (address - first);
    }
};

// in_type i8 accumulates in i32 exactly; all other types in f32.
void matmul(const MatmulArgs& a, Translate at);
void rms_norm(const RmsNormArgs& a, Translate at);
void rope(const RopeArgs& a, Translate at);
// A negative slot is padding: nothing is written for that row.
void kv_append(const KvAppendArgs& a, Translate at);
// `scratch` is not used: the softmax runs in one pass.
void attention(const AttentionArgs& a, Translate at);
void gated_act(const GatedActArgs& a, Translate at);
// REQUIRES: every id is below vocab (checked).
void embed(const EmbedArgs& a, Translate at);
void gather(const GatherArgs& a, Translate at);
void sample(const SampleArgs& a, Translate at);
void fill(const FillArgs& a, Translate at);
u64 checksum(u64 address, u64 bytes, Translate at);

}  // namespace oomlab::host
