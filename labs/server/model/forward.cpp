#include "labs/server/model/forward.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace oomlab::server {

namespace {
// Rows of queries whose scores stand in memory at once, on chips that compute.
constexpr u64 kScratchRows = 64;
}  // namespace

// One step's view for chips that compute: where the inputs stand on the device.
struct Forward::Step {
    const StepPlan* plan = nullptr;
    u64 tokens = 0, rows = 0, seqs = 0, max_blocks = 0;
    u64 ids = 0, positions = 0, slots = 0, row_begin = 0, context_len = 0, block_tables = 0, index = 0,
        sampled = 0;
};

Forward::Forward(const ServerConfig& config, Device& device, Ledger& ledger, Weights& weights)
    : config_(config), device_(device), ledger_(ledger), weights_(weights), table_(make_op_table(config)) {
    replay = !device.props().computes;
}

Forward::~Forward() {
    abort();
    for (Tensor* t : {&attention_scratch_, &moe_workspace_, &inputs_, &workspace_}) ledger_.free(*t);
}

Outcome<void> Forward::prepare() {
    // Token ids, positions, slots, and a block table for every sequence: made once, as vLLM does.
    const u64 tables = config_.max_num_seqs * div_ceil(config_.max_model_len, config_.block_size);
    const u64 most = std::max(config_.max_num_batched_tokens,
                              config_.scenario.server.enable_chunked_prefill ? 0 : 4 * config_.max_model_len);
    const u64 ints = tables + 4 * most + 4 * config_.max_num_seqs + 64;
    OOMLAB_TRY(workspace, ledger_.alloc(config_.cublas_workspace_bytes, Owner::workspace));
    workspace_ = workspace;
    OOMLAB_TRY(inputs, ledger_.alloc(ints * sizeof(i32), Owner::workspace));
    inputs_ = inputs;
    return {};
}

Outcome<void> Forward::grow_moe_workspace(u64 tokens) {
    const ModelShape& m = config_.shape;
    if (!m.moe || !config_.version.at_least(0, 17)) return {};
    const u64 bytes = tokens * m.moe->experts_per_tok *
                      (2 * m.moe->intermediate_size / config_.loaded_tp + m.hidden_size) * dtype_bytes(m.dtype);
    if (bytes <= moe_workspace_.bytes) return {};
    ledger_.free(moe_workspace_);
    moe_workspace_.bytes = 0;
    OOMLAB_TRY(t, ledger_.alloc(bytes, Owner::workspace));
    moe_workspace_ = t;
    return {};
}

bool Forward::rows_of(const std::vector<OpRow>& rows, u64 tokens, u64 sampled, const Step* step, u64 layer) {
    for (const OpRow& r : rows) {
        const u64 items = r.by_rows ? sampled : tokens;
        if (r.out >= 0 && items > 0) {
            const u64 bytes = div_ceil(items * r.bytes_per_item_tenths, 10);
            if (!ledger_.try_alloc(bytes, Owner::activations, trace::kNoRequest, static_cast<u16>(r.op),
                                   slots_[static_cast<std::size_t>(r.out)])) {
                failure_ = ledger_.take_failure();
                return false;
            }
        }
        if (step != nullptr) {
            auto done = compute(r.op, *step, layer);
            if (!done) {
                failure_ = std::move(done.error());
                return false;
            }
        }
        for (unsigned rest = r.frees; rest != 0;) {
            const unsigned slot = static_cast<unsigned>(__builtin_ctz(rest));
            if (slot >= kSlots) break;
            rest &= rest - 1;
            ledger_.free(slots_[slot], static_cast<u16>(r.op));
        }
    }
    return true;
}

Outcome<void> Forward::pass(u64 tokens, u64 rows, const StepPlan* plan) {
    OOMLAB_TRY_VOID(grow_moe_workspace(tokens));
    Step step;
    const bool computes = plan != nullptr && device_.props().computes && !kv_.empty();
    if (computes) OOMLAB_TRY_VOID(load_inputs(*plan, step));
    const Step* with = computes ? &step : nullptr;
    if (!rows_of(table_.begin, tokens, rows, with, 0)) return fail(std::move(failure_));

    CachingAllocator& allocator = ledger_.allocator();
    const u64 layers = config_.shape.num_hidden_layers;
    u64 fingerprints[3] = {};
    AllocatorStats stats[3];
    const bool may_replay = replay && !computes;
    for (u64 layer = 0; layer < layers; ++layer) {
        if (may_replay && layer <= 8 && layer + 2 < layers) {
            const u64 now = allocator.fingerprint();
            u64 period = 0;
            if (layer >= 2 && now == fingerprints[(layer - 1) % 3]) period = 1;
            else if (layer >= 3 && now == fingerprints[(layer - 2) % 3]) period = 2;
            if (period != 0) {
                const u64 times = (layers - layer) / period;
                allocator.replay_totals(stats[(layer - period) % 3], allocator.stats(), times);
                ledger_.recorder().repeated(times);
                replayed_ += times * period;
                layer += times * period;
                if (layer >= layers) break;
            } else {
                fingerprints[layer % 3] = now;
                stats[layer % 3] = allocator.stats();
            }
        }
        if (!rows_of(table_.layer, tokens, rows, with, layer)) return fail(std::move(failure_));
        slots_[kHidden] = slots_[kD];
        slots_[kD] = Tensor{};
    }
    if (!rows_of(table_.head, tokens, rows, with, 0)) return fail(std::move(failure_));
    if (computes && step.rows > 0) {
        std::vector<i32> sampled(step.rows);
        OOMLAB_DEVICE_TRY(device_.memory().copy_to_host(sampled.data(), step.sampled, step.rows * sizeof(i32)));
        std::size_t row = 0;
        for (const StepItem& item : plan->items) {
            if (item.samples) tokens_of(*item.sequence).push_back(sampled[row++]);
        }
    }
    return {};
}

Outcome<void> Forward::profile(u64 tokens, u64 rows) { return pass(tokens, rows, nullptr); }

Outcome<void> Forward::run(const StepPlan& plan) {
    OOMLAB_TRY_VOID(pass(plan.tokens, plan.rows, &plan));
    if (!device_.props().computes) {
        const StepCost cost = step_cost(config_.shape, plan.tokens, plan.rows, plan.context_tokens,
                                        plan.kv_tokens_read, config_.tp, config_.kv_dtype_bytes);
        OOMLAB_DEVICE_TRY(device_.ops().account(OpCost{cost.flops, cost.bytes, cost.eight_bit}));
    }
    return {};
}

void Forward::abort() {
    for (Tensor& t : slots_) ledger_.free(t);
}

std::vector<i32>& Forward::tokens_of(const Sequence& s) {
    if (token_lists.size() <= s.serial) token_lists.resize(s.serial + 1);
    std::vector<i32>& list = token_lists[s.serial];
    if (s.generated == 0 && list.size() != s.prompt_tokens) {
        list.clear();
        for (u64 i = 0; i < s.prompt_tokens; ++i) {
            const u64 key = i < s.content.prefix_tokens ? s.content.prefix : s.content.own;
            u64 x = (key + 1) * 0x9e3779b97f4a7c15ULL + i * 0xbf58476d1ce4e5b9ULL;
            x = (x ^ (x >> 31)) * 0x94d049bb133111ebULL;
            list.push_back(static_cast<i32>((x >> 33) % config_.shape.vocab_size));
        }
    }
    return list;
}

Outcome<void> Forward::load_inputs(const StepPlan& plan, Step& step) {
    step.plan = &plan;
    step.tokens = plan.tokens;
    step.rows = plan.rows;
    step.seqs = plan.items.size();
    for (const StepItem& item : plan.items) step.max_blocks = std::max<u64>(step.max_blocks, item.sequence->blocks.size());
    const u64 t = plan.tokens, n = step.seqs;
    std::vector<i32>& v = host_inputs_;
    v.assign(3 * t + (n + 1) + n + n * step.max_blocks + 2 * std::max<u64>(plan.rows, 1), 0);
    const u64 ids = 0, positions = t, slots = 2 * t, begins = 3 * t, contexts = begins + n + 1,
              tables = contexts + n, index = tables + n * step.max_blocks, sampled = index + std::max<u64>(plan.rows, 1);
    u64 row = 0, sample = 0;
    for (u64 k = 0; k < n; ++k) {
        const StepItem& item = plan.items[k];
        const Sequence& s = *item.sequence;
        const std::vector<i32>& list = tokens_of(s);
        v[begins + k] = static_cast<i32>(row);
        for (u64 i = 0; i < item.new_tokens; ++i, ++row) {
            const u64 position = s.computed + i;
            v[ids + row] = list[position];
            v[positions + row] = static_cast<i32>(position);
            v[slots + row] = static_cast<i32>(s.blocks[position / config_.block_size] * config_.block_size +
                                              position % config_.block_size);
        }
        v[contexts + k] = static_cast<i32>(s.computed + item.new_tokens);
        for (u64 b = 0; b < s.blocks.size(); ++b) v[tables + k * step.max_blocks + b] = static_cast<i32>(s.blocks[b]);
        if (item.samples) v[index + sample++] = static_cast<i32>(row - 1);
    }
    v[begins + n] = static_cast<i32>(row);
    const u64 bytes = v.size() * sizeof(i32);
    if (bytes > inputs_.bytes) {
        ledger_.free(inputs_);
        OOMLAB_TRY(larger, ledger_.alloc(bytes, Owner::workspace));
        inputs_ = larger;
    }
    OOMLAB_DEVICE_TRY(device_.memory().copy_to_device(inputs_.address, v.data(), bytes));
    const auto at = [&](u64 offset) { return inputs_.address + offset * sizeof(i32); };
    step.ids = at(ids);
    step.positions = at(positions);
    step.slots = at(slots);
    step.row_begin = at(begins);
    step.context_len = at(contexts);
    step.block_tables = at(tables);
    step.index = at(index);
    step.sampled = at(sampled);
    // Bounded scratch of the prefill path: the scores of a tile of rows, 32-bit.
    const u64 scratch = kScratchRows * config_.shape.num_attention_heads *
                        round_up(std::max<u64>(1, step.max_blocks) * config_.block_size, 64) * 4;
    if (scratch > attention_scratch_.bytes) {
        ledger_.free(attention_scratch_);
        OOMLAB_TRY(s, ledger_.alloc(scratch, Owner::workspace));
        attention_scratch_ = s;
    }
    return {};
}

Outcome<void> Forward::compute(Op op, const Step& step, u64 layer) {
    const ModelShape& m = config_.shape;
    DeviceOps& ops = device_.ops();
    const DType type = m.dtype;
    const auto slot = [&](Slot s) { return slots_[s].address; };
    const auto weight = [&](const char* name) {
        return weights_.address(fmt::format("model.layers.{}.{}.weight", layer, name));
    };
    const auto matmul = [&](u64 in, u64 w, u64 out, u64 rows, u64 k, u64 n, DType out_type) {
        return ops.matmul(MatmulArgs{in, w, out, rows, k, n, type, out_type});
    };
    const auto norm = [&](u64 in, u64 residual, u64 w, u64 out) {
        return ops.rms_norm(RmsNormArgs{in, residual, w, out, step.tokens, m.hidden_size, 1e-5f, type});
    };
    const u64 t = step.tokens, h = m.hidden_size, d = m.head_dim, heads = m.num_attention_heads,
              kv = m.num_key_value_heads;
    const u64 inner = m.intermediate_size;
    switch (op) {
        case Op::embed:
            OOMLAB_DEVICE_TRY(ops.embed(EmbedArgs{step.ids, weights_.address("model.embed_tokens.weight"), slot(kX), t, h, m.vocab_size, type}));
            break;
        case Op::input_norm:
            // The first layer has no output before it: the embedding itself is normed.
            OOMLAB_DEVICE_TRY(layer == 0 ? norm(slot(kX), 0, weight("input_layernorm"), slot(kHidden))
                                         : norm(slot(kHidden), slot(kX), weight("input_layernorm"), slot(kHidden)));
            break;
        case Op::qkv:
            OOMLAB_DEVICE_TRY(matmul(slot(kHidden), weight("self_attn.qkv_proj"), slot(kQkv), t, h, (heads + 2 * kv) * d, type));
            break;
        case Op::rope:
            OOMLAB_DEVICE_TRY(ops.rope(RopeArgs{slot(kQkv), step.positions, t, heads, kv, d, static_cast<float>(m.rope_theta), type}));
            break;
        case Op::kv_append: {
            KvAppendArgs a{slot(kQkv), kv_[layer].address, step.slots, t, heads, kv, d, config_.block_size, type, type};
            if (config_.kv_dtype_bytes == 1.0) a.cache_type = DType::fp8;
            OOMLAB_DEVICE_TRY(ops.kv_append(a));
            break;
        }
        case Op::attention: {
            AttentionArgs a;
            a.qkv = slot(kQkv);
            a.cache = kv_[layer].address;
            a.out = slot(kAtt);
            a.scratch = attention_scratch_.address;
            a.row_begin = step.row_begin;
            a.context_len = step.context_len;
            a.block_tables = step.block_tables;
            a.rows = t;
            a.seqs = step.seqs;
            a.max_blocks = step.max_blocks;
            a.heads = heads;
            a.kv_heads = kv;
            a.head_dim = d;
            a.block_size = config_.block_size;
            a.context_tokens = step.plan->context_tokens;
            a.kv_tokens_read = step.plan->kv_tokens_read;
            a.window = m.sliding_window;
            a.type = type;
            a.cache_type = config_.kv_dtype_bytes == 1.0 ? DType::fp8 : type;
            OOMLAB_DEVICE_TRY(ops.attention(a));
            break;
        }
        case Op::o_proj:
            OOMLAB_DEVICE_TRY(matmul(slot(kAtt), weight("self_attn.o_proj"), slot(kO), t, heads * d, h, type));
            break;
        case Op::post_norm:
            OOMLAB_DEVICE_TRY(norm(slot(kO), slot(kX), weight("post_attention_layernorm"), slot(kO)));
            break;
        case Op::gate_up:
            OOMLAB_DEVICE_TRY(matmul(slot(kO), weight("mlp.gate_up_proj"), slot(kGu), t, h, 2 * inner, type));
            break;
        case Op::act:
            OOMLAB_DEVICE_TRY(ops.gated_act(GatedActArgs{slot(kGu), slot(kA), t, inner, type}));
            break;
        case Op::down:
            OOMLAB_DEVICE_TRY(matmul(slot(kA), weight("mlp.down_proj"), slot(kD), t, inner, h, type));
            break;
        case Op::final_norm:
            OOMLAB_DEVICE_TRY(norm(slot(kHidden), slot(kX), weights_.address("model.norm.weight"), slot(kHidden)));
            break;
        case Op::gather:
            if (step.rows > 0) OOMLAB_DEVICE_TRY(ops.gather(GatherArgs{slot(kHidden), step.index, slot(kG), step.rows, h, type}));
            break;
        case Op::logits_f32:
            if (step.rows > 0) {
                // The product goes straight into 32 bit; the gathered rows were released with the
                // 16-bit copy, so they are taken from the hidden states again.
                u64 head = weights_.address("lm_head.weight");
                if (head == 0) head = weights_.address("model.embed_tokens.weight");
                OOMLAB_DEVICE_TRY(ops.gather(GatherArgs{slot(kHidden), step.index, slot(kL16), step.rows, h, type}));
                OOMLAB_DEVICE_TRY(matmul(slot(kL16), head, slot(kL32), step.rows, h, m.vocab_size, DType::f32));
            }
            break;
        case Op::sample:
            if (step.rows > 0) OOMLAB_DEVICE_TRY(ops.sample(SampleArgs{slot(kL32), step.sampled, step.rows, m.vocab_size, DType::f32}));
            break;
        default: break;
    }
    return {};
}

}  // namespace oomlab::server
