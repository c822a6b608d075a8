// What a thread makes of pairs of elements. Every rounding is written out; nothing is left to the compiler.
#pragma once

#include "kernels/compare/cuda_work.cuh"

namespace tilewire::compare::cuda {

/// One pair: d, what the largest |d| are compared by, and whether its elements differ.
template <Kind K>
struct Pair {
  using E = rmse::cuda::Element<K>;
  using T = typename E::Type;
  using Key = double;
  double d;
  bool unequal;
  __device__ Pair(T a, T b, uint64_t flip) {
    if constexpr (K == Kind::kU32) {
      d = E::Difference(a ^ static_cast<T>(flip), b ^ static_cast<T>(flip));
      unequal = a != b;
    } else if constexpr (K == Kind::kF16 || K == Kind::kBF16) {
      const double x = E::Widen(a), y = E::Widen(b);
      d = __dsub_rn(x, y);
      unequal = !(x == y);
    } else {
      d = E::Difference(a, b);
      unequal = !(a == b);
    }
  }
  __device__ Key key() const { return fabs(d); }
  __device__ bool nan() const { return d != d; }
  /// As it is kept.
  __device__ static uint64_t Bits(Key key) { return static_cast<uint64_t>(__double_as_longlong(key)); }
};

/// |a - b| exactly in 64 bits, rounded once, with the sign.
template <>
struct Pair<Kind::kU64> {
  using E = rmse::cuda::Element<Kind::kU64>;
  using T = uint64_t;
  using Key = uint64_t;
  uint64_t exact;
  double d;
  bool unequal;
  __device__ Pair(T a, T b, uint64_t flip) {
    const uint64_t x = a ^ flip, y = b ^ flip;
    exact = x < y ? y - x : x - y;
    const double rounded = __ull2double_rn(exact);
    d = x < y ? -rounded : rounded;
    unequal = a != b;
  }
  __device__ Key key() const { return exact; }
  __device__ bool nan() const { return false; }
  __device__ static uint64_t Bits(Key key) { return key; }
};

/// 8 and 16 bits, which stay integers until a leaf is done: all their sums over a tile are exact.
template <Kind K>
requires(rmse::cuda::Element<K>::kExact) struct Pair<K> {
  using E = rmse::cuda::Element<K>;
  using T = typename E::Type;
  using Key = uint32_t;
  int d;
  bool unequal;
  __device__ Pair(T a, T b, uint64_t flip)
      : d(static_cast<int>(static_cast<T>(a ^ flip)) - static_cast<int>(static_cast<T>(b ^ flip))),
        unequal(a != b) {}
  __device__ Key key() const { return static_cast<uint32_t>(abs(d)); }
  __device__ bool nan() const { return false; }
  __device__ static uint64_t Bits(Key key) {
    return static_cast<uint64_t>(__double_as_longlong(__uint2double_rn(key)));
  }
};

/// All are made where one is asked for, and stored where there is a place: what takes the time is reading.
inline constexpr int kSums = 3;

/// One accumulator of each sum.
template <Kind K>
struct Accumulator {
  double of[kSums] = {};
  __device__ void Add(const Pair<K>& pair) {
    of[0] = __fma_rn(pair.d, pair.d, of[0]);
    of[1] = __dadd_rn(of[1], fabs(pair.d));
    of[2] = __dadd_rn(of[2], pair.d);
  }
  __device__ double Get(int sum) const { return of[sum]; }
};
template <Kind K>
requires(rmse::cuda::Element<K>::kExact) struct Accumulator<K> {
  typename rmse::cuda::Element<K>::Sum squares = 0;
  uint32_t magnitudes = 0;
  int differences = 0;
  __device__ void Add(const Pair<K>& pair) {
    const uint32_t magnitude = pair.key();
    squares += magnitude * magnitude;  // below 2^32
    magnitudes += magnitude;
    differences += pair.d;
  }
  __device__ double Get(int sum) const {
    if (sum == 0) return __ull2double_rn(squares);
    return sum == 1 ? __uint2double_rn(magnitudes) : __int2double_rn(differences);
  }
};

inline constexpr int kNowhere = 0x7fffffff;  // larger than any place in a tile

/// The largest |d| of some pairs and where it is first.
template <Kind K>
struct Best {
  using Key = typename Pair<K>::Key;
  static constexpr bool kFloats = std::is_same_v<Key, double>;
  Key key = kFloats ? Key(-1) : Key(0);  ///< loses against any pair, where that can be said
  int at = kNowhere;
  /// Pairs are about to come in the order of their places, the first of them at `first`.
  __device__ void Start(int first) {
    if constexpr (!kFloats) at = first;  // no key is below the one it stands with
  }
  /// Whether `pair` is better than all before it; NaN is not. Then the caller has to say where it is.
  __device__ bool Take(const Pair<K>& pair) {
    const Key other = pair.key();
    const bool better = other > key;
    key = better ? other : key;
    return better;
  }
  __device__ void Meet(Key other, int other_at) {
    if (other < key || (other == key && other_at >= at)) return;
    key = other;
    at = other_at;
  }
  /// As it is kept: 0 where there is none.
  __device__ uint64_t Bits() const { return at == kNowhere ? 0 : Pair<K>::Bits(key); }
};

/// What a thread knows of its pairs besides their sums.
template <Kind K>
struct Seen {
  Best<K> best;
  uint32_t counts = 0;  ///< NaN pairs · 2^16 + unequal pairs: a tile has at most 2^12
  __device__ void Count(const Pair<K>& pair) {
    if (pair.nan()) counts += 1u << 16;
    if (pair.unequal) ++counts;
  }
};

}  // namespace tilewire::compare::cuda
