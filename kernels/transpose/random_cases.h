// Random permutations of large arrays: one list for the tests, the benchmark and whoever wants to compare.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/array/dtype.h"

namespace tilewire::transpose {

/// One transpose: output axis i is input axis axes[i].
struct PermutationCase {
  DType dtype = DType::kU8;
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;

  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t d : dims) product *= d;
    return product;
  }
  int64_t bytes() const { return elements() * SizeOf(dtype); }
  /// "f32 64x100x200x300 by 2031"; axes are single digits, as ranks end at 8.
  std::string ToString() const {
    std::string text(Name(dtype));
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? " " : "x") + std::to_string(dims[i]);
    text += " by ";
    for (const int32_t a : axes) text += std::to_string(a);
    return text;
  }
};

/// The same cases for the same seed on every machine and with every library: an own generator (xorshift64*),
/// integers only. Not thread-safe.
class PermutationGenerator {
 public:
  static constexpr int64_t kMinBytes = int64_t{64} << 20, kMaxBytes = int64_t{512} << 20;
  static constexpr int kMinRank = 2, kMaxRankOfCase = 8;

  explicit PermutationGenerator(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {
    if (state_ == 0) state_ = 1;
    for (int i = 0; i < 8; ++i) Draw();  // small seeds differ in few bits
  }

  /// Element sizes 1 to 16 and ranks 2 to 8 equally often; bytes from kMinBytes to kMaxBytes; extents from 1
  /// to millions, a third of them odd, others prime or round; never the identity.
  PermutationCase Next() {
    for (;;) {
      PermutationCase c;
      c.dtype = DTypeOfSize(1 << Below(5));
      const auto rank = static_cast<int>(kMinRank + Below(kMaxRankOfCase - kMinRank + 1));
      const int64_t scale = kMinBytes << Below(3);
      c.dims = Extents(rank, (scale + Below(scale)) / SizeOf(c.dtype));
      for (int i = 0; i < rank; ++i) c.axes.push_back(i);
      for (int i = rank; i-- > 1;) std::swap(c.axes[At(i)], c.axes[At(Below(i + 1))]);
      const bool in_range = c.bytes() >= kMinBytes && c.bytes() <= kMaxBytes;
      if (in_range && !std::is_sorted(c.axes.begin(), c.axes.end())) return c;
    }
  }

 private:
  static size_t At(int64_t index) { return static_cast<size_t>(index); }

  uint64_t Draw() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  int64_t Below(int64_t n) { return static_cast<int64_t>((Draw() >> 20) % static_cast<uint64_t>(n)); }

  DType DTypeOfSize(int size) {
    std::vector<DType> fitting;
    for (const DTypeInfo& info : AllDTypes())
      if (info.size == size) fitting.push_back(info.dtype);
    return fitting[At(Below(static_cast<int64_t>(fitting.size())))];
  }

  static bool IsPrime(int64_t n) {
    for (int64_t d = 2; d * d <= n; ++d)
      if (n % d == 0) return false;
    return n > 1;
  }

  /// About 2^bits, at least 2.
  int64_t Extent(int64_t bits) {
    int64_t extent = (int64_t{1} << bits) + Below(int64_t{1} << bits);
    const int64_t kind = Below(6);
    if (kind <= 1) extent |= 1;
    if (kind == 2)
      while (!IsPrime(extent)) ++extent;
    if (kind == 3 && extent >= 8) extent &= extent < 64 ? -8 : -32;
    if (kind == 4) extent = int64_t{1} << bits;
    return extent;
  }

  /// Extents whose product is near `elements`: its bits are dealt to the axes by random cuts, and one axis
  /// takes what is left.
  std::vector<int64_t> Extents(int rank, int64_t elements) {
    int64_t bits = 0;
    while (elements >> (bits + 1) > 0) ++bits;
    std::vector<int64_t> cuts = {0, bits - rank};
    for (int i = 1; i < rank; ++i) cuts.push_back(Below(bits - rank + 1));
    std::sort(cuts.begin(), cuts.end());
    std::vector<int64_t> dims;
    for (size_t i = 1; i < cuts.size(); ++i) dims.push_back(Extent(1 + cuts[i] - cuts[i - 1]));
    const size_t open = At(Below(rank));
    int64_t others = 1;
    for (size_t i = 0; i < dims.size(); ++i) others *= i == open ? 1 : dims[i];
    dims[open] = std::max<int64_t>(1, elements / others);
    return dims;
  }

  uint64_t state_;
};

/// The first `count` cases of a seed.
inline std::vector<PermutationCase> PermutationCases(uint64_t seed, int count) {
  PermutationGenerator generator(seed);
  std::vector<PermutationCase> cases;
  for (int i = 0; i < count; ++i) cases.push_back(generator.Next());
  return cases;
}

}  // namespace tilewire::transpose
