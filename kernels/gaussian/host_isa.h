// The host's element code exists once per instruction set; this is the door between them and the dispatcher.
#pragma once

#include <span>

#include "kernels/gaussian/constants.h"

namespace tilewire::gaussian {

/// The code of one instruction set. `in` and `out` hold `count` elements; they are the same or do not
/// overlap.
struct HostIsa {
  const char* name;  ///< "base", "x86-64-v3", "x86-64-v4"
  void (*f32)(const F32Constants& constants, const float* in, float* out, int64_t count);
  void (*f64)(const F64Constants& constants, const double* in, double* out, int64_t count);
};

extern const HostIsa kHostBase;  ///< whatever the compiler's default target is
extern const HostIsa kHostV3;    ///< x86-64-v3: AVX2, FMA
extern const HostIsa kHostV4;    ///< x86-64-v4: AVX-512 F, BW, CD, DQ, VL

/// Those that this processor runs, best last. All give the same bits; tests run each of them.
std::span<const HostIsa* const> SupportedHostIsas();

}  // namespace tilewire::gaussian
