// What mean and stddev turn into before the first element: numbers that both devices get alike, so that no
// element costs a division. Below, stddev = m·2^e with 1 <= m < 2.
#pragma once

#include <cstdint>

namespace tilewire::gaussian {

inline constexpr int kF32Degree = 6;

/// For f32: everything in binary64. u = |(x·scale + shift)·inverse| is the root of what the result's exponent
/// to base 2 loses.
struct F32Constants {
  double scale;    ///< a power of two that keeps extreme deviations in range; 1 unless stddev is extreme
  double shift;    ///< -mean·scale
  double inverse;  ///< sqrt(log2(e)/2) / (stddev·scale)
  double lowest, highest;  ///< results are infinite for u below and 0 for u beyond; low 32 bits are 0
  double rounder;  ///< 1.5·2^52 - e: adding it rounds to an integer, and its low bits are an exponent
  double coefficient[kF32Degree + 1];  ///< of 2^f, ascending powers, times 1/(m·sqrt(2π))
};

/// Two numbers, one for even and one for odd steps, as bits: the even one, and what differs.
struct Either {
  int64_t even, flip;
};

/// For f64: pairs high + low hold about 106 bits. u = (x - mean) / (stddev·sqrt(2)).
struct F64Constants {
  double before;  ///< powers of two that keep extreme deviations in range: on x and mean, and on their
  double after;   ///< difference. Both are 1 unless stddev is extreme
  double mean;    ///< mean·before
  double inverse_high, inverse_low;  ///< 1/(stddev·before·after·sqrt(2))
  double highest;                    ///< results are 0 for |u| from here on; low 32 bits are 0
  double rounder;                    ///< 1.5·2^52 - 2·e, and 2·kF64Raise more if plain
  Either factor;                     ///< 1/(m·sqrt(2π)) and sqrt(2) times that, rounded
  Either defect;  ///< what rounding did to it, as a summand of the exponent: -log(true / rounded)
  bool plain;     ///< before and after are 1, and no result comes near overflow
};

/// Results may be subnormal: their exponents are this much higher until the last operation.
inline constexpr int kF64Raise = 100;

/// stddev must be finite and > 0, mean finite. Deterministic: IEEE operations only.
F32Constants MakeF32Constants(double mean, double stddev);
F64Constants MakeF64Constants(double mean, double stddev);

}  // namespace tilewire::gaussian
