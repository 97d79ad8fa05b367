// Embed and gather: out[row] = in[index[row]], rows copied whole.
//   bytes       2 * rows * width * size, and 4 a row for the index
//   operations  none
//   floor       bytes / bandwidth
//
// A thread block a row; 16 bytes a thread where rows are aligned to that. An index outside the table
// is the classic fault that is later reported as "out of memory": here it stops at a device-side
// assert, as in PyTorch.
#undef NDEBUG
#include <cassert>

#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

constexpr unsigned kThreads = 128;

struct Bytes16 {
    alignas(16) std::uint8_t x[16];
};

template <class Unit>
__global__ void copy_rows_kernel(const Unit* in, const std::int32_t* index, Unit* out,
                                 u64 units, u64 in_rows) {
    const u64 row = blockIdx.x;
    const std::int32_t from = index[row];
    assert(from >= 0 && static_cast<u64>(from) < in_rows);
    for (u64 i = threadIdx.x; i < units; i += blockDim.x) {
        out[row * units + i] = in[static_cast<u64>(from) * units + i];
    }
}

// --------------------------------------------------------------------------------------------------

int copy_rows(u64 in, u64 index, u64 out, u64 rows, u64 row_bytes, u64 in_rows, void* stream) {
    const auto run = [&](auto unit) {
        using Unit = decltype(unit);
        return launch(copy_rows_kernel<Unit>, blocks_for(rows, 1), kThreads, stream, at<Unit>(in),
                      at<std::int32_t>(index), at<Unit>(out), row_bytes / sizeof(Unit), in_rows);
    };
    if (aligned(in) && aligned(out) && row_bytes % 16 == 0) return run(Bytes16{});
    return run(std::uint8_t{});
}

}  // namespace

int embed(const EmbedArgs& a, void* stream) {
    return copy_rows(a.table, a.ids, a.out, a.rows, a.width * dtype_bytes(a.type), a.vocab, stream);
}

int gather(const GatherArgs& a, void* stream) {
    constexpr u64 kAnyRow = u64{1} << 31;   // the op does not say how many rows `in` has
    return copy_rows(a.in, a.index, a.out, a.rows, a.width * dtype_bytes(a.type), kAnyRow, stream);
}

void list_copy_rows(KernelList& list) {
    list.push_back({"copy_rows_kernel", reinterpret_cast<const void*>(&copy_rows_kernel<Bytes16>)});
    list.push_back(
        {"copy_rows_kernel", reinterpret_cast<const void*>(&copy_rows_kernel<std::uint8_t>)});
}

}  // namespace oomlab::kernel
