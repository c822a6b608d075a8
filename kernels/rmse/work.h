// What a launch of an RMSE kernel is told, by value. No CUDA types: which kernel is launched and in which
// shape is decided, and tested, without a GPU.
#pragma once

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse::cuda {

inline constexpr int kBlockThreads = 256;  // of most kernels
inline constexpr int kWarps = kBlockThreads / 32;

/// How a sum becomes a result.
struct Ending {
  double elements;    ///< of a segment
  double reciprocal;  ///< of `elements` where that is a power of two, else 0
  Output output;
};

/// Which adjacent tiles of a segment become one sum before it is stored.
enum class Combine { kNone, kWarp, kBlock };

/// One launch.
struct Work {
  Layout layout;
  Range range;
  const char* a;
  const char* b;
  double* tile_sums;  ///< sums go here, [segment][sums_per_segment] ...
  double* result;     ///< ... or, where not null, each segment has one sum and it is finished into this
  int64_t sums_per_segment;
  Ending ending;
  uint64_t flip;       ///< the sign bits of signed integers, over all eight bytes
  int64_t block_base;  ///< added to blockIdx.x: a grid has at most 2^31 - 1 blocks
  int batch;  ///< TilesKernel: tiles or segments that a warp sums one after the other, a power of two
  Combine combine;
};

/// StagedKernel: how an array [item][row][column] is cut. A segment is a column of an item, and an item is
/// one piece of memory. Contiguous segments are items of one column.
struct Staged {
  int64_t item_begin, item_end;
  int rows, width;           ///< of an item
  int items;                 ///< that a team (a block or a warp) copies at once
  int words;                 ///< 16-byte words of shared memory for them, of an operand
  int lanes, phases;         ///< by threads: phase p of a segment has rows p, p + phases, ...
  int groups;                ///< by threads: of up to kStagedRows rows that a thread sums
  int segment_words, pitch;  ///< by words: of a segment, and from one to the next in shared memory
  int stages;                ///< by warps: how often a warp copies items
  int sweep;  ///< by warps: blocks that take stages in turn, so that warps which run at the same time read
              ///< what lies side by side
};

inline constexpr int kStagedRows = 8;   // that a thread has in registers
inline constexpr int kStagedJoint = 2;  // segments whose trees share the lanes of a warp
inline constexpr int kStagedWarps = 4;  // of a block by warps; they share nothing

/// Columns: how rows are cut. A thread owns some columns of a window and rows phase + phases · chain +
/// period · round of a tile. `chains` of one thread and `phases` threads make the period.
struct Columns {
  int64_t width, windows, tiles, outer_begin;
  int64_t stride;  ///< bytes from a row to the next, of the inner axis where there are two
  int lanes, phases;
  int groups;  ///< StreamKernel: of chains that a thread holds at once
  int period;
  int pitch;  ///< places of a phase's sums in shared memory
};

/// RingKernel: a thread reads one piece of a row, down the rows. Joined: as many rows as are whole words (a
/// group) are taken as one, and pieces are its words.
struct Ring {
  Columns cut;
  int64_t row_pieces;     ///< of all columns
  int64_t outer_stride;   ///< bytes from an index of the outer reduced axis to the next
  uint32_t inner, digit;  ///< extent of the inner axis; rows of a step there
  int64_t step, carry;    ///< bytes of a step; and more where the inner axis ends
  int group, row_bytes;   ///< joined: rows of a group, a power of two
};

/// WalkKernel: how a segment's units lie (elements or words), in bytes, and what a block takes. Digits of an
/// index: [0] in the innermost reduced axis, [1] in the next; the axes further out need none.
struct Walk {
  int64_t outer_begin;             ///< batch indices without their innermost axis, counted over all of them
  int64_t neighbours, begin, end;  ///< the innermost batch axis: its extent, and the part that the range has
  int64_t neighbour_bytes;         ///< from a segment to the next of them
  int64_t groups, tiles;           ///< of neighbours that share a block; of the range
  int64_t strides[3];              ///< of the three innermost reduced axes
  uint32_t extents[2];
  uint32_t digits[2];  ///< of a step
  int64_t step;        ///< bytes of a step where no axis ends
  int64_t carries[2];  ///< added where axis 0 or 1 does
  int chunk_log2;      ///< lanes side by side that take neighbouring units; the next segment's follow
};

}  // namespace tilewire::rmse::cuda
