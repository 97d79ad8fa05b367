#include <algorithm>
#include <climits>
#include <optional>

#include "kernels/cuda/detail/parts.hpp"
#include "kernels/ops/bodies/elementwise.hpp"

namespace oomlab::cuda {
namespace {

std::optional<int> data_type(DType type) {
    switch (type) {
        case DType::f32: return kR32F;
        case DType::f16: return kR16F;
        case DType::bf16: return kR16BF;
        case DType::i8: return kR8I;
        case DType::i32: return kR32I;
        case DType::fp8: return std::nullopt;   // cublasLt's, not GemmEx'
    }
    return std::nullopt;
}

// The pairs that cublasGemmEx takes.
bool is_gemm_pair(DType in, DType out) {
    if (in == DType::i8) return out == DType::i32 || out == DType::f32;
    if (in == DType::f32) return out == DType::f32;
    return (in == DType::bf16 || in == DType::f16) && (out == in || out == DType::f32);
}

bool fits_int(u64 n) { return n <= INT_MAX; }

}  // namespace

template <class Launch>
DeviceResult<void> CudaOps::start(const char* name, bool wanted, Launch&& launch) {
    OOMLAB_TRY_VOID(s_.enter());
    if (!wanted) return {};
    return s_.check(launch(s_.current_stream()), DeviceCall::launch, 0, name);
}

DeviceResult<void> CudaOps::matmul(const MatmulArgs& a) {
    OOMLAB_TRY_VOID(s_.enter());
    if (a.in == 0 || a.weight == 0 || a.out == 0 || a.rows == 0 || a.n == 0) return {};
    const auto in = data_type(a.in_type), out = data_type(a.out_type);
    if (!in || !out || !is_gemm_pair(a.in_type, a.out_type)) {
        return fail(DeviceError{.code = DeviceErrc::not_supported, .call = DeviceCall::matmul,
                                .detail = "cublasGemmEx has no product of these types"});
    }
    if (!fits_int(a.rows) || !fits_int(a.k) || !fits_int(a.n)) {
        return fail(DeviceError{.code = DeviceErrc::invalid_value, .call = DeviceCall::matmul,
                                .detail = "a side of the product is larger than 2^31 - 1"});
    }
    const Gemm gemm{.in = a.in, .weight = a.weight, .out = a.out,
                    .rows = static_cast<int>(a.rows), .k = static_cast<int>(a.k),
                    .n = static_cast<int>(a.n), .in_type = *in, .out_type = *out,
                    .compute_type = a.out_type == DType::i32 ? kCompute32I : kCompute32F};
    return s_.check_blas(s_.api.blas_gemm(s_.blas(), gemm), DeviceCall::matmul);
}

DeviceResult<void> CudaOps::rms_norm(const RmsNormArgs& a) {
    const bool wanted = a.in != 0 && a.weight != 0 && a.out != 0 && a.rows != 0;
    return start("rms_norm", wanted, [&](Handle s) { return s_.launch.rms_norm(a, s); });
}

DeviceResult<void> CudaOps::rope(const RopeArgs& a) {
    const bool wanted = a.qkv != 0 && a.positions != 0 && a.rows != 0;
    return start("rope", wanted, [&](Handle s) { return s_.launch.rope(a, s); });
}

DeviceResult<void> CudaOps::kv_append(const KvAppendArgs& a) {
    const bool wanted = a.qkv != 0 && a.cache != 0 && a.slots != 0 && a.rows != 0;
    return start("kv_append", wanted, [&](Handle s) { return s_.launch.kv_append(a, s); });
}

DeviceResult<void> CudaOps::attention(const AttentionArgs& a) {
    const bool wanted = a.qkv != 0 && a.cache != 0 && a.out != 0 && a.row_begin != 0 &&
                        a.context_len != 0 && a.block_tables != 0 && a.rows != 0 && a.seqs != 0;
    return start("attention", wanted,
                 [&](Handle s) { return s_.launch.attention(a, s_.workspace(), s); });
}

DeviceResult<void> CudaOps::gated_act(const GatedActArgs& a) {
    const bool wanted = a.gate_up != 0 && a.out != 0 && a.rows != 0;
    return start("gated_act", wanted, [&](Handle s) { return s_.launch.gated_act(a, s); });
}

DeviceResult<void> CudaOps::embed(const EmbedArgs& a) {
    const bool wanted = a.ids != 0 && a.table != 0 && a.out != 0 && a.rows != 0;
    return start("embed", wanted, [&](Handle s) { return s_.launch.embed(a, s); });
}

DeviceResult<void> CudaOps::gather(const GatherArgs& a) {
    const bool wanted = a.in != 0 && a.index != 0 && a.out != 0 && a.rows != 0;
    return start("gather", wanted, [&](Handle s) { return s_.launch.gather(a, s); });
}

DeviceResult<void> CudaOps::sample(const SampleArgs& a) {
    const bool wanted = a.logits != 0 && a.tokens != 0 && a.rows != 0;
    return start("sample", wanted, [&](Handle s) { return s_.launch.sample(a, s_.workspace(), s); });
}

DeviceResult<void> CudaOps::fill(const FillArgs& a) {
    const bool wanted = a.out != 0 && a.elements != 0;
    return start("fill", wanted, [&](Handle s) { return s_.launch.fill(a, s); });
}

DeviceResult<u64> CudaOps::checksum(u64 address, u64 bytes) {
    OOMLAB_TRY_VOID(s_.enter());
    u64 hash = body::kFnvBasis;
    const Workspace work = s_.workspace();
    const Handle stream = s_.current_stream();
    OOMLAB_TRY_VOID(s_.check(s_.api.copy_to_device(work.address, &hash, sizeof hash, stream),
                             DeviceCall::copy, sizeof hash));
    for (u64 done = 0; done < bytes;) {
        const u64 count = std::min(bytes - done, checksum_bytes_max(work));
        OOMLAB_TRY_VOID(s_.check(s_.launch.checksum(address + done, count, work, stream),
                                 DeviceCall::launch, 0, "checksum"));
        done += count;
    }
    OOMLAB_TRY_VOID(s_.check(s_.api.copy_to_host(&hash, work.address, sizeof hash, stream),
                             DeviceCall::copy, sizeof hash));
    OOMLAB_TRY_VOID(s_.check(s_.api.stream_synchronize(stream), DeviceCall::synchronize));
    return hash;
}

}  // namespace oomlab::cuda
