// Checksum: FNV-1a over bytes, h = (h ^ byte) * p, which looks as if it could only run in order.
//   bytes       bytes, read (kernel2 writes a table of 2 KiB for every 16 KiB besides)
//   operations  kernel1: 2 a byte, one after the other; kernel2: 256 times that, side by side
//   floor       kernel2 is bound by its 64-bit products: about 256 * 6 instructions a byte
//
//   kernel1  one thread
//   kernel2  Split h into its low byte s and the rest H, a multiple of 256. The XOR touches s alone,
//            so a run of n bytes takes s + H to f(s) + H * p^n: it is linear in H. A thread block
//            works out f for all 256 low bytes of its piece at once, a thread each.
//   kernel3  then walks the pieces, a step for each.
#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {
namespace {

__global__ void checksum_kernel1(const std::uint8_t* data, u64 bytes, u64* hash) {
    u64 h = *hash;
    for (u64 i = 0; i < bytes; ++i) h = body::fnv_step(h, data[i]);
    *hash = h;
}

__global__ void __launch_bounds__(256)
checksum_kernel2(const std::uint8_t* data, u64 bytes, u64* tables) {
    __shared__ std::uint8_t piece[kChecksumPieceBytes];
    const u64 first = static_cast<u64>(blockIdx.x) * kChecksumPieceBytes;
    const unsigned count = static_cast<unsigned>(
        bytes - first < kChecksumPieceBytes ? bytes - first : kChecksumPieceBytes);
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) piece[i] = data[first + i];
    __syncthreads();
    u64 h = threadIdx.x;
    for (unsigned i = 0; i < count; ++i) h = body::fnv_step(h, piece[i]);
    tables[static_cast<u64>(blockIdx.x) * 256 + threadIdx.x] = h;
}

__device__ u64 power(u64 base, u64 exponent) {
    u64 result = 1;
    for (; exponent != 0; exponent >>= 1, base *= base) {
        if (exponent & 1) result *= base;
    }
    return result;
}

__global__ void checksum_kernel3(const u64* tables, u64 bytes, u64* hash) {
    const u64 pieces = bytes / kChecksumPieceBytes, rest = bytes % kChecksumPieceBytes;
    const u64 whole = power(body::kFnvPrime, kChecksumPieceBytes);
    u64 h = *hash;
    for (u64 i = 0; i < pieces; ++i) h = tables[i * 256 + (h & 255)] + (h & ~u64{255}) * whole;
    if (rest != 0) {
        h = tables[pieces * 256 + (h & 255)] + (h & ~u64{255}) * power(body::kFnvPrime, rest);
    }
    *hash = h;
}

}  // namespace

// --------------------------------------------------------------------------------------------------

int checksum(u64 address, u64 bytes, Version version, Workspace work, void* stream) {
    const std::uint8_t* data = at<std::uint8_t>(address);
    u64* hash = at<u64>(work.address);
    if (version == Version::readable) {
        return launch(checksum_kernel1, 1, 1, stream, data, bytes, hash);
    }
    if (bytes > checksum_bytes_max(work)) return kInvalidValue;
    u64* tables = at<u64>(work.address + kChecksumTableBytes);
    if (const int error = launch(checksum_kernel2, blocks_for(bytes, kChecksumPieceBytes), 256,
                                 stream, data, bytes, tables)) {
        return error;
    }
    return launch(checksum_kernel3, 1, 1, stream, tables, bytes, hash);
}

void list_checksum(KernelList& list) {
    list.push_back({"checksum_kernel1", reinterpret_cast<const void*>(&checksum_kernel1)});
    list.push_back({"checksum_kernel2", reinterpret_cast<const void*>(&checksum_kernel2)});
    list.push_back({"checksum_kernel3", reinterpret_cast<const void*>(&checksum_kernel3)});
}

}  // namespace oomlab::kernel
