// Comparing on the CPU: choosing the instruction set, and the part after the tiles.
#include <algorithm>

#include "kernels/compare/host_isa.h"
#include "kernels/rmse/host_isa.h"

namespace tilewire::compare {
namespace {

#if TILEWIRE_WIDER_ISAS
constexpr const HostIsa* kIsas[] = {&kHostBase, &kHostV3, &kHostV4};
#else
constexpr const HostIsa* kIsas[] = {&kHostBase};
#endif

/// Segments whose values are finished together.
constexpr int64_t kTogether = 128;

/// What is kept of so many segments.
struct Totals {
  uint64_t words[7 * kTogether];
  Planes Of(Kept kept) { return Planes::In(words, kept, kTogether, 0); }
};

uint64_t Count(const uint64_t* counts, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += counts[i];
  return sum;
}

/// What is kept of one segment's tiles, from place `at` on, becomes that of the segment, at `to`.
void Combine(Kept kept, const Planes& tiles, int64_t at, int64_t count, const Planes& totals, int64_t to) {
  totals.squares[to] = rmse::CombineTiles(tiles.squares + at, count);
  if (kept == Kept::kSquares) return;
  totals.magnitudes[to] = rmse::CombineTiles(tiles.magnitudes + at, count);
  totals.differences[to] = rmse::CombineTiles(tiles.differences + at, count);
  if (kept == Kept::kSums) return;
  int64_t best = at;  // tiles ascend, so the first of equals has the smallest index
  for (int64_t i = at; i < at + count; ++i) {
    const bool first = tiles.index[best] == kNoIndex && tiles.index[i] != kNoIndex;
    if (tiles.key[i] > tiles.key[best] || first) best = i;
  }
  totals.key[to] = tiles.key[best];
  totals.index[to] = tiles.index[best];
  totals.nans[to] = Count(tiles.nans + at, count);
  totals.unequal[to] = Count(tiles.unequal + at, count);
}

HostEnding EndingOf(const rmse::Plan& plan) {
  const DType dtype = plan.operand().dtype;
  return {.elements = static_cast<double>(plan.layout().elements),
          .integers = dtype == DType::kI64 || dtype == DType::kU64};
}

}  // namespace

std::span<const HostIsa* const> SupportedHostIsas() {
  return {kIsas, rmse::SupportedHostIsas().size()};
}

void HostRange(const rmse::Plan& plan, const rmse::Range& range, Kept kept, int64_t item_begin,
               int64_t item_end, const void* a, const void* b, int64_t element, int64_t first,
               const Planes& planes) {
  if (item_begin >= item_end) return;
  static const HostTiles best = SupportedHostIsas().back()->tiles;
  best(HostWork{.a = a,
                .b = b,
                .planes = planes,
                .first = first,
                .element = element,
                .layout = &plan.layout(),
                .range = range,
                .item_begin = item_begin,
                .item_end = item_end,
                .dtype = plan.operand().dtype,
                .kept = kept});
}

void HostFinish(const rmse::Plan& plan, Kept kept, int64_t segment_begin, int64_t segment_end,
                const Planes& planes, const Values& values) {
  static const HostResults best = SupportedHostIsas().back()->results;
  const int64_t tiles = plan.layout().tiles;
  Totals totals;
  for (int64_t begin = segment_begin; begin < segment_end; begin += kTogether) {
    const int64_t count = std::min(kTogether, segment_end - begin);
    for (int64_t i = 0; i < count; ++i) Combine(kept, planes, (begin + i) * tiles, tiles, totals.Of(kept), i);
    best(EndingOf(plan), totals.Of(kept), count, values.From(begin));
  }
}

void HostSegments(const rmse::Plan& plan, const rmse::Range& range, Kept kept, int64_t item_begin,
                  int64_t item_end, const void* a, const void* b, int64_t segment, const Values& values) {
  static const HostResults best = SupportedHostIsas().back()->results;
  Totals totals;
  for (int64_t begin = item_begin; begin < item_end; begin += kTogether) {
    const int64_t end = std::min(begin + kTogether, item_end), first = range.segment_begin + begin;
    HostRange(plan, range, kept, begin, end, a, b, 0, first, totals.Of(kept));
    best(EndingOf(plan), totals.Of(kept), end - begin, values.From(segment + first));
  }
}

}  // namespace tilewire::compare
