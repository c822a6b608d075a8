// What mean and stddev turn into before the first element: numbers that both devices get alike, so that no
// element costs a division.
#pragma once

#include <cstdint>

namespace tilewire::gaussian {

inline constexpr int kF32Degree = 6;

/// For f32: everything in binary64. With u = (x·scale + shift)·inverse the result is 2^(-u² + exponent) times
/// the factor that the polynomial's coefficients carry.
struct F32Constants {
  double scale;    ///< a power of two that keeps extreme deviations in range; 1 unless stddev is extreme
  double shift;    ///< -mean·scale
  double inverse;  ///< sqrt(log2(e)/2) / (stddev·scale)
  double coefficient[kF32Degree +
                     1];  ///< of 2^f, ascending powers, times 1/(m·sqrt(2π)); stddev = m·2^-exponent
  int32_t exponent;
};

/// For f64: pairs high + low hold about 106 bits.
struct F64Constants {
  double before;  ///< powers of two that keep extreme deviations in range: on x and mean, and on their
  double after;   ///< difference. Both are 1 unless stddev is extreme
  double mean;    ///< mean·before
  double inverse_high, inverse_low;  ///< 1/(stddev·before·after·sqrt(2))
  double factor[2];                  ///< sqrt(2)^i / (m·sqrt(2π)), rounded; stddev = m·2^-exponent
  double defect[2];  ///< what rounding it did, as a summand of the exponent: -log(true / rounded)
  int32_t exponent;
  bool plain;  ///< before and after are 1, and no result comes near overflow
};

/// stddev must be finite and > 0, mean finite. Deterministic: IEEE operations only.
F32Constants MakeF32Constants(double mean, double stddev);
F64Constants MakeF64Constants(double mean, double stddev);

}  // namespace tilewire::gaussian
