// Sampling, greedy: the id of the largest logit, the lowest id among equals.
//   bytes       rows * vocab * size, read; 4 a row, written
//   operations  one comparison an element
//   floor       bytes / bandwidth, which one thread block a row does not reach: a decode batch of 8
//               would keep 8 multiprocessors busy
//
//   kernel1  a thread block a row
//   kernel2  a row in parts, a thread block each; kernel3 joins them
#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

constexpr unsigned kThreads = 256;
constexpr u64 kPartMin = 4096;   // logits

using body::Candidate;

__device__ inline Candidate block_best(Candidate c) {
    __shared__ Candidate of_warp[kThreads / kWarp];
    c = warp_best(c);
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = c;
    __syncthreads();
    const unsigned lane = threadIdx.x % kWarp;
    return warp_best(lane < kThreads / kWarp ? of_warp[lane] : body::no_candidate());
}

template <class T>
__device__ inline Candidate best_of(const T* logits, u64 first, u64 last) {
    Candidate best = body::no_candidate();
    for (u64 i = first + threadIdx.x; i < last; i += blockDim.x) {
        best = body::better(best, {number::to_float(logits[i]), static_cast<std::int32_t>(i)});
    }
    return best;
}

template <class T>
__global__ void sample_kernel1(const T* logits, std::int32_t* tokens, u64 vocab) {
    const Candidate best = block_best(best_of(logits + blockIdx.x * vocab, 0, vocab));
    if (threadIdx.x == 0) tokens[blockIdx.x] = body::token_of(best);
}

// blockIdx.x: row * parts + part
template <class T>
__global__ void sample_kernel2(const T* logits, Candidate* best_of_part, u64 vocab, u64 parts) {
    const u64 row = blockIdx.x / parts, part = blockIdx.x % parts;
    const u64 each = (vocab + parts - 1) / parts;
    const u64 first = part * each;
    const u64 last = first + each < vocab ? first + each : vocab;
    const Candidate best = block_best(best_of(logits + row * vocab, first, last));
    if (threadIdx.x == 0) best_of_part[blockIdx.x] = best;
}

__global__ void sample_kernel3(const Candidate* best_of_part, std::int32_t* tokens, u64 parts) {
    Candidate best = body::no_candidate();
    for (u64 i = threadIdx.x; i < parts; i += kWarp) {
        best = body::better(best, best_of_part[blockIdx.x * parts + i]);
    }
    best = warp_best(best);
    if (threadIdx.x == 0) tokens[blockIdx.x] = body::token_of(best);
}

// --------------------------------------------------------------------------------------------------

template <class T>
int sample_as(const SampleArgs& a, Version version, Workspace work, void* stream) {
    const T* logits = at<T>(a.logits);
    std::int32_t* tokens = at<std::int32_t>(a.tokens);
    const u64 room = work.bytes / sizeof(Candidate) / a.rows;
    const u64 wanted = a.vocab / kPartMin < 64 ? a.vocab / kPartMin : 64;
    const u64 parts = wanted < room ? wanted : room;
    if (version == Version::readable || parts < 2) {
        return launch(sample_kernel1<T>, blocks_for(a.rows, 1), kThreads, stream, logits, tokens,
                      a.vocab);
    }
    Candidate* best = at<Candidate>(work.address);
    if (const int error = launch(sample_kernel2<T>, blocks_for(a.rows * parts, 1), kThreads, stream,
                                 logits, best, a.vocab, parts)) {
        return error;
    }
    return launch(sample_kernel3, blocks_for(a.rows, 1), kWarp, stream, best, tokens, parts);
}

template <class T>
void list_as(KernelList& list) {
    list.push_back({"sample_kernel1", reinterpret_cast<const void*>(&sample_kernel1<T>)});
    list.push_back({"sample_kernel2", reinterpret_cast<const void*>(&sample_kernel2<T>)});
}

}  // namespace

int sample(const SampleArgs& a, Version version, Workspace work, void* stream) {
    return with_float(a.type,
                      [&](auto t) { return sample_as<decltype(t)>(a, version, work, stream); });
}

void list_sample(KernelList& list) {
    list_as<float>(list);
    list_as<number::f16>(list);
    list_as<number::bf16>(list);
    list.push_back({"sample_kernel3", reinterpret_cast<const void*>(&sample_kernel3)});
}

}  // namespace oomlab::kernel
