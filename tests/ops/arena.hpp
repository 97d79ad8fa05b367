// A stretch of host memory that stands for device memory in tests: tensors are put into it and read
// back by device address.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/base/prng.hpp"
#include "kernels/ops/bodies/number.hpp"
#include "kernels/ops/host_ops.hpp"

namespace oomlab::test {

class Arena {
  public:
    explicit Arena(u64 bytes = 16 * kMiB) : memory_(bytes) {}

    u64 reserve(u64 bytes) {
        const u64 address = kFirst + used_;
        used_ = round_up(used_ + bytes, 512);
        OOMLAB_CHECK(used_ <= memory_.size());
        return address;
    }
    template <class T>
    u64 put(const std::vector<T>& values) {
        const u64 address = reserve(values.size() * sizeof(T));
        std::memcpy(at()(address), values.data(), values.size() * sizeof(T));
        return address;
    }
    template <class T>
    std::vector<T> get(u64 address, u64 n) const {
        std::vector<T> values(n);
        std::memcpy(values.data(), memory_.data() + (address - kFirst), n * sizeof(T));
        return values;
    }
    host::Translate at() { return {.base = memory_.data(), .first = kFirst}; }

  private:
    static constexpr u64 kFirst = 0x7f0000000000;
    std::vector<char> memory_;
    u64 used_ = 0;
};

template <class T>
std::vector<T> random_values(Prng& prng, u64 n, double scale) {
    std::vector<T> values(n);
    for (T& v : values) v = number::from_float<T>(static_cast<float>((2 * prng.uniform() - 1) * scale));
    return values;
}

template <class T>
std::vector<double> as_double(const std::vector<T>& values) {
    std::vector<double> out(values.size());
    for (u64 i = 0; i < values.size(); ++i) out[i] = static_cast<double>(number::to_float(values[i]));
    return out;
}

// DType of a C++ type.
template <class T>
inline constexpr DType kType = DType::f32;
template <>
inline constexpr DType kType<number::f16> = DType::f16;
template <>
inline constexpr DType kType<number::bf16> = DType::bf16;
template <>
inline constexpr DType kType<number::fp8> = DType::fp8;
template <>
inline constexpr DType kType<std::int8_t> = DType::i8;
template <>
inline constexpr DType kType<std::int32_t> = DType::i32;

// The largest relative error of rounding to T: half a step of its mantissa.
template <class T>
inline constexpr double kHalfStep = 0x1p-24;
template <>
inline constexpr double kHalfStep<number::f16> = 0x1p-11;
template <>
inline constexpr double kHalfStep<number::bf16> = 0x1p-8;
template <>
inline constexpr double kHalfStep<number::fp8> = 0x1p-4;

}  // namespace oomlab::test
