// What WalkKernel expects. It takes every task.
#include <algorithm>
#include <bit>

#include "kernels/rmse/choice.h"

namespace tilewire::rmse::cuda {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 30;  // whose indices are 32-bit ones

// One H200, 2026-11-22, tilewire_kernel_bench '^choices/', hot. Element by element f32 71 to 94% (four bytes
// take as long as fewer); in words f16 64⁴ 65%, by elements 40. The others were not measured.
constexpr double kElements = .75, kWords = .65, kApart = .4, kAnyAxes = .05;
// Segments of which half as much is expected: operands at different places of words, f32 × 3 11.6 ms for 512
// MiB, × 16 2.2, × 100 .8, × 1000 .15.
constexpr int64_t kElementsForHalf = 500;
// Columns, 32 elements of a row at a time: f64 × 64 97%, × 1000 93; f32 × 64 92%, × 99 (in four windows of
// 32) 72, × 1000 86; f16 × 64 and × 1000 52%; u8 27%. Middle axes of 100 rows: f32 25%.
constexpr double kColumns8 = .99, kColumns4 = .92, kColumns2 = .52, kColumns1 = .28;
constexpr double kRowsForHalf = 180;  // of which half as much is expected
// Over two axes f32 64⁴ 65%, 50 × 60 × 70 × 80 55.
constexpr double kColumnsOfTwoAxes = .75;
constexpr int64_t kShort =
    1024;  // elements below which most threads of a block for one segment would be idle

/// Describes the layout in units of `unit` elements. False where it has more than three reduced axes, or very
/// long ones; what the batch axes say is then set all the same.
bool WalkOf(const Task& task, int64_t unit, Walk* c) {
  const Layout& layout = task.layout;
  const int64_t size = task.size();
  int reduced = 0, batch = -1;
  bool good = true;
  int64_t extents[3] = {kMostExtent, kMostExtent, kMostExtent};
  for (int axis = layout.rank - 1; axis >= 0; --axis) {
    if (!layout.reduced[axis]) {
      batch = std::max(batch, axis);
      continue;
    }
    if (reduced == 3) {
      good = false;
      continue;
    }
    extents[reduced] = layout.dims[axis];
    c->strides[reduced++] = layout.strides[axis] * size;
  }
  if (unit > 1) {  // the innermost reduced axis is the innermost of all
    extents[0] = CeilDiv(extents[0], unit);
    c->strides[0] *= unit;
  }
  // The outermost axis does not end within a segment: its indices are taken as two digits. The product wraps
  // where steps are so long that no array has an index for the second one.
  const auto times = [](int64_t extent, int64_t stride) {
    return static_cast<int64_t>(static_cast<uint64_t>(extent) * static_cast<uint64_t>(stride));
  };
  if (reduced > 0) extents[reduced - 1] = kMostExtent;
  if (reduced == 1 || reduced == 2) c->strides[reduced] = times(kMostExtent, c->strides[reduced - 1]);
  good = good && extents[0] <= kMostExtent && extents[1] <= kMostExtent;
  for (int i = 0; i < 2; ++i) {
    c->extents[i] = static_cast<uint32_t>(std::min(extents[i], kMostExtent));
    if (i < reduced) c->carries[i] = c->strides[i + 1] - times(extents[i], c->strides[i]);
  }
  c->tiles = task.tiles();
  c->neighbours = c->end = 1;
  if (batch < 0) return good;
  c->neighbours = c->end = layout.dims[batch];
  c->neighbour_bytes = layout.strides[batch] * size;
  c->outer_begin = task.range.segment_begin / c->neighbours;
  // A range holds all neighbours, but where their axis is the outermost one.
  if (task.segments() < c->neighbours) {
    c->begin = task.range.segment_begin - c->outer_begin * c->neighbours;
    c->end = c->begin + task.segments();
  }
  return good;
}

void Add(const Task& task, WalkUnit unit, int segments, double share, Walk c, Candidates* candidates) {
  int shape = 0;
  while (kWalkShapes[static_cast<size_t>(shape)].unit != unit ||
         kWalkShapes[static_cast<size_t>(shape)].segments != segments)
    ++shape;
  const auto step = static_cast<uint32_t>(kBlockThreads / segments);
  const uint32_t row = step / c.extents[0];
  c.digits[0] = step % c.extents[0];
  c.digits[1] = row % c.extents[1];
  c.step = c.digits[0] * c.strides[0] + c.digits[1] * c.strides[1] + row / c.extents[1] * c.strides[2];
  c.groups = CeilDiv(c.end - c.begin, segments);
  // Lanes go along a run, then to the next segment's; where segments are columns, to
  // that at once.
  const uint32_t chunk = task.columns() || task.layout.elements == 1 ? 1 : std::bit_ceil(c.extents[0]);
  c.chunk_log2 = std::countr_zero(std::min(chunk, step));
  Choice choice = MakeChoice(task, Kernel::kWalk, shape, share);
  choice.walk = c;
  const int64_t outer = (task.range.segment_end - 1) / c.neighbours + 1 - c.outer_begin;
  choice.blocks = outer * c.tiles * c.groups;
  choice.share *=
      std::min(1., static_cast<double>(choice.blocks) / static_cast<double>(task.device.processors));
  candidates->Add(choice);
}

}  // namespace

void AddWalk(const Task& task, Candidates* candidates) {
  const int64_t size = task.size(), word = 16 / size;
  Walk c{};
  if (!WalkOf(task, 1, &c)) {
    Add(task, WalkUnit::kAnyAxes, kWarps, kAnyAxes, c, candidates);
    return;
  }
  const double bytes = static_cast<double>(std::min<int64_t>(size, 4)) / 4;
  const int64_t run = c.extents[0], count = c.end - c.begin, elements = task.layout.elements;
  const bool few = elements <= 256;
  if (task.columns() || elements == 1) {
    const int segments = count < 16 ? 8 : 32;
    const double rows = static_cast<double>(std::min<int64_t>(elements, kTileElements));
    double share = size == 8 ? kColumns8 : size == 4 ? kColumns4 : size == 2 ? kColumns2 : kColumns1;
    share *= rows / (rows + kRowsForHalf) * static_cast<double>(count) /
             static_cast<double>(CeilDiv(count, segments) * segments);
    if (task.reduced_axes() > 1) share *= kColumnsOfTwoAxes;
    Add(task, WalkUnit::kElement, segments, share, c, candidates);
    return;
  }
  const bool filled = CeilDiv(count, 8) * 32 <= count * 5;  // at most a fifth of the threads is idle
  const bool eight = run < 16 && elements >= kShort
                         ? count >= 4
                         : few || (filled && (elements < kShort || size <= 2 || run * size < 256));
  const int segments = elements <= 32 && count >= 16 ? 32 : eight ? 8 : count >= 2 ? 2 : 1;
  const double part = static_cast<double>(elements) / static_cast<double>(elements + kElementsForHalf);
  Add(task, WalkUnit::kElement, segments, kElements * bytes * part, c, candidates);
  if (size > 2) return;
  Walk words{};
  if (task.contiguous()) {
    WalkOf(task, word, &words);
    Add(task, WalkUnit::kApart, kWarps, kApart, words, candidates);
  } else if (task.aligned(16) && task.innermost() % word == 0) {
    WalkOf(task, word, &words);
    Add(task, WalkUnit::kWord, kWarps, kWords, words, candidates);
  }
}

}  // namespace tilewire::rmse::cuda
