// Device code of RMSE: how two elements become one difference in binary64, and how 16-byte words of them are
// loaded and summed. Every rounding is written out; nothing is left to the compiler.
#pragma once

#include <cuda_fp16.h>
#include <vector_types.h>

#include <cstdint>
#include <type_traits>

#include "kernels/rmse/kind.h"

namespace tilewire::rmse::cuda {

/// What a kernel sums: the elements' type and how two of them become one difference. Nothing else in a kernel
/// knows: how elements are loaded and how the tree is climbed is the same for all.
template <Kind K>
struct Element;

/// 8 and 16 bits: each square is below 2^32 and a tile's sum below 2^53, so every order is exact and tiles
/// may be summed as integers. Sum holds a whole tile.
template <>
struct Element<Kind::kU8> {
  using Type = uint8_t;
  using Sum = uint32_t;
  static constexpr bool kExact = true, kFlips = true;
};
template <>
struct Element<Kind::kU16> {
  using Type = uint16_t;
  using Sum = unsigned long long;
  static constexpr bool kExact = true, kFlips = true;
};
template <>
struct Element<Kind::kU32> {
  using Type = uint32_t;
  static constexpr bool kExact = false, kFlips = true;
  __device__ static double Difference(uint32_t a, uint32_t b) {
    return __dsub_rn(__uint2double_rn(a), __uint2double_rn(b));
  }
};
/// |a - b| exactly in 64 bits, rounded once.
template <>
struct Element<Kind::kU64> {
  using Type = uint64_t;
  static constexpr bool kExact = false, kFlips = true;
  __device__ static double Difference(uint64_t a, uint64_t b) {
    return __ull2double_rn(a < b ? b - a : a - b);
  }
};
template <>
struct Element<Kind::kF16> {
  using Type = uint16_t;
  static constexpr bool kExact = false, kFlips = false;
  __device__ static double Widen(uint16_t x) {
    return static_cast<double>(__half2float(__ushort_as_half(x)));
  }
  __device__ static double Difference(uint16_t a, uint16_t b) { return __dsub_rn(Widen(a), Widen(b)); }
};
template <>
struct Element<Kind::kBF16> {
  using Type = uint16_t;
  static constexpr bool kExact = false, kFlips = false;
  __device__ static double Widen(uint16_t x) {
    return static_cast<double>(__uint_as_float(static_cast<unsigned>(x) << 16));
  }
  __device__ static double Difference(uint16_t a, uint16_t b) { return __dsub_rn(Widen(a), Widen(b)); }
};
template <>
struct Element<Kind::kF32> {
  using Type = float;
  static constexpr bool kExact = false, kFlips = false;
  __device__ static double Difference(float a, float b) {
    return __dsub_rn(static_cast<double>(a), static_cast<double>(b));
  }
};
template <>
struct Element<Kind::kF64> {
  using Type = double;
  static constexpr bool kExact = false, kFlips = false;
  __device__ static double Difference(double a, double b) { return __dsub_rn(a, b); }
};

/// Elements of a 16-byte word.
template <typename E>
inline constexpr int kWord = 16 / static_cast<int>(sizeof(typename E::Type));

/// Element v, a constant, of a word. Words are held as 32-bit registers: an array of narrow elements would
/// take a register each.
template <typename T>
__device__ T At(const uint4& word, int v) {
  const uint32_t part[4] = {word.x, word.y, word.z, word.w};
  if constexpr (sizeof(T) == 8) {
    T value;
    const uint64_t bits = static_cast<uint64_t>(part[2 * v + 1]) << 32 | part[2 * v];
    __builtin_memcpy(&value, &bits, 8);
    return value;
  } else if constexpr (sizeof(T) == 4) {
    T value;
    __builtin_memcpy(&value, &part[v], 4);
    return value;
  } else {
    constexpr int kPer = 4 / sizeof(T);
    return static_cast<T>(part[v / kPer] >> (v % kPer * 8 * static_cast<int>(sizeof(T))));
  }
}

/// (a - b)² of 8 or 16 bits.
template <typename E>
__device__ uint32_t Square(typename E::Type a, typename E::Type b, uint64_t flip) {
  using T = typename E::Type;
  const auto d = static_cast<uint32_t>(static_cast<int>(static_cast<T>(a ^ flip)) -
                                       static_cast<int>(static_cast<T>(b ^ flip)));
  return d * d;
}

/// acc + (a - b)². `flip` has the sign bits of the element's type set where the dtype is signed.
template <typename E>
__device__ double Accumulate(typename E::Type a, typename E::Type b, uint64_t flip, double acc) {
  using T = typename E::Type;
  if constexpr (E::kExact) {
    return __dadd_rn(acc, __uint2double_rn(Square<E>(a, b, flip)));  // exact like the rounded product
  } else if constexpr (E::kFlips) {
    const double d = E::Difference(a ^ static_cast<T>(flip), b ^ static_cast<T>(flip));
    return __fma_rn(d, d, acc);
  } else {
    const double d = E::Difference(a, b);
    return __fma_rn(d, d, acc);
  }
}

/// The sum of a word's squares in integers. 8 bits: a² + b² - 2ab by four-way dot products; what overflows
/// cancels, as the sum itself fits.
template <typename E>
__device__ typename E::Sum ExactSum(const uint4& a, const uint4& b, uint64_t flip) {
  using T = typename E::Type;
  typename E::Sum sum = 0;
  if constexpr (sizeof(T) == 1) {
    const uint32_t x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
    const auto mask = static_cast<uint32_t>(flip);
    uint32_t squares = 0, products = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      squares = __dp4a(y[i] ^ mask, y[i] ^ mask, __dp4a(x[i] ^ mask, x[i] ^ mask, squares));
      products = __dp4a(x[i] ^ mask, y[i] ^ mask, products);
    }
    sum = squares - 2 * products;
  } else {
#pragma unroll
    for (int v = 0; v < kWord<E>; ++v) sum += Square<E>(At<T>(a, v), At<T>(b, v), flip);
  }
  return sum;
}

/// The 16 bytes at `p` as far as they lie in [begin, end), the others 0, element by element. Out of line: few
/// words lie at the rim of an array, and its code is long.
template <int kSize>
__device__ __noinline__ uint4 LoadRim(const char* p, const char* begin, const char* end) {
  using T = std::conditional_t<kSize == 1, uint8_t, std::conditional_t<kSize == 2, uint16_t, uint32_t>>;
  T part[16 / sizeof(T)];
#pragma unroll
  for (int v = 0; v < 16 / static_cast<int>(sizeof(T)); ++v) {
    const char* at = p + v * sizeof(T);
    part[v] = at >= begin && at < end ? *reinterpret_cast<const T*>(at) : T{0};
  }
  uint4 word;
  __builtin_memcpy(&word, part, 16);
  return word;
}

/// A word of which no byte outside [begin, end) may be touched.
template <typename T>
__device__ uint4 LoadWithin(const char* p, const char* begin, const char* end) {
  if (p >= begin && p + 16 <= end) return *reinterpret_cast<const uint4*>(p);
  return LoadRim<sizeof(T)>(p, begin, end);
}

/// An element, in this place of the program: the compiler may not delay it to its use, as it does to save
/// registers.
template <typename T>
__device__ T LoadNow(const T* p) {
  T value;
  if constexpr (sizeof(T) == 8) {
    uint64_t bits;
    asm volatile("ld.global.nc.u64 %0, [%1];" : "=l"(bits) : "l"(p));
    __builtin_memcpy(&value, &bits, 8);
  } else if constexpr (sizeof(T) == 4) {
    uint32_t bits;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(bits) : "l"(p));
    __builtin_memcpy(&value, &bits, 4);
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(value) : "l"(p));
  } else {
    uint32_t bits;
    asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(bits) : "l"(p));
    value = static_cast<T>(bits);
  }
  return value;
}

/// A word of a stream that nobody reads twice.
__device__ inline uint4 LoadOnce(const char* p) {
  uint4 bits;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
      : "l"(p));
  return bits;
}

/// The two words at 16-byte boundaries that the 16 bytes at `p` lie in; where one has them all, only that is
/// read.
struct Straddle {
  uint4 low, high;
  int shift;
  __device__ void Load(const char* p) {
    shift = static_cast<int>(reinterpret_cast<uintptr_t>(p) % 16);
    const auto* word = reinterpret_cast<const uint4*>(p - shift);
    low = __ldg(word);
    high = {};
    if (shift != 0) high = __ldg(word + 1);
  }
  template <typename T>
  __device__ uint4 Get() const {
    uint32_t part[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) part[i] = (shift & 8) != 0 ? part[i + 2] : part[i];
    if constexpr (sizeof(T) <= 4) {
#pragma unroll
      for (int i = 0; i < 5; ++i) part[i] = (shift & 4) != 0 ? part[i + 1] : part[i];
    }
    if constexpr (sizeof(T) <= 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) part[i] = __funnelshift_r(part[i], part[i + 1], shift % 4 * 8);
    }
    return {part[0], part[1], part[2], part[3]};
  }
};

/// The bits from `bit` up; none from 32.
__device__ inline uint32_t Ones(int bit) {
  uint32_t bits;
  asm("shl.b32 %0, %1, %2;" : "=r"(bits) : "r"(0xffffffffu), "r"(bit));  // clamps, as C++ does not
  return bits;
}

/// Keeps elements [low, high) of a word, the others become 0. Applied to both operands that makes their
/// difference 0.
template <typename T>
__device__ void Keep(uint4& word, int low, int high) {
  constexpr int kSize = sizeof(T);
  const auto part = [&](uint32_t bits, int i) {
    // In bits of this part.
    const int from = max(low * kSize - i * 4, 0) * 8, to = max(high * kSize - i * 4, 0) * 8;
    return bits & Ones(from) & ~Ones(to);
  };
  word = {part(word.x, 0), part(word.y, 1), part(word.z, 2), part(word.w, 3)};
}

}  // namespace tilewire::rmse::cuda
