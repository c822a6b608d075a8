// What the kernels of contiguous segments expect: TilesKernel, GroupKernel, and StagedKernel, which also
// takes middle axes.
#include <algorithm>
#include <bit>

#include "kernels/rmse/choice.h"

namespace tilewire::rmse::cuda {
namespace {

// One H200, 2026-11-21, tilewire_kernel_bench '^layouts/segments': lanes of GroupKernel that are all at work
// (f32 × 16, f16 × 16) give 94 to 95% of the read rate. As much of it is lost as makes staged segments, which
// leave no lane idle (f32 × 33 and × 50: 87 and 91%), the faster ones where three lanes in eight are idle,
// and for 16-bit elements (91%) where five in 16 are.
constexpr double kLanes = .95, kIdleLanes = .145, kStaged = .9, kStaged16 = .91;
// Words of 16-bit elements at the ends of segments cost more to mask than to stage: f16 of 300 elements 57%,
// staged 88%. Even numbers of words of 16-bit floats in shared memory share banks.
constexpr double kMasked16 = .85, kSharedBanks = .8;
// 16-bit floats in 3 to 31 whole words but no power of two, word by word from shared memory: 82 to 94%, and
// 40 to 83% by lanes of which some are idle.
constexpr double kByWords = .93, kIdleHalves = .88;
// Tiles that are long enough: f32 and u8 × 1000 and 1001 97 and 94%, one segment 96 to 99%. Segments by warps
// from shared memory: f32 of 257 and 300 85 and 88%, f64 of 129 86%.
constexpr double kTiles = .97, kByWarps = .87;
// Single elements of four bytes. Not measured well: less than GroupKernel.
constexpr double kSingles = .5;
// Short segments whose operands begin at different places: u8 × 100 161 µs for 512 MiB (73%), by WalkKernel
// 2900.
constexpr double kStagedApart = .8;
// A warp for each item fills a multiprocessor from 16 of them on; a block for each is nearly as fast.
constexpr double kWarpsOfProcessor = 16, kByBlocks = .99;

constexpr int64_t kMostGroupWords = 64;
constexpr int64_t kStagedBytes = 32 << 10;       // of both operands that a block takes, about
constexpr int64_t kMostStagedBytes = 100 << 10;  // of an item that is larger
constexpr int64_t kMostSegmentBytes = 1536;      // of both operands, where an item is a segment
constexpr int64_t kWarpBytes = 4608;             // of both operands that a warp copies at once, about
constexpr int64_t kSweep = 6;                    // blocks of a multiprocessor that take stages in turn
constexpr int kUsualShared = 48 << 10;           // bytes that a block has without asking

/// A contiguous segment in words.
struct Words {
  int64_t elements;  ///< of a word
  bool whole;        ///< segments begin and end at word boundaries
  int64_t count;     ///< of a segment, as many as it can reach when it begins inside one
  int64_t rounds;    ///< of 32 lanes
  explicit Words(const Task& task)
      : elements(16 / task.size()),
        whole(task.aligned(16) && task.layout.elements % elements == 0),
        count(CeilDiv(task.layout.elements + (whole ? 0 : elements - 1), elements)),
        rounds(CeilDiv(count, 32)) {}
};

/// Words up to which segments of so many rounds of 32 lanes are faster by warps from shared memory: the fewer
/// of the last round's lanes are idle, the better are the kernels that need no copy. 0: never. One H200,
/// 2026-11-20, segments of every number of words.
int64_t MostWordsByWarps(const Task& task, int64_t rounds) {
  struct Most {
    int64_t two, three, four, five;
  };
  const Most most = task.size() == 1                         ? Most{40, 80, 0, 0}
                    : task.size() == 2 && IsExact(task.kind) ? Most{52, 90, 0, 0}
                    : task.size() == 2                       ? Most{57, 96, 112, 142}
                    : task.size() == 4                       ? Most{0, 82, 0, 134}
                                                             : Most{0, 96, 106, 0};
  const int64_t words[] = {0, 0, most.two, most.three, most.four, most.five};
  return rounds < 6 ? words[rounds] : 0;
}

/// What lanes give that read segments of so many rounds in which some are idle.
double ByLanes(const Task& task, const Words& words, double full) {
  const double part = static_cast<double>(words.count) / static_cast<double>(words.rounds * 32);
  const int64_t most = MostWordsByWarps(task, words.rounds);
  if (most == 0) return full * (1 - kIdleLanes * (1 - part));
  const double even = static_cast<double>(most) / static_cast<double>(words.rounds * 32);
  if (part <= even) return kByWarps * part / even * .999;
  return kByWarps + (full - kByWarps) * (part - even) / (1 - even);
}

/// Cuts the range for a block of at most kBlockThreads threads; returns their number. `pair`: bytes of an
/// item of both operands.
int CutStaged(const Task& task, int64_t pair, int64_t rows, int64_t width, bool splits, Staged* c) {
  c->item_begin = task.range.segment_begin / width;
  c->item_end = CeilDiv(task.range.segment_end, width);
  c->rows = static_cast<int>(rows);
  c->width = static_cast<int>(width);
  const int64_t items = c->item_end - c->item_begin;
  int64_t per = std::clamp<int64_t>(kStagedBytes / pair, 1, std::max<int64_t>(1, 8 * kBlockThreads / width));
  while (per > 1 && per * width > 64 && CeilDiv(items, per) < task.device.processors * 4)
    per = CeilDiv(per, 2);
  if (width == 1 && per >= 128) per -= per % (per > kBlockThreads ? kBlockThreads : 32);
  const int64_t segments = per * width, period = std::bit_ceil(static_cast<uint64_t>(rows));
  // Rows of a segment are spread over threads where there are few segments.
  int64_t phases = 1;
  while (splits && phases * 2 * kStagedRows <= period && segments * phases * 2 <= kBlockThreads) phases *= 2;
  const int64_t threads = std::min<int64_t>(CeilDiv(segments * phases, 32) * 32, kBlockThreads);
  c->items = static_cast<int>(per);
  c->phases = static_cast<int>(phases);
  c->lanes = static_cast<int>(phases == 1 ? threads : segments);
  c->groups = static_cast<int>(std::max<int64_t>(period / phases / kStagedRows, 1));
  c->words = static_cast<int>(CeilDiv(per * pair / 2 + 15, 16));
  return static_cast<int>(threads);
}

int StagedShapeOf(StagedBy by, int step) {
  for (size_t i = 0; i < kStagedShapes.size(); ++i)
    if (kStagedShapes[i].by == by && kStagedShapes[i].step == step) return static_cast<int>(i);
  return 0;
}

/// Items of `rows` x `width` elements, a thread for a segment or for some of its rows.
void AddByThreads(const Task& task, int64_t rows, int64_t width, bool any_layout, double share,
                  Candidates* candidates) {
  const int64_t pair = 2 * rows * width * task.size();
  if (rows > kAccumulators || pair > (width == 1 ? kMostSegmentBytes : kMostStagedBytes)) return;
  Choice choice = MakeChoice(task, Kernel::kStaged, 0, share);
  choice.staged = {};
  Staged& c = choice.staged;
  choice.threads = CutStaged(task, pair, rows, width, width > 1 || !IsExact(task.kind), &c);
  choice.shared = 2 * c.words * 16 + (c.phases > 1 ? choice.threads * 8 : 0);
  if (choice.shared > kUsualShared && choice.shared > task.device.shared) return;
  choice.blocks = CeilDiv(c.item_end - c.item_begin, c.items);
  if (!any_layout)
    choice.shape = StagedShapeOf(StagedBy::kThreads, IsExact(task.kind) ? 1 : c.phases * c.groups);
  candidates->Add(choice);
}

/// 16-bit floats in whole words, a thread for a segment.
void AddByWords(const Task& task, const Words& words, Candidates* candidates) {
  const auto period = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(words.count)));
  if (!IsHalf(task.kind) || !words.whole || words.count > 32 || words.count == period) return;
  const int threads = 1024 / period;
  if (task.segments() < task.device.processors * threads * 2) return;  // two full blocks a multiprocessor
  Choice choice = MakeChoice(task, Kernel::kStaged, StagedShapeOf(StagedBy::kWords, period), kByWords);
  choice.staged = {};
  Staged& c = choice.staged;
  c.item_begin = task.range.segment_begin;
  c.item_end = task.range.segment_end;
  c.rows = static_cast<int>(task.layout.elements);
  c.width = 1;
  c.items = choice.threads = threads;
  c.segment_words = static_cast<int>(words.count);
  // Even numbers of words share banks, two threads one, or four. That costs less than the gaps that would
  // part them, but where eight do, or where long segments leave few threads.
  const bool apart = words.count % 4 == 0 && (words.count % 8 == 0 || words.count > 24);
  c.pitch = c.segment_words + (apart ? 1 : 0);
  c.words = threads * c.pitch;
  choice.shared = 2 * c.words * 16;
  choice.blocks = CeilDiv(task.segments(), threads);
  if (choice.shared <= task.device.shared) candidates->Add(choice);
}

/// Segments of up to a tile, two at a time by a warp.
void AddByWarps(const Task& task, const Words& words, Candidates* candidates) {
  if (task.layout.tiles != 1 || words.count <= 32 || words.rounds > 5 ||
      task.segments() <= task.device.processors * 16)
    return;
  const int64_t segment = task.layout.elements * task.size();
  const int64_t warps = task.device.processors * 64;  // fewer, and some of the device would be done early
  const int64_t per = std::clamp<int64_t>(kWarpBytes / (2 * segment) / kStagedJoint, 1, 16) * kStagedJoint;
  int64_t stages = 32 / per;  // a lane finishes each of a warp's segments
  while (stages > 1 && CeilDiv(task.segments(), per * stages) < warps) stages /= 2;
  Choice choice = MakeChoice(task, Kernel::kStaged, StagedShapeOf(StagedBy::kWarps, 0), kByWarps);
  choice.staged = {};
  Staged& c = choice.staged;
  c.item_begin = task.range.segment_begin;
  c.item_end = task.range.segment_end;
  c.rows = static_cast<int>(task.layout.elements);
  c.width = 1;
  c.items = static_cast<int>(per);
  c.stages = static_cast<int>(stages);
  c.words = static_cast<int>(CeilDiv(per * segment + 15, 16));
  c.sweep = static_cast<int>(task.device.processors * kSweep);
  choice.threads = kStagedWarps * 32;
  choice.shared = kStagedWarps * 4 * c.words * 16;
  if (choice.shared > kUsualShared && choice.shared > task.device.shared) return;
  // Whole sweeps, and of the last as many blocks as its first stage needs.
  const int64_t stage = kStagedWarps * per, sweep = c.sweep * stage * stages;
  choice.blocks =
      task.segments() / sweep * c.sweep + std::min<int64_t>(c.sweep, CeilDiv(task.segments() % sweep, stage));
  candidates->Add(choice);
}

/// Contiguous segments of several tiles: how many tiles become one sum is a matter of how many sums remain to
/// be finished against how many warps fill the device.
void CutTiles(const Task& task, Choice* choice) {
  const int64_t segments = task.segments(), tiles = task.tiles(), processors = task.device.processors;
  choice->blocks = CeilDiv(segments * tiles, kWarps);
  if (task.whole && tiles < kWarps && segments > processors * kWarps * 8) {
    choice->combine = Combine::kWarp;
    choice->batch = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(tiles)));
    choice->blocks = CeilDiv(segments, kWarps);
    choice->sums = 1;
  } else if (task.whole && tiles >= kWarps) {
    choice->combine = Combine::kBlock;
    // Where segments fill the device, a block takes as much of one as it can.
    while (choice->batch < 8 && tiles > choice->batch * kWarps && segments > processors * kWarps)
      choice->batch *= 2;
    // Long segments: half as many ends; integers' ends are short, and more warps are better.
    if (!IsExact(task.kind) && tiles > processors * kWarps * 16) choice->batch = std::max(choice->batch, 2);
    choice->sums = CeilDiv(tiles, choice->batch * kWarps);
    choice->blocks = segments * choice->sums;
  }
}

}  // namespace

void AddTiles(const Task& task, Candidates* candidates) {
  if (!task.contiguous() || !task.alike()) return;
  const Words words(task);
  if (words.count <= kMostGroupWords) return;
  const double full = task.layout.tiles > 1 ? kTiles : ByLanes(task, words, kTiles);
  const int64_t items = task.range.items();
  const double filled =
      static_cast<double>(items) / (kWarpsOfProcessor * static_cast<double>(task.device.processors));
  const auto by = [&](TilesBy shape, double share) {
    return MakeChoice(task, Kernel::kTiles, static_cast<int>(shape), share);
  };
  Choice blocks = by(TilesBy::kBlocks, full * kByBlocks * std::min(1 / filled, 1.));
  blocks.blocks = items;
  candidates->Add(blocks);
  const bool is_short = words.elements > 2 && words.count <= 128;
  Choice warps = by(task.tiles() > 1 ? TilesBy::kTiles
                    : is_short       ? TilesBy::kShortSegments
                                     : TilesBy::kSegments,
                    full * std::min(filled, 1.));
  if (task.tiles() > 1) {
    CutTiles(task, &warps);
  } else {
    while (warps.batch < 4 && warps.batch * task.device.processors * 128 < items) warps.batch *= 2;
    warps.blocks = CeilDiv(items, int64_t{kWarps} * warps.batch);
  }
  candidates->Add(warps);
}

void AddGroups(const Task& task, Candidates* candidates) {
  if (!task.contiguous() || !task.alike()) return;
  const Words words(task);
  if (words.count > kMostGroupWords) return;
  const int64_t lanes = std::min<int64_t>(std::bit_ceil(static_cast<uint64_t>(words.count)), 32);
  double share = ByLanes(task, words, kLanes);
  if (words.rounds == 1) {
    const double part =
        static_cast<double>(task.layout.elements) / static_cast<double>(lanes * words.elements);
    const bool odd = IsHalf(task.kind) && words.count != lanes;
    share = (odd ? kIdleHalves : kLanes) * (1 - kIdleLanes * (1 - part));
    if (task.size() == 2 && task.layout.elements % words.elements != 0) share *= kMasked16;
  }
  const int shape = words.rounds > 1 ? 6 : std::countr_zero(static_cast<uint64_t>(lanes));
  Choice choice = MakeChoice(task, Kernel::kGroups, shape, share);
  constexpr int64_t kBatch = 4;  // segments that a group of lanes has in flight
  choice.blocks = CeilDiv(task.segments(), kBlockThreads / lanes * kBatch);
  candidates->Add(choice);
}

void AddStaged(const Task& task, Candidates* candidates) {
  const Layout& layout = task.layout;
  if (layout.rank == 3 && layout.reduced[1] && !layout.reduced[0]) {  // one middle axis
    AddByThreads(task, layout.dims[1], layout.dims[2], true, kStaged, candidates);
    return;
  }
  if (!task.contiguous()) return;
  if (!task.alike()) {
    AddByThreads(task, layout.elements, 1, true, kStagedApart, candidates);
    return;
  }
  const Words words(task);
  AddByWords(task, words, candidates);
  AddByWarps(task, words, candidates);
  if (task.size() == 8) return;  // a lane's word is two elements: few are idle
  double share = task.size() == 2 ? kStaged16 : kStaged;
  if (task.size() == 4 && layout.elements == 1) share = kSingles;
  if (IsHalf(task.kind) && words.whole && words.count % 2 == 0) share *= kSharedBanks;
  AddByThreads(task, layout.elements, 1, false, share, candidates);
}

}  // namespace tilewire::rmse::cuda
