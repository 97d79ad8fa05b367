// The ops of a transformer, as a chip runs them. Each call names its tensors by device address and
// carries its two numbers, the bytes it must move and the operations it must do; the simulated chip
// adds them to the step's roofline, the real one launches a kernel or cuBLAS.
//
// Tensors are row-major; T tokens of a step come first: [T, features]. Element type of activations
// and weights is `dtype`. A null address means "cost only": the op is accounted, not computed.
#pragma once

#include "kernels/device/device_error.hpp"

namespace oomlab {

// g++ 12 takes the scoped enumerator i32 for a shadow of the integer type of that name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class DType : unsigned char { f32, f16, bf16, i8, fp8, i32 };
#pragma GCC diagnostic pop
constexpr u64 dtype_bytes(DType t) {
    switch (t) {
        case DType::f32:
        case DType::i32: return 4;
        case DType::f16:
        case DType::bf16: return 2;
        case DType::i8:
        case DType::fp8: return 1;
    }
    return 2;
}

struct OpCost {
    double flops = 0;
    double bytes = 0;
    bool eight_bit = false;   // counts against the 8-bit peak
};

// out[T, n] = in[T, k] * weight[n, k]^T (weights are stored output-major, as in checkpoints).
struct MatmulArgs {
    u64 in = 0, weight = 0, out = 0;
    u64 rows = 0, k = 0, n = 0;
    DType in_type = DType::bf16, out_type = DType::bf16;
};
// residual += in (when residual != 0); out = rms_norm(residual or in) * weight. [rows, width]
struct RmsNormArgs {
    u64 in = 0, residual = 0, weight = 0, out = 0;
    u64 rows = 0, width = 0;
    float epsilon = 1e-5f;
    DType type = DType::bf16;
};
// In place on the q and k parts of qkv [rows, (heads + 2 kv_heads) * head_dim]; positions i32[rows].
struct RopeArgs {
    u64 qkv = 0, positions = 0;
    u64 rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
    float theta = 10000.0f;
    DType type = DType::bf16;
};
// Copies k and v of qkv into the paged cache of one layer:
// cache [kv_blocks, 2, block_size, kv_heads, head_dim]; slots i32[rows] = kv_block * block_size + offset.
struct KvAppendArgs {
    u64 qkv = 0, cache = 0, slots = 0;
    u64 rows = 0, heads = 0, kv_heads = 0, head_dim = 0, block_size = 0;
    DType type = DType::bf16, cache_type = DType::bf16;
};
// One row of q per token; sequence s owns rows [row_begin[s], row_begin[s+1]) and its context is
// context_len[s] tokens, ending with those rows (causal). block_tables i32[seqs, max_blocks].
// scratch: bounded work space of the prefill path (scores of a tile of rows), may be 0 on decode.
struct AttentionArgs {
    u64 qkv = 0, cache = 0, out = 0, scratch = 0;
    u64 row_begin = 0, context_len = 0, block_tables = 0;
    u64 rows = 0, seqs = 0, max_blocks = 0;
    u64 heads = 0, kv_heads = 0, head_dim = 0, block_size = 0;
    u64 context_tokens = 0;   // sum over rows of the context each one attends to (for the cost)
    u64 kv_tokens_read = 0;   // sum over sequences of context (for the cost)
    u64 window = 0;           // sliding window, 0: none
    DType type = DType::bf16, cache_type = DType::bf16;
};
// out[rows, width] = act(gate_up[:, :width]) * gate_up[:, width:]; SiLU.
struct GatedActArgs {
    u64 gate_up = 0, out = 0;
    u64 rows = 0, width = 0;
    DType type = DType::bf16;
};
// out[rows, width] = table[ids[row]]; ids i32[rows].
struct EmbedArgs {
    u64 ids = 0, table = 0, out = 0;
    u64 rows = 0, width = 0, vocab = 0;
    DType type = DType::bf16;
};
// out[i] = in[rows_index[i]]: the last row of each sequence before the head.
struct GatherArgs {
    u64 in = 0, index = 0, out = 0;
    u64 rows = 0, width = 0;
    DType type = DType::bf16;
};
// Greedy: token[row] = argmax(logits[row]), ties to the lowest id. logits f32[rows, vocab].
struct SampleArgs {
    u64 logits = 0, tokens = 0;
    u64 rows = 0, vocab = 0;
    DType type = DType::f32;
};
// Deterministic pseudo-random fill, uniform in [-scale, scale], element i depends on seed and i alone.
struct FillArgs {
    u64 out = 0;
    u64 elements = 0;
    u64 seed = 0;
    float scale = 0.02f;
    DType type = DType::bf16;
};

class DeviceOps {
  public:
    virtual ~DeviceOps() = default;
    virtual DeviceResult<void> matmul(const MatmulArgs&) = 0;
    virtual DeviceResult<void> rms_norm(const RmsNormArgs&) = 0;
    virtual DeviceResult<void> rope(const RopeArgs&) = 0;
    virtual DeviceResult<void> kv_append(const KvAppendArgs&) = 0;
    virtual DeviceResult<void> attention(const AttentionArgs&) = 0;
    virtual DeviceResult<void> gated_act(const GatedActArgs&) = 0;
    virtual DeviceResult<void> embed(const EmbedArgs&) = 0;
    virtual DeviceResult<void> gather(const GatherArgs&) = 0;
    virtual DeviceResult<void> sample(const SampleArgs&) = 0;
    virtual DeviceResult<void> fill(const FillArgs&) = 0;
    // FNV-1a over the bytes, for tests: proves what memory holds.
    virtual DeviceResult<u64> checksum(u64 address, u64 bytes) = 0;
    // Accounts for work that is not launched op by op (a whole step of a large model at once).
    virtual DeviceResult<void> account(const OpCost&) = 0;
};

// What an op must move and do, whatever runs it. Weights are counted as read once a call.
OpCost cost(const MatmulArgs&);
OpCost cost(const RmsNormArgs&);
OpCost cost(const RopeArgs&);
OpCost cost(const KvAppendArgs&);
OpCost cost(const AttentionArgs&);
OpCost cost(const GatedActArgs&);
OpCost cost(const EmbedArgs&);
OpCost cost(const GatherArgs&);
OpCost cost(const SampleArgs&);
OpCost cost(const FillArgs&);

}  // namespace oomlab
