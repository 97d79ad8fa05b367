#include <array>
#include <cstring>
#include <utility>

#include "kernels/ops/host_ops.hpp"
#include "kernels/sim/detail/chip.hpp"

namespace oomlab::sim {
namespace {

struct Span {
    u64 address = 0;
    u64 bytes = 0;
};

constexpr u64 kI32 = 4;

// Every tensor an op touches. An address of 0 marks a tensor that may be absent.
std::array<Span, 3> spans(const MatmulArgs& a) {
    return {{{a.in, a.rows * a.k * dtype_bytes(a.in_type)},
             {a.weight, a.n * a.k * dtype_bytes(a.in_type)},
             {a.out, a.rows * a.n * dtype_bytes(a.out_type)}}};
}
std::array<Span, 4> spans(const RmsNormArgs& a) {
    const u64 bytes = a.rows * a.width * dtype_bytes(a.type);
    return {{{a.in, bytes},
             {a.weight, a.width * dtype_bytes(a.type)},
             {a.out, bytes},
             {a.residual, bytes}}};
}
std::array<Span, 2> spans(const RopeArgs& a) {
    const u64 width = (a.heads + 2 * a.kv_heads) * a.head_dim;
    return {{{a.qkv, a.rows * width * dtype_bytes(a.type)}, {a.positions, a.rows * kI32}}};
}
// The cache's length is not among the arguments: its first block stands for it here, and the slots
// are the caller's promise.
std::array<Span, 3> spans(const KvAppendArgs& a) {
    const u64 width = (a.heads + 2 * a.kv_heads) * a.head_dim;
    return {{{a.qkv, a.rows * width * dtype_bytes(a.type)},
             {a.slots, a.rows * kI32},
             {a.cache, 2 * a.block_size * a.kv_heads * a.head_dim * dtype_bytes(a.cache_type)}}};
}
std::array<Span, 6> spans(const AttentionArgs& a) {
    const u64 width = (a.heads + 2 * a.kv_heads) * a.head_dim;
    return {{{a.qkv, a.rows * width * dtype_bytes(a.type)},
             {a.out, a.rows * a.heads * a.head_dim * dtype_bytes(a.type)},
             {a.cache, 2 * a.block_size * a.kv_heads * a.head_dim * dtype_bytes(a.cache_type)},
             {a.row_begin, (a.seqs + 1) * kI32},
             {a.context_len, a.seqs * kI32},
             {a.block_tables, a.seqs * a.max_blocks * kI32}}};
}
std::array<Span, 2> spans(const GatedActArgs& a) {
    const u64 bytes = a.rows * a.width * dtype_bytes(a.type);
    return {{{a.gate_up, 2 * bytes}, {a.out, bytes}}};
}
std::array<Span, 3> spans(const EmbedArgs& a) {
    const u64 row = a.width * dtype_bytes(a.type);
    return {{{a.ids, a.rows * kI32}, {a.table, a.vocab * row}, {a.out, a.rows * row}}};
}
std::array<Span, 3> spans(const GatherArgs& a) {
    const u64 row = a.width * dtype_bytes(a.type);
    return {{{a.in, row}, {a.index, a.rows * kI32}, {a.out, a.rows * row}}};
}
std::array<Span, 2> spans(const SampleArgs& a) {
    return {{{a.logits, a.rows * a.vocab * dtype_bytes(a.type)}, {a.tokens, a.rows * kI32}}};
}
std::array<Span, 1> spans(const FillArgs& a) {
    return {{{a.out, a.elements * dtype_bytes(a.type)}}};
}

void run(const MatmulArgs& a, host::Translate at) {
    host::matmul(a, at);
}
void run(const RmsNormArgs& a, host::Translate at) {
    host::rms_norm(a, at);
}
void run(const RopeArgs& a, host::Translate at) {
    host::rope(a, at);
}
void run(const KvAppendArgs& a, host::Translate at) {
    host::kv_append(a, at);
}
void run(const AttentionArgs& a, host::Translate at) {
    host::attention(a, at);
}
void run(const GatedActArgs& a, host::Translate at) {
    host::gated_act(a, at);
}
void run(const EmbedArgs& a, host::Translate at) {
    host::embed(a, at);
}
void run(const GatherArgs& a, host::Translate at) {
    host::gather(a, at);
}
void run(const SampleArgs& a, host::Translate at) {
    host::sample(a, at);
}
void run(const FillArgs& a, host::Translate at) {
    host::fill(a, at);
}

host::Translate translate(const AddressSpace& addresses) {
    host::Translate at;
    at.lookup = [](void* context, u64 address) -> char* {
        char* p = static_cast<const AddressSpace*>(context)->host(address, 1);
        OOMLAB_CHECK(p != nullptr);  // accessible() was asked before
        return p;
    };
    at.context = const_cast<AddressSpace*>(&addresses);
    return at;
}

// The one input that a kernel checks for itself: an id beyond the table trips its assert.
bool ids_in_table(const EmbedArgs& a, const AddressSpace& addresses) {
    const char* ids = addresses.host(a.ids, a.rows * kI32);
    for (u64 row = 0; row < a.rows; ++row) {
        i32 id = 0;
        std::memcpy(&id, ids + row * kI32, kI32);
        if (id < 0 || static_cast<u64>(id) >= a.vocab) return false;
    }
    return true;
}
template <class Args>
bool ids_in_table(const Args&, const AddressSpace&) {
    return true;
}

// A null tensor among those that are needed means "cost only"; the residual and scratch may be 0.
template <class Args>
bool cost_only(const Args& a) {
    for (const Span& span : spans(a)) {
        if (span.address == 0) return true;
    }
    return false;
}
bool cost_only(const RmsNormArgs& a) {
    return a.in == 0 || a.weight == 0 || a.out == 0;
}

}  // namespace

template <class Args>
DeviceResult<void> SimOps::issue(const Args& args, DeviceCall call) {
    OOMLAB_TRY_VOID(chip_.enter(call));
    const OpCost op_cost = cost(args);
    if (chip_.capture) {
        chip_.capture->costs.push_back(op_cost);
        if (chip_.profile.backed) chip_.capture->ops.emplace_back(args);
        return {};
    }
    chip_.clock.add(op_cost);
    if (chip_.profile.backed) compute(args);
    return {};
}

template <class Args>
void SimOps::compute(const Args& args) {
    if (chip_.poisoned() || cost_only(args)) return;
    for (const Span& span : spans(args)) {
        if (span.address == 0 || chip_.addresses.accessible(span.address, span.bytes)) continue;
        chip_.poison({.code = DeviceErrc::illegal_address,
                      .call = DeviceCall::launch,
                      .bytes = 0,
                      .detail = {}});
        return;
    }
    if (!ids_in_table(args, chip_.addresses)) {
        chip_.poison({.code = DeviceErrc::device_assert,
                      .call = DeviceCall::launch,
                      .bytes = 0,
                      .detail = {}});
        return;
    }
    run(args, translate(chip_.addresses));
}

void SimOps::replay(const Capture& graph) {
    for (const OpCost& op_cost : graph.costs) chip_.clock.add(op_cost);
    for (const AnyOp& op : graph.ops) {
        std::visit([this](const auto& args) { compute(args); }, op);
    }
}

DeviceResult<void> SimOps::account(const OpCost& op_cost) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::launch));
    if (chip_.capture) {
        chip_.capture->costs.push_back(op_cost);
    } else {
        chip_.clock.add(op_cost);
    }
    return {};
}

DeviceResult<u64> SimOps::checksum(u64 address, u64 bytes) {
    OOMLAB_TRY_VOID(chip_.enter(DeviceCall::launch));
    OOMLAB_TRY_VOID(chip_.outside_capture(DeviceCall::launch));
    if (!chip_.addresses.accessible(address, bytes)) {
        return failure(DeviceErrc::invalid_value, DeviceCall::launch, bytes);
    }
    chip_.drain();
    if (!chip_.profile.backed) {
        return failure(DeviceErrc::not_supported, DeviceCall::launch, bytes,
                       "this simulated chip stores no data");
    }
    if (bytes == 0) return host::checksum(0, 0, {});
    return host::checksum(address, bytes, translate(chip_.addresses));
}

template DeviceResult<void> SimOps::issue(const MatmulArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const RmsNormArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const RopeArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const KvAppendArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const AttentionArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const GatedActArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const EmbedArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const GatherArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const SampleArgs&, DeviceCall);
template DeviceResult<void> SimOps::issue(const FillArgs&, DeviceCall);

}  // namespace oomlab::sim
