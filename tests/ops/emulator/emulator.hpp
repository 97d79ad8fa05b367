// Runs the kernels of kernels/ops/cuda on the host: thread blocks one after the other, the threads
// of a block as fibers that take turns at barriers and warp instructions. Slow, and exact about what
// matters: a barrier that not all threads reach, a shuffle that a lane has left, an access outside an
// allocation (under AddressSanitizer) stop the test. It says nothing about speed or memory order.
//
// Included in place of cuda_runtime.h, by OOMLAB_EMULATOR.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include "kernels/ops/bodies/number.hpp"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// The thread that runs now.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace oomlab::emulator {

// Runs `thread` once for every thread of the grid. Returns CUDA's number for an impossible launch.
int run(dim3 grid, dim3 block, const std::function<void()>& thread);

void sync_block();
// A warp instruction: every lane leaves 32 bytes, waits for the others, and may read theirs until it
// calls sync_warp() again.
struct alignas(8) Slot {
    unsigned char bytes[32];
};
Slot* exchange(const void* from, unsigned bytes);
void sync_warp();

}  // namespace oomlab::emulator

inline void __syncthreads() { oomlab::emulator::sync_block(); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int lane_mask) {
    const auto* slots = oomlab::emulator::exchange(&value, sizeof value);
    std::memcpy(&value, slots[(threadIdx.x % 32) ^ static_cast<unsigned>(lane_mask)].bytes,
                sizeof value);
    oomlab::emulator::sync_warp();
    return value;
}

namespace oomlab::kernel {

template <class... P, class... A>
int launch(void (*kernel)(P...), dim3 grid, dim3 block, void*, A... arguments) {
    return emulator::run(grid, block, [&] { kernel(static_cast<P>(arguments)...); });
}

template <class T>
float half_of(unsigned pair, unsigned which) {
    return number::to_float(T{static_cast<std::uint16_t>(pair >> (16 * which))});
}

// By the table in tensor_core.cuh: c[16, 8] += a[16, 16] * b[16, 8].
template <class T>
void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], T) {
    struct Mine {
        unsigned a[4], b[2];
    } mine;
    std::memcpy(mine.a, a, sizeof a);
    std::memcpy(mine.b, b, sizeof b);
    const auto* slots = emulator::exchange(&mine, sizeof mine);
    const auto of_lane = [&](unsigned lane) {
        Mine m;
        std::memcpy(&m, slots[lane].bytes, sizeof m);
        return m;
    };
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = g + i / 2 * 8, column = t * 2 + i % 2;
        for (unsigned k = 0; k < 16; ++k) {
            const unsigned a_pair = of_lane(row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2];
            const unsigned b_pair = of_lane(column * 4 + k % 8 / 2).b[k / 8];
            c[i] += half_of<T>(a_pair, k % 2) * half_of<T>(b_pair, k % 2);
        }
    }
    emulator::sync_warp();
}

inline void load_transposed(unsigned (&b)[2], const void* row) {
    const auto* slots = emulator::exchange(&row, sizeof row);
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const auto element = [&](unsigned r) {
        const std::uint16_t* from;
        std::memcpy(&from, slots[r].bytes, sizeof from);
        return static_cast<unsigned>(from[g]);
    };
    for (unsigned i = 0; i < 2; ++i) {
        b[i] = element(i * 8 + t * 2) | element(i * 8 + t * 2 + 1) << 16;
    }
    emulator::sync_warp();
}

}  // namespace oomlab::kernel
