// Gaussian pdf on the CPU: choosing the instruction set, and cutting a range into items.
#include <algorithm>

#include "kernels/gaussian/gaussian.h"
#include "kernels/gaussian/host_isa.h"

namespace tilewire::gaussian {
namespace {

constexpr int64_t kItemElements = 4096;

#if TILEWIRE_WIDER_ISAS
const HostIsa* const kIsas[] = {&kHostBase, &kHostV3, &kHostV4};

// The features of a level that the element code can use; the operating system's part of it is checked by the
// builtin.
size_t SupportedCount() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (!v3) return 1;
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? 3 : 2;
}
#else
const HostIsa* const kIsas[] = {&kHostBase};
size_t SupportedCount() {
  return 1;
}
#endif

}  // namespace

std::span<const HostIsa* const> SupportedHostIsas() {
  static const size_t count = SupportedCount();
  return {kIsas, count};
}

int64_t HostItems(const Plan&, const Range& range) {
  return (range.end - range.begin + kItemElements - 1) / kItemElements;
}

void HostRange(const Plan& plan, const Range& range, int64_t item_begin, int64_t item_end, const void* in,
               void* out) {
  const int64_t begin = range.begin + item_begin * kItemElements;
  const int64_t end = std::min(range.begin + item_end * kItemElements, range.end);
  if (begin >= end) return;
  static const HostIsa& best = *SupportedHostIsas().back();
  if (plan.input().dtype == DType::kF32) {
    best.f32(MakeF32Constants(plan.mean(), plan.stddev()), static_cast<const float*>(in) + begin,
             static_cast<float*>(out) + begin, end - begin);
  } else {
    best.f64(MakeF64Constants(plan.mean(), plan.stddev()), static_cast<const double*>(in) + begin,
             static_cast<double*>(out) + begin, end - begin);
  }
}

}  // namespace tilewire::gaussian
