// What the kernels of columns expect: RingKernel and StreamKernel.
#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/rmse/choice.h"

namespace tilewire::rmse::cuda {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 30;  // whose indices are 32-bit ones
constexpr int kUsualShared = 48 << 10;             // bytes that a block has without asking

// What stands here was measured on one H200, 2026-11-22, tilewire_kernel_bench '^choices/', hot.
//
// Joined rows: f32, f64, u8, f16 × 3 to 50 94 · 94 · 89 · 93%; from inside words f32 × 3 and × 50 85 and 79%,
// f16 × 3 and × 33 84 and 78%, u8 × 3 and × 64 59 and 78%.
constexpr double kJoined = .93, kJoinedInside = .85;
// Whole words over two axes: f32 64⁴ 82%, in longer arrays 91; f16 64⁴ 62%, in longer ones 75.
constexpr double kTwoAxes = .91, kTwoAxesHalf = .75;
// Over one axis: f32 × 64 93%, × 1000 86; f64 × 16 and × 64 95%, × 1000 91; f16 × 64 85%, × 1000 74; u8 × 64
// 91%.
constexpr double k4 = .93, kWide4 = .86, k8 = .955, kWide8 = .91, kHalf = .8, k1 = .92, kU16 = .85;
constexpr int64_t kWideFrom = 200;
// Six pieces in flight for twelve: f32 × 64 91% for 93, 64⁴ 79 for 82.
constexpr double kFewInFlight = .975;
// Rows of so few bytes are StreamKernel's (f16 × 16 94%, and 87 by RingKernel).
constexpr int64_t kNarrowBytes = 128;
constexpr double kNarrow = .9;
// Pieces of 8 and 4 bytes: f64 × 33 81%, f32 × 64 68 and 65%, × 99 65%, × 1000 74 and 73%.
constexpr double kEightOf8 = .81, kEightOf4 = .75, kFour = .75;
// A block reads so many bytes of a row at once: over two axes 128 and more gave 84%, 64 55%.
constexpr int64_t kGoodRow = 128;
constexpr double kShortRow = .5;  // of nearly none
// Rows of a segment that keep the ring full: f32 1000 and 2048 rows 4.9 and 7.0 µs, other kernels 9.6 and 17;
// middle axes of 100 rows 25 to 45%, of StagedKernel 74.
constexpr int64_t kManyRows = 4096, kSomeRows = 1024;
constexpr double kSome = .9, kFew = .5, kFewJoined = .8;

/// Places of a phase's sums in shared memory, `columns` of each lane: apart where lanes are few.
int PhasePitch(int64_t lanes, int64_t columns) {
  return static_cast<int>(lanes * columns + (lanes < 16 ? lanes : 0));
}

/// The part of the device's multiprocessors that are at work.
double Filled(const Task& task, int64_t blocks) {
  return std::min(1., static_cast<double>(blocks) / static_cast<double>(task.device.processors));
}

/// Likewise where a multiprocessor takes one block at a time, and the last ones may leave most of them idle:
/// f32 50 × 60 × 70 × 80 over two axes took 39 µs by 120 blocks, 49 by 180.
double FilledOneByOne(const Task& task, const Choice& choice) {
  const int64_t processors = task.device.processors;
  if (choice.shared * 2 <= task.device.shared || choice.blocks <= processors)
    return Filled(task, choice.blocks);
  return static_cast<double>(choice.blocks) /
         static_cast<double>(CeilDiv(choice.blocks, processors) * processors);
}

Columns ColumnsOf(const Task& task) {
  Columns cut{};
  cut.width = task.innermost();
  cut.tiles = task.tiles();
  cut.outer_begin = task.range.segment_begin / cut.width;
  cut.stride = task.layout.strides[task.layout.rank - 2] * task.size();
  return cut;
}

/// Outer batch indices that the range has segments of.
int64_t OuterOf(const Task& task) {
  const int64_t width = task.innermost();
  return (task.range.segment_end - 1) / width + 1 - task.range.segment_begin / width;
}

/// Rows that lie side by side, as many as are whole words taken as one.
void AddJoined(const Task& task, int index, const RingShape& shape, Candidates* candidates) {
  const Layout& layout = task.layout;
  const int64_t width = task.innermost(), row = width * task.size();
  const int64_t begin = task.range.segment_begin, outer = task.segments() / width;
  if (task.reduced_axes() != 1 || layout.strides[layout.rank - 2] != width || !task.alike() ||
      row > shape.threads * 16 || (row % 16 == 0 && task.aligned(16)) || begin % width != 0 ||
      task.segments() % width != 0)
    return;
  const bool inside = !task.aligned(16) || (layout.elements * row % 16 != 0 && (outer > 1 || begin > 0));
  if (inside != (shape.of == RingOf::kJoinedInside)) return;
  Choice choice = MakeChoice(task, Kernel::kRing, index, inside ? kJoinedInside : kJoined);
  choice.ring = {};
  Ring& c = choice.ring;
  c.row_bytes = static_cast<int>(row);
  c.group = 16 / static_cast<int>(std::gcd(row, int64_t{16}));
  Columns& cut = c.cut;
  cut = ColumnsOf(task);
  cut.lanes = c.row_bytes * c.group / 16;
  const int chains = RingChains(task.size(), IsExact(task.kind), 16);
  cut.phases = static_cast<int>(kAccumulators) / c.group / chains;
  if (IsExact(task.kind)) {  // any number of phases has the same sum
    constexpr int kUsualThreads = 512;
    const int64_t rows = std::min<int64_t>(kTileElements, layout.elements);
    cut.phases = 1;
    while (cut.lanes * cut.phases * 2 <= kUsualThreads && c.group * cut.phases * 2 * chains <= rows)
      cut.phases *= 2;
  }
  const int columns = 16 / task.size();
  cut.pitch = PhasePitch(cut.lanes, columns);
  choice.threads = static_cast<int>(CeilDiv(int64_t{cut.lanes} * cut.phases, 32) * 32);
  choice.shared = std::max(2 * shape.depth * 16 * choice.threads, cut.phases * cut.pitch * 8);
  choice.blocks = outer * cut.tiles;
  if (choice.threads > shape.threads || choice.shared > task.device.shared) return;
  choice.share *= FilledOneByOne(task, choice);
  if (layout.elements < kSomeRows)
    choice.share *= kFewJoined * static_cast<double>(layout.elements) / static_cast<double>(kSomeRows);
  candidates->Add(choice);
}

double RingShare(const Task& task, const RingShape& shape, int axes, int64_t width) {
  const int size = task.size();
  if (shape.piece == 8) return size == 8 ? kEightOf8 : kEightOf4;
  if (shape.piece == 4) return kFour;
  const double depth = size == 4 && shape.depth == 6 ? kFewInFlight : 1;
  if (axes > 1) return depth * (IsHalf(task.kind) ? kTwoAxesHalf : kTwoAxes);
  const bool wide = width >= kWideFrom;
  const double share = depth * (size == 8           ? wide ? kWide8 : k8
                                : size == 4         ? wide ? kWide4 : k4
                                : IsHalf(task.kind) ? kHalf
                                : size == 2         ? kU16
                                                    : k1);
  const int64_t narrow = size == 1 ? kNarrowBytes / 2 : kNarrowBytes;
  return width * size < narrow ? share * kNarrow : share;
}

/// A thread for a piece of a row.
void AddRingOf(const Task& task, int index, const RingShape& shape, Candidates* candidates) {
  const Layout& layout = task.layout;
  const int64_t size = task.size(), processors = task.device.processors;
  const int64_t width = task.innermost(), all = layout.elements;
  const int axes = task.reduced_axes();
  const int64_t inner = axes > 1 ? layout.dims[layout.rank - 2] : kMostExtent;
  if (axes > 2 || !task.aligned(shape.piece) || width * size % shape.piece != 0 || inner > kMostExtent ||
      (axes == 1 && all > kMostExtent))
    return;
  const int64_t chains = RingChains(task.size(), IsExact(task.kind), shape.piece);
  const int64_t rows = std::min<int64_t>(kTileElements, all);
  const int64_t outer = OuterOf(task);
  Choice choice = MakeChoice(task, Kernel::kRing, index, RingShare(task, shape, axes, width));
  choice.ring = {};
  Ring& c = choice.ring;
  Columns& cut = c.cut;
  cut = ColumnsOf(task);
  cut.period = static_cast<int>(
      std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)), chains, kAccumulators));
  cut.phases = cut.period / static_cast<int>(chains);
  c.row_pieces = width * size / shape.piece;
  for (int64_t lanes = std::max(shape.threads / cut.phases, 1);; lanes = CeilDiv(lanes, 2)) {
    cut.lanes = static_cast<int>(CeilDiv(c.row_pieces, CeilDiv(c.row_pieces, lanes)));
    cut.windows = CeilDiv(c.row_pieces, cut.lanes);
    // Long pieces of rows are read fastest, but all of the device must be at work.
    if (lanes * cut.phases <= 128 || outer * cut.tiles * cut.windows * 2 > processors) break;
  }
  c.outer_stride = axes > 1 ? layout.strides[layout.rank - 4] * size : 0;
  c.inner = static_cast<uint32_t>(inner);
  c.digit = static_cast<uint32_t>(cut.phases % inner);
  c.step = c.digit * cut.stride + cut.phases / inner * c.outer_stride;
  c.carry = c.outer_stride - inner * cut.stride;
  cut.pitch = PhasePitch(cut.lanes, shape.piece / size);
  choice.threads = static_cast<int>(CeilDiv(int64_t{cut.lanes} * cut.phases, 32) * 32);
  choice.shared = std::max(2 * shape.depth * shape.piece * choice.threads, cut.phases * cut.pitch * 8);
  choice.blocks = outer * cut.tiles * cut.windows;
  if (choice.threads > shape.threads || choice.threads < 64 || choice.shared > task.device.shared) return;
  choice.share *= FilledOneByOne(task, choice);
  if (cut.windows > 1)
    choice.share *=
        std::min(1., kShortRow + (1 - kShortRow) * static_cast<double>(cut.lanes * shape.piece) / kGoodRow);
  if (all < kSomeRows) {
    const double part = static_cast<double>(all) / static_cast<double>(kSomeRows);
    choice.share *= kFew + (kSome - kFew) * part;
  } else if (axes == 1 && all < kManyRows) {
    choice.share *= kSome;
  }
  candidates->Add(choice);
}

void AddStreamOf(const Task& task, int index, const StreamShape& shape, Candidates* candidates) {
  const int64_t rows = std::min<int64_t>(kTileElements, task.layout.elements), width = task.innermost();
  const int group = shape.batch / shape.rounds;
  const double share = width <= 16 || (task.size() == 2 && width < 64) ? shape.narrow_share : shape.share;
  Choice choice = MakeChoice(task, Kernel::kStream, index, share);
  choice.columns = ColumnsOf(task);
  Columns& c = choice.columns;
  const int64_t outer = OuterOf(task);
  const int64_t pieces =
      shape.vector ? CeilDiv(width, shape.columns) : CeilDiv(width, 32 * shape.columns) * 32;
  const int64_t period =
      std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)), group, kAccumulators);
  // Few phases leave most of the tree to registers; more of them fill the device.
  const int64_t wanted = task.device.processors * 4096, most_chains = int64_t{group} << shape.levels;
  const int64_t most_phases = std::min<int64_t>(period / group, shape.vector ? shape.threads / 4 : 8);
  int64_t phases = 1;
  while (phases < most_phases && (period / phases > most_chains || phases * pieces < 256 ||
                                  phases * pieces * outer * c.tiles < wanted))
    phases *= 2;
  int64_t lanes = std::max<int64_t>(shape.threads / phases, shape.vector ? 8 : 32);
  if (shape.vector) lanes = CeilDiv(pieces, CeilDiv(pieces, lanes));
  c.pitch = PhasePitch(lanes, shape.columns);
  const int64_t shared = phases == 1 ? 0 : phases * c.pitch * 8;
  if (period / phases > most_chains || lanes * phases > shape.threads || lanes * phases < 64 ||
      shared > kUsualShared)
    return;
  c.phases = static_cast<int>(phases);
  c.period = static_cast<int>(period);
  c.groups = static_cast<int>(period / phases / group);
  c.lanes = static_cast<int>(lanes);
  c.windows = CeilDiv(pieces, lanes);
  choice.threads = static_cast<int>(CeilDiv(lanes * phases, 32) * 32);
  choice.shared = static_cast<int>(shared);
  choice.blocks = outer * c.tiles * c.windows;
  choice.share *= Filled(task, choice.blocks);
  if (!shape.vector) {
    // The last window of a row moves back to be full, and reads again what others read.
    choice.share *= static_cast<double>(width) / static_cast<double>(pieces * shape.columns);
    // Its eight phases do not fill the device where the array is small: 2048² over axis 0 took longer.
    if (shape.least_rows > kSomeRows)
      choice.share *= std::min(1., static_cast<double>(outer * c.tiles * width * 4) /
                                       static_cast<double>(task.device.processors * 448));
  }
  candidates->Add(choice);
}

}  // namespace

void AddRing(const Task& task, Candidates* candidates) {
  if (!task.columns()) return;
  int index = -1;
  for (const RingShape& shape : RingShapes(task.kind)) {
    ++index;
    if (shape.of == RingOf::kColumns) {
      AddRingOf(task, index, shape, candidates);
    } else {
      AddJoined(task, index, shape, candidates);
    }
  }
}

void AddStream(const Task& task, Candidates* candidates) {
  if (!task.columns() || task.reduced_axes() != 1) return;
  const int64_t width = task.innermost(), rows = task.layout.elements;
  int index = -1;
  for (const StreamShape& shape : StreamShapes(task.size())) {
    ++index;
    if (rows < shape.least_rows || rows > shape.most_rows) continue;
    const bool fits = shape.vector ? task.aligned(shape.columns * task.size()) && width % shape.columns == 0
                                   : width >= 32 * shape.columns;
    if (fits) AddStreamOf(task, index, shape, candidates);
  }
}

}  // namespace tilewire::rmse::cuda
