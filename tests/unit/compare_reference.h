// The contract compare.1, written out as plainly as it reads: the oracle of its tests. It shares nothing with
// the kernels but the dtype table and the names of metrics.
#pragma once

#include "kernels/compare/compare.h"
#include "tests/unit/rmse_reference.h"

namespace tilewire::compare::reference {

using rmse::reference::Bytes;
using rmse::reference::Wide;

/// One pair: d, and what is compared exactly.
struct Pair {
  double d = 0;
  Wide exact = 0;  ///< a - b of 64-bit integers
  bool equal = false;
};

inline double ValueOf(DType dtype, const Bytes& bytes, int64_t i) {
  using namespace rmse::reference;
  switch (dtype) {
    case DType::kI8:
      return Read<int8_t>(bytes, i);
    case DType::kU8:
      return Read<uint8_t>(bytes, i);
    case DType::kI16:
      return Read<int16_t>(bytes, i);
    case DType::kU16:
      return Read<uint16_t>(bytes, i);
    case DType::kI32:
      return Read<int32_t>(bytes, i);
    case DType::kU32:
      return Read<uint32_t>(bytes, i);
    case DType::kF16:
      return Half(Read<uint16_t>(bytes, i));
    case DType::kBF16:
      return BFloat(Read<uint16_t>(bytes, i));
    case DType::kF32:
      return static_cast<double>(Read<float>(bytes, i));
    case DType::kF64:
      return Read<double>(bytes, i);
    case DType::kI64:  // not exactly a double
    case DType::kU64:
    case DType::kBool:
    case DType::kC64:
    case DType::kC128:
      break;
  }
  return NAN;
}

inline Pair PairOf(DType dtype, const Bytes& a, const Bytes& b, int64_t i) {
  using rmse::reference::Read;
  if (dtype == DType::kI64 || dtype == DType::kU64) {
    const bool is_signed = dtype == DType::kI64;
    const Wide x = is_signed ? Wide{Read<int64_t>(a, i)} : Wide{Read<uint64_t>(a, i)};
    const Wide y = is_signed ? Wide{Read<int64_t>(b, i)} : Wide{Read<uint64_t>(b, i)};
    const auto magnitude = static_cast<double>(static_cast<uint64_t>(x < y ? y - x : x - y));
    return {.d = x < y ? -magnitude : magnitude, .exact = x - y, .equal = x == y};
  }
  const double x = ValueOf(dtype, a, i), y = ValueOf(dtype, b, i);
  return {.d = x - y, .equal = x == y};
}

/// acc = step(d, acc) over the tree of tiles.
template <typename Step>
double Tree(const std::vector<Pair>& pairs, Step step) {
  std::vector<double> sums;
  for (size_t begin = 0; begin < pairs.size(); begin += 4096) {
    double acc[256] = {};
    for (size_t i = begin; i < std::min(begin + 4096, pairs.size()); ++i)
      acc[(i - begin) % 256] = step(pairs[i].d, acc[(i - begin) % 256]);
    for (int s = 128; s >= 1; s /= 2)
      for (int i = 0; i < s; ++i) acc[i] = acc[i] + acc[i + s];
    sums.push_back(acc[0]);
  }
  while (sums.size() > 1) {
    std::vector<double> next;
    for (size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(sums[i] + sums[i + 1]);
    if (sums.size() % 2 != 0) next.push_back(sums.back());
    sums = next;
  }
  return sums[0];
}

using rmse::reference::Bits;

/// The bits of all metrics of one segment.
inline std::array<uint64_t, kMetrics> Segment(const std::vector<Pair>& pairs) {
  const auto n = static_cast<double>(pairs.size());
  const double squares = Tree(pairs, [](double d, double acc) { return std::fma(d, d, acc); });
  const double magnitudes = Tree(pairs, [](double d, double acc) { return acc + std::fabs(d); });
  const double differences = Tree(pairs, [](double d, double acc) { return acc + d; });
  const auto less = [](const Pair& x, const Pair& y) {
    const Wide p = x.exact < 0 ? -x.exact : x.exact, q = y.exact < 0 ? -y.exact : y.exact;
    return p != q ? p < q : std::fabs(x.d) < std::fabs(y.d);
  };
  int64_t largest = -1;
  uint64_t nans = 0, unequal = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    unequal += !pairs[i].equal;
    nans += std::isnan(pairs[i].d);
    if (std::isnan(pairs[i].d)) continue;
    if (largest < 0 || less(pairs[static_cast<size_t>(largest)], pairs[i])) largest = static_cast<int64_t>(i);
  }
  const double max = largest < 0 ? NAN : std::fabs(pairs[static_cast<size_t>(largest)].d);
  return {Bits(std::sqrt(squares / n)),
          Bits(squares / n),
          Bits(squares),
          Bits(magnitudes / n),
          Bits(magnitudes),
          Bits(differences / n),
          Bits(differences),
          Bits(max),
          static_cast<uint64_t>(largest),
          nans,
          unequal};
}

/// Of all segments, [segment][metric].
inline std::vector<std::array<uint64_t, kMetrics>> Compare(const ArraySpec& spec,
                                                           const std::vector<int32_t>& axes, const Bytes& a,
                                                           const Bytes& b) {
  const std::vector<int64_t> segment = rmse::reference::SegmentOfElement(spec.shape, axes);
  std::vector<std::vector<Pair>> pairs;
  for (int64_t i = 0; i < spec.shape.elements(); ++i) {
    const auto number = static_cast<size_t>(segment[static_cast<size_t>(i)]);
    if (pairs.size() <= number) pairs.resize(number + 1);
    pairs[number].push_back(PairOf(spec.dtype, a, b, i));
  }
  std::vector<std::array<uint64_t, kMetrics>> all;
  for (const auto& one : pairs) all.push_back(Segment(one));
  return all;
}

/// The bytes of each result; `metrics`: as a request lists them, all where it lists none.
inline std::vector<Bytes> Results(const ArraySpec& spec, const std::vector<int32_t>& axes,
                                  std::vector<int32_t> metrics, const Bytes& a, const Bytes& b) {
  for (int32_t i = 0, none = metrics.empty(); none != 0 && i < kMetrics; ++i) metrics.push_back(i);
  const auto all = Compare(spec, axes, a, b);
  std::vector<Bytes> results;
  for (const int32_t metric : metrics) {
    Bytes& bytes = results.emplace_back(8 * all.size());
    for (size_t s = 0; s < all.size(); ++s)
      std::memcpy(&bytes[8 * s], &all[s][static_cast<size_t>(metric)], 8);
  }
  return results;
}

/// Elements that metrics treat in ways of their own, strewn into operands: NaNs, infinities and zeros of both
/// signs, subnormals, extremes of integers, and pairs that are equal.
inline void Strew(const ArraySpec& spec, uint64_t every, Bytes& a, Bytes& b, std::mt19937_64& random) {
  const auto bits = static_cast<int>(8 * SizeOf(spec.dtype));
  const auto size = static_cast<size_t>(SizeOf(spec.dtype));
  const uint64_t sign = uint64_t{1} << (bits - 1);
  std::vector<uint64_t> values = {0, 1, sign - 1, sign, sign + 1, sign | (sign - 1)};
  if (Info(spec.dtype).kind == DTypeKind::kFloat) {
    const int mantissa = bits == 64 ? 52 : bits == 32 ? 23 : spec.dtype == DType::kF16 ? 10 : 7;
    const uint64_t one = uint64_t{1} << mantissa, infinity = (sign - 1) / one * one;
    values = {
        0, sign, 1, sign | 1, one, infinity - 1, infinity, sign | infinity, infinity + 1, infinity | one / 2};
  }
  for (size_t at = 0; at < a.size(); at += size) {
    if (random() % every != 0) continue;
    Bytes& operand = random() % 2 == 0 ? a : b;
    std::memcpy(&operand[at], &values[random() % values.size()], size);
    if (random() % 3 == 0) std::memcpy(&b[at], &a[at], size);
  }
}

}  // namespace tilewire::compare::reference
