// RMSE on the CPU: choosing the instruction set, and the part after the tiles.
#include <bit>
#include <cmath>

#include "kernels/rmse/host_isa.h"

namespace tilewire::rmse {
namespace {

constexpr uint64_t kCanonicalNan = 0x7ff8000000000000;

#ifdef __x86_64__
constexpr HostIsa kIsas[] = {{"base", HostTilesBase}, {"x86-64-v3", HostTilesV3}, {"x86-64-v4", HostTilesV4}};

// The features of a level that the tile code can use; the operating system's part of it is checked by the
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
constexpr HostIsa kIsas[] = {{"base", HostTilesBase}};
size_t SupportedCount() {
  return 1;
}
#endif

// Adjacent pairs, level by level; an odd last one is carried up unchanged.
double CombineTiles(double* sums, int64_t count) {
  while (count > 1) {
    const int64_t pairs = count / 2;
    for (int64_t i = 0; i < pairs; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    if (count % 2 != 0) sums[pairs] = sums[count - 1];
    count -= pairs;
  }
  return sums[0];
}

template <Output kOutput>
void Finish(const double* sums, int64_t count, double elements, double* __restrict result) {
  for (int64_t i = 0; i < count; ++i) {
    double value = sums[i];
    if constexpr (kOutput != Output::kSumSquares) value = value / elements;
    if constexpr (kOutput == Output::kRmse) value = std::sqrt(value);
    result[i] = value == value ? value : std::bit_cast<double>(kCanonicalNan);
  }
}

}  // namespace

std::span<const HostIsa> SupportedHostIsas() {
  static const size_t count = SupportedCount();
  return {kIsas, count};
}

void HostRange(const Plan& plan, const Range& range, int64_t item_begin, int64_t item_end, const void* a,
               const void* b, double* tile_sums) {
  if (item_begin >= item_end) return;
  static const HostTiles best = SupportedHostIsas().back().tiles;
  best(HostWork{.a = a,
                .b = b,
                .tile_sums = tile_sums,
                .layout = &plan.layout(),
                .range = range,
                .item_begin = item_begin,
                .item_end = item_end,
                .dtype = plan.operand().dtype});
}

void HostFinish(const Plan& plan, int64_t segment_begin, int64_t segment_end, double* tile_sums,
                double* result) {
  const Layout& layout = plan.layout();
  const int64_t count = segment_end - segment_begin;
  double* sums = tile_sums + segment_begin * layout.tiles;
  for (int64_t i = 0; i < count && layout.tiles > 1; ++i) {
    // Segment i's sum moves to place i, which belongs to a segment that is already combined (or is its own).
    sums[i] = CombineTiles(sums + i * layout.tiles, layout.tiles);
  }
  const auto elements = static_cast<double>(layout.elements);
  result += segment_begin;
  switch (plan.output()) {
    case Output::kRmse:
      return Finish<Output::kRmse>(sums, count, elements, result);
    case Output::kMse:
      return Finish<Output::kMse>(sums, count, elements, result);
    case Output::kSumSquares:
      return Finish<Output::kSumSquares>(sums, count, elements, result);
  }
}

}  // namespace tilewire::rmse
