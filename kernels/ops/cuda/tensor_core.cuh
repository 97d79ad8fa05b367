// The two instructions of tensor cores that prefill attention is built on. A warp multiplies
// a[16, 16] by b[16, 8] and adds to c[16, 8]; each lane holds its part of them.
//
// With g = lane / 4 and t = lane % 4 a lane holds
//   a  rows g and g + 8, columns 2t, 2t+1 and 2t+8, 2t+9:  a[0] (g, 2t), a[1] (g+8, 2t),
//      a[2] (g, 2t+8), a[3] (g+8, 2t+8), two 16-bit numbers each
//   b  b[0] (2t, g), (2t+1, g) and b[1] (2t+8, g), (2t+9, g)
//   c  c[0], c[1] (g, 2t), (g, 2t+1) and c[2], c[3] (g+8, 2t), (g+8, 2t+1), f32
#pragma once

#include "kernels/ops/cuda/device_code.cuh"

namespace oomlab::kernel {

#ifndef OOMLAB_EMULATOR

__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                    number::bf16) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    __trap();   // no bf16 before sm_80: prefill_takes() and has_bf16 keep it away
#endif
}

__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                    number::f16) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    // Turing has the half-sized form: the first 8 columns of a, then the last 8.
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// b[16, 8] of a row-major matrix in shared memory: lane l passes the address of row l % 16.
__device__ inline void load_transposed(unsigned (&b)[2], const void* row) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"(address));
}

#endif

// Two 16-bit numbers in one register, the first in the lower half.
template <class T>
__device__ inline unsigned pair_of(float first, float second) {
    return static_cast<unsigned>(number::from_float<T>(first).bits) |
           static_cast<unsigned>(number::from_float<T>(second).bits) << 16;
}
template <class T>
__device__ inline unsigned load_pair(const T* from) {
    return *reinterpret_cast<const unsigned*>(from);
}

}  // namespace oomlab::kernel
