// The shapes that each RMSE kernel is compiled in. A choice (choice.h) names a kernel and the index of a
// shape in its table; the kernel's .cu instantiates what the table holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/rmse/kind.h"

namespace tilewire::rmse::cuda {

/// By what they load and how they climb the tree. kFinish makes results of the others' sums.
enum class Kernel : uint8_t { kTiles, kGroups, kStaged, kRing, kStream, kWalk, kFinish };
inline constexpr const char* kKernelNames[] = {"TilesKernel",  "GroupKernel", "StagedKernel", "RingKernel",
                                               "StreamKernel", "WalkKernel",  "FinishKernel"};

/// Who sums a tile of a contiguous segment, and what a warp takes in turn: neighbouring segments of which the
/// range has one tile (short ones leave registers for more warps), or neighbouring tiles.
enum class TilesBy : uint8_t { kBlocks, kShortSegments, kSegments, kTiles };
inline constexpr std::array kTilesShapes = {TilesBy::kBlocks, TilesBy::kShortSegments, TilesBy::kSegments,
                                            TilesBy::kTiles};

/// Lanes that share a segment, and words of it that each of them has.
struct GroupShape {
  int lanes, rows;
};
inline constexpr std::array kGroupShapes = {GroupShape{1, 1}, GroupShape{2, 1},  GroupShape{4, 1},
                                            GroupShape{8, 1}, GroupShape{16, 1}, GroupShape{32, 1},
                                            GroupShape{32, 2}};

/// Who sums a segment in shared memory. `step`: see StagedKernel.
enum class StagedBy : uint8_t { kThreads, kWords, kWarps };
struct StagedShape {
  StagedBy by;
  int step;
};
inline constexpr std::array kStagedShapes = {
    StagedShape{StagedBy::kThreads, 0},  StagedShape{StagedBy::kThreads, 1},
    StagedShape{StagedBy::kThreads, 2},  StagedShape{StagedBy::kThreads, 4},
    StagedShape{StagedBy::kThreads, 8},  StagedShape{StagedBy::kThreads, 16},
    StagedShape{StagedBy::kThreads, 32}, StagedShape{StagedBy::kWords, 4},
    StagedShape{StagedBy::kWords, 8},    StagedShape{StagedBy::kWords, 16},
    StagedShape{StagedBy::kWords, 32},   StagedShape{StagedBy::kWarps, 0}};

/// Which of them a kind has. Threads: contiguous segments of 8-byte elements are GroupKernel's, and integers
/// of 8 and 16 bits need no tree. Words: 16-bit floats.
constexpr bool HasStaged(Kind kind, StagedShape shape) {
  if (shape.by == StagedBy::kWarps) return true;
  if (shape.by == StagedBy::kWords) return IsHalf(kind);
  return shape.step == 0 || (IsExact(kind) ? shape.step == 1 : SizeOf(kind) < 8);
}

/// What a thread of RingKernel reads down the rows: a piece of each; a word of as many rows as are whole
/// words joined; likewise where tiles begin inside words.
enum class RingOf : uint8_t { kColumns, kJoined, kJoinedInside };
/// Bytes of a piece, pieces of each operand in flight, threads at most, blocks a multiprocessor at least.
struct RingShape {
  RingOf of;
  int piece, depth, threads, blocks;
};
template <Kind K>
constexpr auto RingShapesOf() {
  constexpr auto kColumns = RingOf::kColumns;
  constexpr RingShape kJoined{RingOf::kJoined, 16, 6, 1024, 1},
      kInside{RingOf::kJoinedInside, 16, 6, 1024, 1}, kDeep{kColumns, 16, 12, 512, 1},
      kLarge{kColumns, 16, 6, 1024, 1}, kUsual{kColumns, 16, 6, 512, 2}, kEight{kColumns, 8, 12, 256, 3},
      kFour{kColumns, 4, 12, 256, 4};
  if constexpr (SizeOf(K) == 4) {
    return std::array{kJoined, kInside, kDeep, kLarge, kEight, kFour};
  } else if constexpr (SizeOf(K) == 8) {
    return std::array{kJoined, kInside, kUsual, kEight};
  } else if constexpr (IsHalf(K)) {
    return std::array{kJoined, kInside, kLarge, kFour};
  } else {
    return std::array{kJoined, kInside, kUsual, kFour};
  }
}
template <Kind K>
inline constexpr auto kRingShapes = RingShapesOf<K>();

/// Accumulators of a column that a thread of RingKernel holds: 16 with all its columns.
constexpr int RingChains(int size, bool exact, int piece) {
  return exact ? 8 : 16 * size / piece;
}
template <int kSize, bool kExact, int kPiece>
inline constexpr int kRingChains = RingChains(kSize, kExact, kPiece);

/// Columns of a thread, whether they are neighbours (a vector) or 32 apart, rounds and pieces of each operand
/// in flight, levels of the tree over groups, threads at most; for segments of [least_rows, most_rows].
struct StreamShape {
  int columns;
  bool vector;
  int rounds, batch, levels, threads;
  int64_t least_rows, most_rows;
  /// Of the read rate, as measured; of up to 16 columns (bytes of a row: see choose_columns.cc) and of more.
  double narrow_share, share;
};
inline constexpr int64_t kAnyRows = INT64_MAX;

// One H200, 2026-11-21, tilewire_kernel_bench '^layouts/(columns|rows|middle)': few rows 4 · 64 · 300 f32 77
// · 96 · 84, f64 93 · 99, f16 70 · 74, u8 61 · 85, beginning inside words f32 89, f64 95, f16 47 to 61, u8 38
// to 44; long columns × 16 · 1000 · 1001 f32 93 · 87 · 87, f64 92 · 94 · 92, f16 94 · 68 · 68, u8 87. What
// stands here are classes of these: only which is larger decides.
template <int kSize>
constexpr auto StreamShapesOf() {
  constexpr int64_t kLong = 1025;
  if constexpr (kSize == 8) {
    return std::array{StreamShape{2, true, 1, 4, 0, 256, 1, 4, .93, .93},
                      StreamShape{2, true, 1, 8, 0, 256, 5, 8, .93, .93},
                      StreamShape{2, true, 1, 8, 3, 256, 9, 256, .93, .93},
                      StreamShape{2, true, 2, 8, 3, 256, 257, 512, .93, .93},
                      StreamShape{2, true, 4, 8, 4, 256, 513, 1024, .93, .93},
                      StreamShape{2, false, 1, 4, 0, 256, 1, 4, .9, .9},
                      StreamShape{2, false, 1, 8, 0, 256, 5, 8, .9, .9},
                      StreamShape{2, false, 1, 8, 3, 256, 9, 256, .9, .9},
                      StreamShape{2, false, 2, 8, 3, 256, 257, 512, .9, .9},
                      StreamShape{2, false, 4, 8, 4, 256, 513, 1024, .9, .9},
                      StreamShape{2, true, 8, 8, 2, 256, kLong, kAnyRows, .93, 0},
                      StreamShape{2, false, 8, 8, 5, 256, kLong, kAnyRows, .95, .95}};
  } else if constexpr (kSize == 4) {
    // Pieces of 16 bytes take too many registers where a column's tree is deep.
    return std::array{StreamShape{4, true, 1, 4, 0, 256, 1, 4, .89, .89},
                      StreamShape{4, true, 1, 8, 0, 256, 5, 8, .89, .89},
                      StreamShape{4, true, 2, 8, 3, 256, 257, 512, .89, .89},
                      StreamShape{2, true, 1, 4, 0, 256, 1, 4, .88, .88},
                      StreamShape{2, true, 1, 8, 0, 256, 5, 8, .88, .88},
                      StreamShape{2, true, 1, 8, 3, 256, 9, 256, .88, .88},
                      StreamShape{2, true, 2, 8, 3, 256, 257, 512, .88, .88},
                      StreamShape{2, true, 4, 8, 4, 256, 513, 1024, .88, .88},
                      StreamShape{2, false, 1, 4, 0, 256, 1, 4, .85, .85},
                      StreamShape{2, false, 1, 8, 0, 256, 5, 8, .85, .85},
                      StreamShape{2, false, 1, 8, 3, 256, 9, 256, .85, .85},
                      StreamShape{2, false, 2, 8, 3, 256, 257, 512, .85, .85},
                      StreamShape{2, false, 4, 8, 4, 256, 513, 1024, .85, .85},
                      StreamShape{4, true, 8, 8, 2, 256, kLong, kAnyRows, .93, 0},
                      StreamShape{2, true, 8, 8, 2, 256, kLong, kAnyRows, .92, 0},
                      StreamShape{2, false, 8, 8, 5, 256, kLong, kAnyRows, .895, .895}};
  } else if constexpr (kSize == 2) {
    return std::array{StreamShape{4, true, 1, 4, 0, 256, 1, 4, .74, .74},
                      StreamShape{4, true, 1, 8, 0, 256, 5, 8, .74, .74},
                      StreamShape{4, true, 1, 8, 3, 256, 9, 256, .74, .74},
                      StreamShape{4, true, 2, 8, 3, 256, 257, 512, .74, .74},
                      StreamShape{4, true, 4, 8, 4, 256, 513, 1024, .74, .74},
                      StreamShape{2, false, 1, 4, 0, 256, 1, 4, .6, .6},
                      StreamShape{2, false, 1, 8, 0, 256, 5, 8, .6, .6},
                      StreamShape{2, false, 1, 8, 3, 256, 9, 256, .6, .6},
                      StreamShape{2, false, 2, 8, 3, 256, 257, 512, .6, .6},
                      StreamShape{2, false, 4, 8, 4, 256, 513, 1024, .6, .6},
                      StreamShape{4, true, 4, 4, 2, 512, kLong, kAnyRows, .94, .69},
                      StreamShape{2, false, 8, 8, 5, 256, kLong, kAnyRows, .68, .68}};
  } else {
    return std::array{StreamShape{4, true, 1, 4, 0, 256, 1, 4, .8, .8},
                      StreamShape{8, true, 1, 8, 0, 256, 5, 8, .8, .8},
                      StreamShape{8, true, 1, 8, 3, 256, 9, 256, .8, .8},
                      StreamShape{8, true, 2, 8, 3, 256, 257, 512, .8, .8},
                      StreamShape{8, true, 4, 8, 4, 256, 513, 1024, .8, .8},
                      StreamShape{2, false, 1, 4, 0, 256, 1, 4, .4, .4},
                      StreamShape{2, false, 1, 8, 0, 256, 5, 8, .4, .4},
                      StreamShape{2, false, 1, 8, 3, 256, 9, 256, .4, .4},
                      StreamShape{8, true, 8, 8, 2, 256, kLong, kAnyRows, .9, 0},
                      StreamShape{8, true, 4, 4, 2, 512, kLong, kAnyRows, .85, .85}};
  }
}
template <int kSize>
inline constexpr auto kStreamShapes = StreamShapesOf<kSize>();

/// What a thread of WalkKernel takes at a time: elements over up to three axes; whole words of runs; words of
/// contiguous segments whose operands begin at different places of words; elements over any number of axes.
enum class WalkUnit : uint8_t { kElement, kWord, kApart, kAnyAxes };
struct WalkShape {
  WalkUnit unit;
  int segments;  ///< neighbours that share a block
};
inline constexpr std::array kWalkShapes = {
    WalkShape{WalkUnit::kElement, 1},  WalkShape{WalkUnit::kElement, 2}, WalkShape{WalkUnit::kElement, 8},
    WalkShape{WalkUnit::kElement, 32}, WalkShape{WalkUnit::kWord, 8},    WalkShape{WalkUnit::kApart, 8},
    WalkShape{WalkUnit::kAnyAxes, 8}};
constexpr bool HasWalk(Kind kind, WalkShape shape) {
  return shape.unit == WalkUnit::kElement || shape.unit == WalkUnit::kAnyAxes || SizeOf(kind) <= 2;
}

}  // namespace tilewire::rmse::cuda
