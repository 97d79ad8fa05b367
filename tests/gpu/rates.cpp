// Rates and floors. A kernel's floor is the bytes it must move over the copy rate measured in the
// same run, or its operations over the cuBLAS rate, whichever is longer.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/open_cuda.hpp"
#include "kernels/cuda/real_api.hpp"
#include "kernels/ops/cuda/kernels.hpp"
#include "labs/server/memory/caching_allocator.hpp"
#include "tests/gpu/gpu_check.hpp"
#include "tests/gpu/side.hpp"

namespace oomlab::gpu {
namespace {

using kernel::Version;
using test::cuda_check;
using Ints = std::vector<std::int32_t>;

constexpr double kAimOfCopy = 0.85;

// The median of ten batches, in seconds a call.
double time_s(const std::function<void()>& call) {
    cudaEvent_t start, stop;
    cuda_check(cudaEventCreate(&start));
    cuda_check(cudaEventCreate(&stop));
    for (int i = 0; i < 3; ++i) call();
    constexpr int kBatch = 10;
    std::vector<double> seconds;
    for (int batch = 0; batch < 10; ++batch) {
        cuda_check(cudaEventRecord(start));
        for (int i = 0; i < kBatch; ++i) call();
        cuda_check(cudaEventRecord(stop));
        cuda_check(cudaEventSynchronize(stop));
        float ms = 0;
        cuda_check(cudaEventElapsedTime(&ms, start, stop));
        seconds.push_back(static_cast<double>(ms) / 1e3 / kBatch);
    }
    cuda_check(cudaEventDestroy(start));
    cuda_check(cudaEventDestroy(stop));
    std::nth_element(seconds.begin(), seconds.begin() + 5, seconds.end());
    return seconds[5];
}

struct Rates {
    double bytes_per_s = 0, flops = 0;
};

double copy_rate(test::KernelSide& side, u64 bytes) {
    void* from = reinterpret_cast<void*>(side.reserve(bytes));
    void* to = reinterpret_cast<void*>(side.reserve(bytes));
    const double s =
        time_s([&] { cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr)); });
    return 2 * static_cast<double>(bytes) / s;   // read and written
}

double blas_rate(test::KernelSide& side, bool bf16) {
    const auto api = cuda::real_api();
    if (!api->blas_open().empty()) return 0;
    cuda::Handle handle = nullptr;
    if (api->blas_create(&handle) != 0) return 0;
    constexpr int kSide = 4096;
    const int type = bf16 ? cuda::kR16BF : cuda::kR16F;
    const cuda::Gemm g{.in = side.reserve(u64{2} * kSide * kSide),
                       .weight = side.reserve(u64{2} * kSide * kSide),
                       .out = side.reserve(u64{2} * kSide * kSide), .rows = kSide, .k = kSide,
                       .n = kSide, .in_type = type, .out_type = type};
    const DType dtype = bf16 ? DType::bf16 : DType::f16;   // real numbers: zeros run faster
    for (const u64 out : {g.in, g.weight}) {
        kernel::fill({.out = out, .elements = u64{kSide} * kSide, .seed = out, .type = dtype},
                     Version::fast, nullptr);
    }
    const double s = time_s([&] { OOMLAB_CHECK(api->blas_gemm(handle, g) == 0); });
    api->blas_destroy(handle);
    return 2.0 * kSide * kSide * kSide / s;
}

class Table {
  public:
    explicit Table(Rates rates) : rates_(rates) {
        std::printf("%-34s %10s %10s %10s %8s\n", "kernel", "us", "GB/s", "floor us", "of floor");
    }
    void line(const std::string& name, OpCost cost, const std::function<int()>& call, bool aimed) {
        const int error = call();
        if (error != 0) {
            std::printf("%-34s launch error %d\n", name.c_str(), error);
            ++missed_;
            return;
        }
        const double s = time_s([&] { call(); });
        const double floor = std::max(cost.bytes / rates_.bytes_per_s,
                                      rates_.flops > 0 ? cost.flops / rates_.flops : 0);
        const bool misses = aimed && floor / s < kAimOfCopy;
        missed_ += misses;
        std::printf("%-34s %10.1f %10.0f %10.1f %7.0f%%%s\n", name.c_str(), s * 1e6,
                    cost.bytes / s / 1e9, floor * 1e6, 100 * floor / s, misses ? "  below the aim" : "");
    }
    // Both versions; only the fast one is held to the aim.
    template <class Args>
    void both(const std::string& name, const Args& args, int (*launch)(const Args&, Version, void*)) {
        line(name + ", readable", cost(args),
             [&] { return launch(args, Version::readable, nullptr); }, false);
        line(name, cost(args), [&] { return launch(args, Version::fast, nullptr); }, true);
    }
    int missed() const { return missed_; }

  private:
    Rates rates_;
    int missed_ = 0;
};

// A layer of an 8 B model (32 heads, 8 kv heads of 128, hidden 4096, feed-forward 14336).
constexpr u64 kHidden = 4096, kHeads = 32, kKvHeads = 8, kDim = 128, kForward = 14336;
constexpr u64 kQkv = (kHeads + 2 * kKvHeads) * kDim, kBlockSize = 16, kVocab = 128256;

AttentionArgs attention_args(test::KernelSide& side, DType type, u64 seqs, u64 rows_each, u64 context) {
    Ints row_begin{0}, context_len, tables;
    const u64 max_blocks = context / kBlockSize;
    for (u64 s = 0; s < seqs; ++s) {
        row_begin.push_back(static_cast<std::int32_t>((s + 1) * rows_each));
        context_len.push_back(static_cast<std::int32_t>(context));
        for (u64 b = 0; b < max_blocks; ++b) {
            tables.push_back(static_cast<std::int32_t>(s * max_blocks + b));
        }
    }
    const u64 rows = seqs * rows_each;
    AttentionArgs a{.qkv = side.reserve(rows * kQkv * 2),
                    .cache = side.reserve(seqs * context * 2 * kKvHeads * kDim * 2),
                    .out = side.reserve(rows * kHeads * kDim * 2), .row_begin = side.put(row_begin),
                    .context_len = side.put(context_len), .block_tables = side.put(tables),
                    .rows = rows, .seqs = seqs, .max_blocks = max_blocks, .heads = kHeads,
                    .kv_heads = kKvHeads, .head_dim = kDim, .block_size = kBlockSize,
                    .context_tokens = seqs * (rows_each * context - rows_each * (rows_each - 1) / 2),
                    .kv_tokens_read = seqs * context, .type = type, .cache_type = type};
    kernel::fill({.out = a.qkv, .elements = rows * kQkv, .seed = 1, .scale = 1, .type = type},
                 Version::fast, nullptr);
    kernel::fill({.out = a.cache, .elements = seqs * context * 2 * kKvHeads * kDim, .seed = 2,
                  .scale = 1, .type = type}, Version::fast, nullptr);
    return a;
}

void print_allocators() {
    const auto per_pair_ns = [](const std::function<void()>& pair, int times) {
        const auto api = cuda::real_api();
        for (int i = 0; i < 10; ++i) pair();
        const double start = api->now_s();
        for (int i = 0; i < times; ++i) pair();
        cuda_check(cudaDeviceSynchronize());
        return (api->now_s() - start) / times * 1e9;
    };
    constexpr u64 kBytes = 3 * kMiB;
    const double plain = per_pair_ns([] {
        void* p = nullptr;
        cuda_check(cudaMalloc(&p, kBytes));
        cuda_check(cudaFree(p));
    }, 200);
    const double async = per_pair_ns([] {
        void* p = nullptr;
        cuda_check(cudaMallocAsync(&p, kBytes, nullptr));
        cuda_check(cudaFreeAsync(p, nullptr));
    }, 2000);
    double ours = 0;
    if (auto device = open_cuda_device(0, 0)) {
        CachingAllocator allocator(**device, AllocConf{});
        ours = per_pair_ns([&] { allocator.free(allocator.malloc(kBytes)->address); }, 100000);
    }
    std::printf("\n%-34s %10s\n%-34s %10.0f\n%-34s %10.0f\n%-34s %10.0f\n", "a pair of malloc and free",
                "ns", "cudaMalloc, cudaFree", plain, "cudaMallocAsync, cudaFreeAsync", async,
                "ours, warm", ours);
}

}  // namespace

int print_rates() {
    int major = 0;
    cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    const DType type = major >= 8 ? DType::bf16 : DType::f16;
    int missed = 0;
    {
        std::size_t free_bytes = 0, total = 0;
        cuda_check(cudaMemGetInfo(&free_bytes, &total));
        // Small cards get smaller tensors; large ones need more than their L2 holds.
        const u64 rows = free_bytes > 12 * kGiB ? 8192 : 2048;
        const u64 context = free_bytes > 12 * kGiB ? 4096 : 1024;
        test::KernelSide side;
        const Rates rates{copy_rate(side, std::min<u64>(kGiB, free_bytes / 8)),
                          blas_rate(side, type == DType::bf16)};
        std::printf("copy %.0f GB/s (read and written), cuBLAS %.1f TFLOP/s (16 bit, 4096 cubed)\n\n",
                    rates.bytes_per_s / 1e9, rates.flops / 1e12);
        Table table(rates);
        const u64 a = side.reserve(rows * 2 * kForward * 2), b = side.reserve(rows * kForward * 2);
        const u64 w = side.reserve(kHidden * 2);
        table.both("fill", FillArgs{.out = a, .elements = rows * kForward, .seed = 3, .scale = 1,
                                    .type = type}, kernel::fill);
        table.both("rms_norm", RmsNormArgs{.in = a, .weight = w, .out = b, .rows = rows,
                                           .width = kHidden, .type = type}, kernel::rms_norm);
        table.both("rms_norm with residual",
                   RmsNormArgs{.in = a, .residual = a + rows * kHidden * 2, .weight = w, .out = b,
                               .rows = rows, .width = kHidden, .type = type}, kernel::rms_norm);
        Ints positions(rows), slots(rows), index(rows);
        for (u64 i = 0; i < rows; ++i) {
            positions[i] = slots[i] = static_cast<std::int32_t>(i);
            index[i] = static_cast<std::int32_t>(i * 7919 % rows);
        }
        const u64 ids = side.put(index);
        table.both("rope", RopeArgs{.qkv = a, .positions = side.put(positions), .rows = rows,
                                    .heads = kHeads, .kv_heads = kKvHeads, .head_dim = kDim,
                                    .type = type}, kernel::rope);
        table.both("kv_append", KvAppendArgs{.qkv = a, .cache = b, .slots = side.put(slots),
                                             .rows = rows, .heads = kHeads, .kv_heads = kKvHeads,
                                             .head_dim = kDim, .block_size = kBlockSize,
                                             .type = type, .cache_type = type}, kernel::kv_append);
        table.both("gated_act", GatedActArgs{.gate_up = a, .out = b, .rows = rows,
                                             .width = kForward, .type = type}, kernel::gated_act);
        const EmbedArgs embed{.ids = ids, .table = a, .out = b, .rows = rows, .width = kHidden,
                              .vocab = rows, .type = type};
        table.line("embed", cost(embed), [&] { return kernel::embed(embed, nullptr); }, true);
        const Workspace work{side.reserve(32 * kMiB), 32 * kMiB};
        const SampleArgs sample{.logits = side.reserve(64 * kVocab * 4), .tokens = ids, .rows = 64,
                                .vocab = kVocab};
        for (const Version v : {Version::readable, Version::fast}) {
            table.line(v == Version::fast ? "sample" : "sample, readable", cost(sample),
                       [&] { return kernel::sample(sample, v, work, nullptr); }, v == Version::fast);
        }
        const OpCost sum{.flops = 0, .bytes = 64e6};
        table.line("checksum of 64 MB", sum,
                   [&] { return kernel::checksum(a, 64000000, Version::fast, work, nullptr); }, false);
        for (const auto& [name, seqs, rows_each] :
             {std::tuple<const char*, u64, u64>{"decode attention, 32 sequences", 32, 1},
              std::tuple<const char*, u64, u64>{"decode attention, 1 sequence", 1, 1},
              std::tuple<const char*, u64, u64>{"prefill attention, 1 prompt", 1, context}}) {
            const AttentionArgs args = attention_args(side, type, seqs, rows_each, context);
            for (const Version v : {Version::readable, Version::fast}) {
                table.line(std::string(name) + (v == Version::fast ? "" : ", readable"), cost(args),
                           [&] { return kernel::attention(args, v, work, nullptr); },
                           v == Version::fast && seqs == 32);
            }
        }
        missed = table.missed();
    }
    print_allocators();
    std::printf("\n%d below the aim of %.0f%% of the measured copy rate\n", missed, 100 * kAimOfCopy);
    return missed == 0 ? 0 : 1;
}

}  // namespace oomlab::gpu
