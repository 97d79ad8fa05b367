// A small life of a chip that makes every kind of call once or more: what the sweeps fail in turn.
#pragma once

#include <cstring>

#include "kernels/cuda/cuda_device.hpp"
#include "tests/cuda/fake_cuda.hpp"

namespace oomlab::test {

inline std::unique_ptr<Device> open_fake(FakeCuda& fake, u64 memory_limit_bytes = 0) {
    auto device = cuda::open_device(fake, fake, {.memory_limit_bytes = memory_limit_bytes});
    OOMLAB_CHECK(device.has_value());
    return std::move(*device);
}

// Stops at the first failure and returns it.
inline DeviceResult<void> live_a_little(Device& device) {
    DeviceMemory& memory = device.memory();
    DeviceOps& ops = device.ops();
    OOMLAB_TRY_VOID(device.create_context());
    OOMLAB_TRY(info, memory.mem_info());
    OOMLAB_CHECK(info.free_bytes < info.total_bytes);

    // a layer's worth of ops on one token
    OOMLAB_TRY(weight, memory.malloc(64 * 64 * 2));
    OOMLAB_TRY(x, memory.malloc(64 * 1024));
    const auto part = [&](u64 n) { return x + n * 4096; };
    OOMLAB_TRY_VOID(ops.fill({.out = weight, .elements = 64 * 64, .seed = 1}));
    OOMLAB_TRY_VOID(ops.fill({.out = x, .elements = 2048, .seed = 2}));
    OOMLAB_TRY(host, memory.host_alloc(4096));
    std::memset(host, 0, 4096);
    OOMLAB_TRY_VOID(memory.copy_to_device(part(8), host, 4096));   // ids, positions, slots: zeros
    const i32 row_begin[2] = {0, 1}, context_len[1] = {1};
    OOMLAB_TRY_VOID(memory.copy_to_device(part(9), row_begin, sizeof row_begin));
    OOMLAB_TRY_VOID(memory.copy_to_device(part(10), context_len, sizeof context_len));
    OOMLAB_TRY_VOID(ops.embed({.ids = part(8), .table = weight, .out = part(0), .rows = 1,
                               .width = 64, .vocab = 64}));
    OOMLAB_TRY_VOID(ops.rms_norm({.in = part(0), .weight = weight, .out = part(1), .rows = 1,
                                  .width = 64}));
    OOMLAB_TRY_VOID(ops.matmul({.in = part(1), .weight = weight, .out = part(2), .rows = 1, .k = 64,
                                .n = 64}));
    OOMLAB_TRY_VOID(ops.rope({.qkv = part(2), .positions = part(8), .rows = 1, .heads = 2,
                              .kv_heads = 1, .head_dim = 16}));
    OOMLAB_TRY_VOID(ops.kv_append({.qkv = part(2), .cache = part(3), .slots = part(8), .rows = 1,
                                   .heads = 2, .kv_heads = 1, .head_dim = 16, .block_size = 4}));
    OOMLAB_TRY_VOID(ops.attention({.qkv = part(2), .cache = part(3), .out = part(4),
                                   .row_begin = part(9), .context_len = part(10),
                                   .block_tables = part(8), .rows = 1, .seqs = 1, .max_blocks = 1,
                                   .heads = 2, .kv_heads = 1, .head_dim = 16, .block_size = 4}));
    OOMLAB_TRY_VOID(ops.gated_act({.gate_up = part(1), .out = part(5), .rows = 1, .width = 32}));
    OOMLAB_TRY_VOID(ops.gather({.in = part(1), .index = part(8), .out = part(6), .rows = 1,
                                .width = 64}));
    OOMLAB_TRY_VOID(ops.sample({.logits = part(6), .tokens = part(7), .rows = 1, .vocab = 64,
                                .type = DType::bf16}));
    OOMLAB_TRY_VOID(device.end_step());
    OOMLAB_TRY_VOID(memory.copy_to_host(host, part(7), 4));
    OOMLAB_TRY(sum, ops.checksum(x, 64 * 1024));
    OOMLAB_CHECK(sum != 0);

    // an expandable segment of two pages
    const u64 page = device.props().granularity_bytes;
    OOMLAB_TRY(range, memory.reserve(4 * page));
    OOMLAB_TRY(first, memory.create(page));
    OOMLAB_TRY_VOID(memory.map(range, page, first));
    OOMLAB_TRY(second, memory.create(page));
    OOMLAB_TRY_VOID(memory.map(range + page, page, second));
    OOMLAB_TRY_VOID(ops.fill({.out = range, .elements = page, .seed = 3}));
    OOMLAB_TRY_VOID(memory.unmap(range, 2 * page));
    OOMLAB_TRY_VOID(memory.destroy(first));
    OOMLAB_TRY_VOID(memory.destroy(second));
    OOMLAB_TRY_VOID(memory.release(range, 4 * page));

    // streams, events, a graph, a library's own memory
    OOMLAB_TRY(stream, device.streams().create_stream());
    OOMLAB_TRY(event, device.streams().record_event(stream));
    OOMLAB_TRY(done, device.streams().query_event(event));
    if (!done) OOMLAB_TRY_VOID(device.streams().synchronize_event(event));
    OOMLAB_TRY_VOID(device.streams().destroy_event(event));
    OOMLAB_TRY_VOID(device.graphs().begin_capture(stream));
    OOMLAB_TRY_VOID(ops.fill({.out = x, .elements = 16, .seed = 4}));
    OOMLAB_TRY(graph, device.graphs().end_capture(stream));
    OOMLAB_TRY_VOID(device.graphs().launch_graph(graph, stream));
    OOMLAB_TRY_VOID(device.streams().synchronize());
    OOMLAB_TRY_VOID(device.graphs().destroy_graph(graph));
    OOMLAB_TRY_VOID(device.streams().destroy_stream(stream));
    OOMLAB_TRY_VOID(device.grow_outside(3 * kMiB));
    OOMLAB_TRY_VOID(memory.host_free(host));
    OOMLAB_TRY_VOID(memory.free(x));
    return memory.free(weight);
}

}  // namespace oomlab::test
