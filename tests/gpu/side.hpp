// The kernels' side on a real card: tensors in device memory, copied there and back.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::test {

inline void cuda_check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
    OOMLAB_CHECK(error == cudaSuccess);
}

class KernelSide {
  public:
    u64 reserve(u64 bytes) {
        void* p = nullptr;
        cuda_check(cudaMalloc(&p, bytes + 16));
        blocks_.emplace_back(p, [](void* q) { cudaFree(q); });
        cuda_check(cudaMemset(p, 0, bytes));
        return reinterpret_cast<u64>(p);
    }
    template <class T>
    u64 put(const std::vector<T>& values) {
        const u64 address = reserve(values.size() * sizeof(T));
        write(address, values);
        return address;
    }
    template <class T>
    void write(u64 address, const std::vector<T>& values) {
        cuda_check(cudaMemcpy(reinterpret_cast<void*>(address), values.data(),
                              values.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
    template <class T>
    std::vector<T> get(u64 address, u64 n) const {
        std::vector<T> values(n);
        cuda_check(cudaMemcpy(static_cast<void*>(values.data()),
                              reinterpret_cast<const void*>(address), n * sizeof(T),
                              cudaMemcpyDeviceToHost));
        return values;
    }

  private:
    std::vector<std::unique_ptr<void, void (*)(void*)>> blocks_;
};

inline void set_backwards(bool) {}   // a card takes its own turns
// powf, sinf and cosf of device code are within a few last bits of the host's: at position 4000 that
// moves an angle by up to 4000 * 2^-21.
inline constexpr double kAngleError = 4000 * 0x1p-21;

}  // namespace oomlab::test
