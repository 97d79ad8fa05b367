// The host's side of the kernel tests: tensors in plain host memory.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::test {

// Tensors in host memory, addressed by it; freed together.
class HostSide {
  public:
    u64 reserve(u64 bytes) {
        // A little larger than asked at most, so that AddressSanitizer sees what lies beyond.
        blocks_.emplace_back(static_cast<char*>(std::aligned_alloc(64, round_up(bytes + 1, 64))),
                             &std::free);
        std::memset(blocks_.back().get(), 0, bytes);
        return reinterpret_cast<u64>(blocks_.back().get());
    }
    template <class T>
    u64 put(const std::vector<T>& values) {
        const u64 address = reserve(values.size() * sizeof(T));
        std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
        return address;
    }
    template <class T>
    void write(u64 address, const std::vector<T>& values) {
        std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    }
    template <class T>
    std::vector<T> get(u64 address, u64 n) const {
        std::vector<T> values(n);
        std::memcpy(static_cast<void*>(values.data()), reinterpret_cast<const void*>(address),
                    n * sizeof(T));
        return values;
    }

  private:
    std::vector<std::unique_ptr<char, void (*)(void*)>> blocks_;
};

}  // namespace oomlab::test
