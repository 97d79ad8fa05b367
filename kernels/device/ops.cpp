#include "kernels/device/ops.hpp"

namespace oomlab {
namespace {

// Products of sizes are taken in double: a step of a large model passes 2^53 only far beyond what
// any chip does in a day, and the roofline needs no more than its leading digits.
double d(u64 n) {
    return static_cast<double>(n);
}
double size_of(DType t) {
    return d(dtype_bytes(t));
}
bool is_eight_bit(DType t) {
    return t == DType::i8 || t == DType::fp8;
}
constexpr double kIndexBytes = 4;  // i32 ids, positions, slots

}  // namespace

OpCost cost(const MatmulArgs& a) {
    return {.flops = 2.0 * d(a.rows) * d(a.k) * d(a.n),
            .bytes = d(a.k) * d(a.n) * size_of(a.in_type) +
                     d(a.rows) * d(a.k) * size_of(a.in_type) +
                     d(a.rows) * d(a.n) * size_of(a.out_type),
            .eight_bit = is_eight_bit(a.in_type)};
}

OpCost cost(const RmsNormArgs& a) {
    const double elements = d(a.rows) * d(a.width);
    // in and out once; a residual is read and written.
    const double passes = a.residual != 0 ? 4 : 2;
    return {.flops = 4 * elements, .bytes = (passes * elements + d(a.width)) * size_of(a.type)};
}

OpCost cost(const RopeArgs& a) {
    const double elements = d(a.rows) * d(a.heads + a.kv_heads) * d(a.head_dim);
    return {.flops = 3 * elements,
            .bytes = 2 * elements * size_of(a.type) + d(a.rows) * kIndexBytes};
}

OpCost cost(const KvAppendArgs& a) {
    const double elements = 2 * d(a.rows) * d(a.kv_heads) * d(a.head_dim);
    return {
        .flops = 0,
        .bytes = elements * (size_of(a.type) + size_of(a.cache_type)) + d(a.rows) * kIndexBytes};
}

OpCost cost(const AttentionArgs& a) {
    const double q = d(a.rows) * d(a.heads) * d(a.head_dim);
    const double kv = 2 * d(a.kv_tokens_read) * d(a.kv_heads) * d(a.head_dim);
    return {.flops = 4 * d(a.heads) * d(a.head_dim) * d(a.context_tokens),
            .bytes = 2 * q * size_of(a.type) + kv * size_of(a.cache_type)};
}

OpCost cost(const GatedActArgs& a) {
    const double elements = d(a.rows) * d(a.width);
    return {.flops = 5 * elements, .bytes = 3 * elements * size_of(a.type)};
}

OpCost cost(const EmbedArgs& a) {
    return {.flops = 0,
            .bytes = 2 * d(a.rows) * d(a.width) * size_of(a.type) + d(a.rows) * kIndexBytes};
}

OpCost cost(const GatherArgs& a) {
    return {.flops = 0,
            .bytes = 2 * d(a.rows) * d(a.width) * size_of(a.type) + d(a.rows) * kIndexBytes};
}

OpCost cost(const SampleArgs& a) {
    const double elements = d(a.rows) * d(a.vocab);
    return {.flops = elements, .bytes = elements * size_of(a.type) + d(a.rows) * kIndexBytes};
}

OpCost cost(const FillArgs& a) {
    return {.flops = 0, .bytes = d(a.elements) * size_of(a.type)};
}

}  // namespace oomlab
