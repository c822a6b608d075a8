// RMSE on the CPU: choosing the instruction set, and the part after the tiles.
#include <algorithm>

#include "kernels/rmse/host_isa.h"

#if TILEWIRE_WIDER_ISAS
#include <cpuid.h>
#endif

namespace tilewire::rmse {
namespace {

#if TILEWIRE_WIDER_ISAS
constexpr HostIsa kIsas[] = {{"base", HostTilesBase, HostFinishBase},
                             {"x86-64-v3", HostTilesV3, HostFinishV3},
                             {"x86-64-v4", HostTilesV4, HostFinishV4}};

// Clang's builtin knows no "f16c" before version 18.
bool HasF16c() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// The features of a level that the tile code can use; the operating system's part of it is checked by the
// builtin.
size_t SupportedCount() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c() &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (!v3) return 1;
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? 3 : 2;
}
#else
constexpr HostIsa kIsas[] = {{"base", HostTilesBase, HostFinishBase}};
size_t SupportedCount() {
  return 1;
}
#endif

constexpr int64_t kGrainBytes = int64_t{256} << 10;  // of both operands: some 20 µs
constexpr int64_t kLineBytes = 64;
constexpr int64_t kWideColumns = 1024;  // from here on a row of columns is as good as a longer one

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::span<const HostIsa> SupportedHostIsas() {
  static const size_t count = SupportedCount();
  return {kIsas, count};
}

double CombineTiles(double* sums, int64_t count) {
  while (count > 1) {
    const int64_t pairs = count / 2;
    for (int64_t i = 0; i < pairs; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    if (count % 2 != 0) sums[pairs] = sums[count - 1];
    count -= pairs;
  }
  return sums[0];
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

int64_t HostGrain(const Plan& plan, const Range& range, int threads) {
  const Layout& layout = plan.layout();
  const int64_t size = SizeOf(plan.operand().dtype);
  const int64_t tile_bytes = 2 * std::min(layout.elements, kTileElements) * size;
  const int64_t plain = std::max<int64_t>(1, kGrainBytes / tile_bytes);
  if (layout.elements == 1 || layout.reduced[layout.rank - 1]) return plain;
  const int64_t width = layout.dims[layout.rank - 1];
  const int64_t share = std::max(plain, CeilDiv(range.items(), int64_t{4} * threads));
  if (width <= share) return share / width * width;  // whole rows
  const int64_t least = std::min(width, 4 * kLineBytes / size);
  return CeilDiv(width, CeilDiv(width, std::clamp(share, least, std::max(least, kWideColumns))));
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
  static const HostResults best = SupportedHostIsas().back().results;
  best(plan.output(), sums, count, static_cast<double>(layout.elements), result + segment_begin);
}

}  // namespace tilewire::rmse
