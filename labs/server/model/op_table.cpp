#include "labs/server/model/op_table.hpp"

namespace oomlab::server {

const char* op_name(Op op) {
    static constexpr const char* kNames[] = {
        "embed_tokens", "hidden_states", "input_layernorm", "qkv_proj", "rotary_emb", "reshape_and_cache", "attention",
        "o_proj", "post_attention_layernorm", "quantize_input", "gate_up_proj_int32", "gate_up_proj",
        "fused_moe_workspace", "act_fn", "down_proj", "norm", "gather_rows", "lm_head", "logits_float32",
        "sampler_sort_values", "sampler_sort_index", "sampler_sort_work", "sampler_softmax",
        "sampler_cumsum", "sample"};
    static_assert(std::size(kNames) == static_cast<std::size_t>(Op::count_));
    return kNames[static_cast<std::size_t>(op)];
}

namespace {
constexpr unsigned bit(Slot s) { return 1u << s; }
OpRow row(Op op, int out, u64 bytes, unsigned frees = 0) { return {op, out, false, bytes * 10, frees}; }
OpRow sampled(Op op, int out, u64 tenths, unsigned frees = 0) { return {op, out, true, tenths, frees}; }

u64 count(const std::vector<OpRow>& rows) {
    u64 n = 0;
    for (const OpRow& r : rows) n += r.out >= 0 ? 1 : 0;
    return n;
}
}  // namespace

u64 OpTable::allocations(u64 layers) const { return count(begin) + layers * count(layer) + count(head); }

OpTable make_op_table(const ServerConfig& c) {
    const ModelShape& m = c.shape;
    const u64 b = dtype_bytes(m.dtype), h = m.hidden_size, v = m.vocab_size, tp = c.loaded_tp;
    const u64 inner = m.intermediate_size != 0 ? m.intermediate_size
                      : m.moe                  ? m.moe->intermediate_size * m.moe->experts_per_tok
                                               : 4 * h;
    const u64 i = inner / tp;
    u64 qkv = (m.num_attention_heads + 2 * m.num_key_value_heads) * m.head_dim / tp;
    u64 att = m.num_attention_heads * m.head_dim / tp;
    if (m.mla) {
        qkv = m.num_attention_heads * (m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim) / tp +
              m.mla->kv_lora_rank + m.mla->qk_rope_head_dim;
        att = m.num_attention_heads * m.mla->v_head_dim / tp;
    }
    const u64 gate_up = (m.mlp_gated ? 2 : 1) * i;
    const bool int8 = m.quantization == Quantization::w8a8_int8;

    OpTable t;
    // As vLLM runs it: the fused norms work in place, Python's frames keep what they were given.
    t.begin = {row(Op::embed, kX, b * h), row(Op::hidden, kHidden, b * h)};
    t.layer = {
        row(Op::input_norm, -1, 0),
        row(Op::qkv, kQkv, b * qkv),
        row(Op::rope, -1, 0),
        row(Op::kv_append, -1, 0),
        row(Op::attention, kAtt, b * att),
        row(Op::o_proj, kO, b * h, bit(kAtt) | bit(kQkv)),
        row(Op::post_norm, -1, 0),
    };
    if (m.moe && !c.version.at_least(0, 17)) {
        const u64 per_token = m.moe->experts_per_tok * (2 * m.moe->intermediate_size / tp + h) * b;
        t.layer.push_back(row(Op::moe_workspace, kMoe, per_token));
    }
    if (int8) {
        // cuBLAS multiplies int8 and returns int32: the product stands in 32 bit before it is scaled.
        t.layer.push_back(row(Op::quantize_input, kQ8, h));
        t.layer.push_back(row(Op::gate_up_int32, kGu32, 4 * gate_up));
        t.layer.push_back(row(Op::gate_up, kGu, b * gate_up, bit(kGu32) | bit(kQ8)));
    } else {
        t.layer.push_back(row(Op::gate_up, kGu, b * gate_up));
    }
    t.layer.push_back(row(Op::act, kA, b * i));
    t.layer.push_back(row(Op::down, kD, b * h, bit(kGu) | bit(kA) | bit(kO) | bit(kMoe) | bit(kHidden)));

    t.head = {
        row(Op::final_norm, -1, 0),
        sampled(Op::gather, kG, 10 * b * h),
        sampled(Op::logits, kL16, 10 * b * v, bit(kG)),
        sampled(Op::logits_f32, kL32, 40 * v),
    };
    if (c.sampler_bytes_per_logit_tenths == 380) {
        // torch.sort: values, int64 index, work buffer; then softmax and cumsum. 2+4+4+8+12+4+4 = 38.
        t.head.push_back(sampled(Op::sampler_a, kS0, 40 * v));
        t.head.push_back(sampled(Op::sampler_b, kS1, 80 * v));
        t.head.push_back(sampled(Op::sampler_c, kS2, 120 * v));
        t.head.push_back(sampled(Op::sampler_d, kS3, 40 * v));
        t.head.push_back(sampled(Op::sampler_e, kS4, 40 * v));
    } else {
        // Triton top-k/top-p, no sort: scaled logits, probabilities, scratch. 2+4+4+4+0.4 = 14.4.
        t.head.push_back(sampled(Op::sampler_a, kS0, 40 * v));
        t.head.push_back(sampled(Op::sampler_d, kS3, 40 * v));
        t.head.push_back(sampled(Op::sampler_e, kS4, 4 * v));
    }
    t.head.push_back(OpRow{Op::sample, -1, true, 0, ~0u});
    return t;
}

}  // namespace oomlab::server
