// What the tests hold gaussian.1 against: correctly rounded points from a table, and the pdf in pairs of
// doubles, about 90 bits, by another way than the kernels go (a Taylor series and repeated squaring).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/gaussian/gaussian.h"
#include "kernels/gaussian/host_isa.h"

namespace tilewire::gaussian::reference {

template <typename T>
inline constexpr DType kDTypeOf = sizeof(T) == 4 ? DType::kF32 : DType::kF64;

template <typename T>
uint64_t ToBits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T FromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

struct Distribution {
  double mean, stddev;
  std::string ToString() const {
    return "mean " + std::to_string(mean) + " stddev " + std::to_string(stddev);
  }
};

inline Plan MakePlan(DType dtype, int64_t elements, Distribution d) {
  return *Plan::Make(*MakeSpec(dtype, std::vector<int64_t>{elements}), d.mean, d.stddev);
}

/// All of `x` on one instruction set.
template <typename T>
std::vector<T> Run(const HostIsa& isa, Distribution d, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  const auto count = static_cast<int64_t>(x.size());
  if constexpr (sizeof(T) == 4)
    isa.f32(MakeF32Constants(d.mean, d.stddev), x.data(), y.data(), count);
  else
    isa.f64(MakeF64Constants(d.mean, d.stddev), x.data(), y.data(), count);
  return y;
}

// --- pairs of doubles: the unevaluated sum high + low

struct Pair {
  double high = 0, low = 0;
};

inline Pair Sum(double a, double b) {
  const double sum = a + b, back = sum - a;
  return {sum, (a - (sum - back)) + (b - back)};
}
inline Pair Plus(Pair a, Pair b) {
  const Pair sum = Sum(a.high, b.high);
  return Sum(sum.high, sum.low + (a.low + b.low));
}
inline Pair Times(Pair a, Pair b) {
  const double high = a.high * b.high;
  return Sum(high, std::fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high));
}
inline Pair Over(Pair a, double b) {
  const double high = a.high / b;
  return Sum(high, (std::fma(-high, b, a.high) + a.low) / b);
}

/// (high + low)·2^exponent, 0.1 < high < 2.
struct Value {
  Pair pair;
  int exponent = 0;
};

/// exp(r) for |r| < 0.5.
inline Pair Exp(Pair r) {
  constexpr int kHalvings = 8, kTerms = 14;
  r.high = std::ldexp(r.high, -kHalvings);
  r.low = std::ldexp(r.low, -kHalvings);
  Pair sum{1, 0};
  for (int n = kTerms; n >= 1; --n) sum = Plus({1, 0}, Over(Times(r, sum), n));
  for (int i = 0; i < kHalvings; ++i) sum = Times(sum, sum);
  return sum;
}

/// The pdf, relative error below 2^-85; exactly 0 where |x - mean| > 64·stddev. x finite.
inline Value Pdf(double x, Distribution d) {
  constexpr Pair kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  constexpr Pair kInverseSqrtTwoPi{0x1.9884533d43651p-2, -0x1.cbc0d30ebfd15p-56};
  int exponent;
  const double mantissa = 2 * std::frexp(d.stddev, &exponent);  // stddev = mantissa·2^(exponent - 1)
  // Halving twice keeps the difference finite; where it matters, it loses nothing.
  const int halve = exponent > 1000 ? -2 : 0;
  Pair t = Sum(std::ldexp(x, halve), -std::ldexp(d.mean, halve));
  if (std::fabs(t.high) > 65 * std::ldexp(d.stddev, halve)) return {};
  t.high = std::ldexp(t.high, 1 - exponent - halve);
  t.low = std::ldexp(t.low, 1 - exponent - halve);
  t = Over(t, mantissa);
  if (std::fabs(t.high) > 64) return {};
  Pair square = Times(t, t);
  square = {-square.high / 2, -square.low / 2};
  const double steps = std::nearbyint(square.high / kLn2.high);
  const Pair power = Exp(Plus(square, Times({-steps, 0}, kLn2)));
  return {Over(Times(power, kInverseSqrtTwoPi), mantissa), static_cast<int>(steps) + 1 - exponent};
}

/// |y - exact| in units in the last place of T at the exact value. An infinite y counts as the next number
/// after the largest finite one.
template <typename T>
double UlpError(T y, const Value& exact) {
  using Limits = std::numeric_limits<T>;
  if (exact.pair.high == 0) return static_cast<double>(y / Limits::denorm_min());
  const int unit =
      std::max(std::ilogb(exact.pair.high) + exact.exponent, Limits::min_exponent - 1) - (Limits::digits - 1);
  // In units: both are at most 2^54, so the difference loses nothing that matters.
  const int move = exact.exponent - unit;
  const double high = std::ldexp(exact.pair.high, move), low = std::ldexp(exact.pair.low, move);
  if (std::isinf(y)) {
    const double end = std::ldexp(1.0, std::min(Limits::max_exponent - unit, 1000));
    return std::max(0.0, (end - high) - low);
  }
  return std::fabs((std::ldexp(static_cast<double>(y), -unit) - high) - low);
}

// --- the table of correctly rounded points

struct Point {
  uint64_t x, y;  ///< bits
};

struct PointBlock {
  DType dtype = DType::kF32;
  Distribution distribution;
  std::vector<Point> points;
};

inline std::vector<PointBlock> CorrectlyRoundedPoints() {
  static constexpr uint64_t kWords[] = {
#include "tests/unit/golden/gaussian_points.table"
  };
  std::vector<PointBlock> blocks;
  for (size_t i = 0; i + 4 <= std::size(kWords);) {
    PointBlock block{static_cast<DType>(kWords[i]),
                     {std::bit_cast<double>(kWords[i + 1]), std::bit_cast<double>(kWords[i + 2])},
                     {}};
    const size_t count = kWords[i + 3];
    i += 4;
    for (size_t k = 0; k < count; ++k, i += 2) block.points.push_back({kWords[i], kWords[i + 1]});
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// x around the distribution, out to where the pdf vanishes, and one in eight with any bits at all.
template <typename T>
std::vector<T> RandomInput(Distribution d, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> wide(-40, 40), near(-5, 5);
  std::vector<T> x;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    const double t = bits % 2 == 0 ? wide(random) : near(random);
    x.push_back(bits % 8 == 0 ? FromBits<T>(random()) : static_cast<T>(d.mean + d.stddev * t));
  }
  return x;
}

}  // namespace tilewire::gaussian::reference
