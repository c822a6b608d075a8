// Division by numbers that the host knows: a multiplication and a shift where 32 bits are enough.
#pragma once

#include <cstdint>

namespace tilewire::transpose {

inline int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

template <typename Index>
struct Divider;

/// Exact for dividends below 2^31 (the sum cannot overflow then).
template <>
struct Divider<uint32_t> {
  uint32_t divisor = 1, magic = 1, shift = 0;

  Divider() = default;
  explicit Divider(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    magic = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor + 1);
  }
#ifdef __CUDACC__
  /// Divides `n`, returns the remainder.
  __host__ __device__ uint32_t Split(uint32_t& n) const {
#ifdef __CUDA_ARCH__
    const uint32_t quotient = (__umulhi(n, magic) + n) >> shift;
#else
    const uint32_t quotient = n / divisor;
#endif
    const uint32_t rest = n - quotient * divisor;
    n = quotient;
    return rest;
  }
#endif
};

template <>
struct Divider<uint64_t> {
  uint64_t divisor = 1;

  Divider() = default;
  explicit Divider(int64_t d) : divisor(static_cast<uint64_t>(d)) {}
#ifdef __CUDACC__
  __device__ uint64_t Split(uint64_t& n) const {
    const uint64_t quotient = n / divisor, rest = n - quotient * divisor;
    n = quotient;
    return rest;
  }
#endif
};

}  // namespace tilewire::transpose
