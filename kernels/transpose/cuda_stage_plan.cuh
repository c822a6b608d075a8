// Packed boxes of small elements: which chunks, and how they lie in shared memory. The kernel is in
// cuda_stage.cuh.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/transpose/box.h"
#include "kernels/transpose/cuda_sides.cuh"

namespace tilewire::transpose {

inline constexpr int kStageThreads = 256, kStageWords = 8;  ///< words of a chunk that one thread gathers
inline constexpr int64_t kStageChunkBytes = kStageThreads * kStageWords * 4;

/// Everything that a short last chunk along a cut axis shortens.
struct StageExtents {
  uint32_t in_run = 1, in_runs = 1, out_run = 1, out_runs = 1;  ///< runs in elements
};

template <typename Index>
struct StageParams {
  StageExtents full, last[2];               ///< of a full chunk; of the last one along either cut axis
  int cut_axis[2] = {-1, -1};               ///< of the grid
  Divider<uint32_t> in_words, out_vectors;  ///< of a run, at most
  uint32_t pitch = 4;                       ///< bytes between input runs in shared memory
  uint32_t pad_shift = 31;                  ///< one word of padding every 2^pad_shift bytes
  uint32_t image_at = 0, tables_at = 0;     ///< in shared memory
  Digits<uint32_t> rows, columns;           ///< input runs and output runs: only extents count
  Index row_strides[kMaxRank] = {}, column_strides[kMaxRank] = {};  ///< in elements
  int rank = 0;                                                     ///< of a chunk, fastest output axis first
  Divider<uint32_t> extents[kMaxRank];
  uint32_t in_place[kMaxRank] = {},
           row_place[kMaxRank] = {};  ///< of an axis: bytes in the run, number of runs
  Index chunks = 1;
  int grid_rank = 0;
  Divider<Index> grid_counts[kMaxRank];
  Index grid_in[kMaxRank] = {}, grid_out[kMaxRank] = {};
};

/// Where byte `at` of input run `row` lies in shared memory. Runs are an odd number of words apart, with one
/// word more every 32 runs and, for some boxes, every so many bytes: so that the elements that the lanes of a
/// warp gather come from different banks.
__host__ __device__ inline uint32_t RowPlace(uint32_t pitch, uint32_t pad_shift, uint32_t row, uint32_t at) {
  const uint32_t place = row * pitch + row / 32 * 4 + at;
  return place + (place >> pad_shift) * 4;
}

/// Where an element of the output's order lies in shared memory.
template <typename Index>
__host__ __device__ uint32_t SharedPlace(const StageParams<Index>& p, uint32_t element) {
  uint32_t run = 0, at = 0;
  for (int i = 0; i < p.rank; ++i) {
    const uint32_t digit = p.extents[i].Split(element);
    at += digit * p.in_place[i];
    run += digit * p.row_place[i];
  }
  return RowPlace(p.pitch, p.pad_shift, run, at);
}

/// How often lanes of a few warps would wait for a bank when they gather, with that padding.
template <typename Index>
int BankConflicts(StageParams<Index> p, uint32_t pack, uint32_t pad_shift) {
  p.pad_shift = pad_shift;
  int conflicts = 0;
  for (uint32_t warp = 0; warp < 2; ++warp) {
    for (uint32_t k = 0; k < pack; ++k) {
      uint32_t words[32];
      int load[32] = {}, most = 0;
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const uint32_t element = ((warp * 5 * 32 + lane) * pack + k) % (p.full.out_run * p.full.out_runs);
        words[lane] = SharedPlace(p, element) / 4;
        if (std::find(words, words + lane, words[lane]) == words + lane)
          most = std::max(most, ++load[words[lane] % 32]);
      }
      conflicts += most;
    }
  }
  return conflicts;
}

/// Which axes a chunk's runs consist of.
struct StageAxes {
  bool in_x[kMaxRank] = {}, in_y[kMaxRank] = {};  ///< of the input's run, of the output's
  int out_order[kMaxRank];
};

/// The runs of full chunks; false where an axis belongs to neither side's run.
inline bool FindStageRuns(const Box& box, const Chunks& chunks, StageAxes& axes, StageExtents& full) {
  OutputOrder(box, axes.out_order);
  const auto walk = [&](bool* taken, const int64_t* strides, auto axis_at) {
    int64_t run = 1;
    for (int i = 0; i < box.rank; ++i) {
      const int a = axis_at(i);
      if (strides[a] != run) break;
      taken[a] = true;
      run *= chunks.extents[a];
      if (chunks.extents[a] != box.dims[a]) break;
    }
    return static_cast<uint32_t>(run);
  };
  full.in_run = walk(axes.in_x, box.in_strides, [&](int i) { return box.rank - 1 - i; });
  full.out_run = walk(axes.in_y, box.out_strides, [&](int i) { return axes.out_order[i]; });
  for (int a = 0; a < box.rank; ++a)
    if (chunks.extents[a] > 1 && !axes.in_x[a] && !axes.in_y[a]) return false;
  return true;
}

/// The order of elements within a chunk's image, and where its runs begin in both arrays.
template <typename Index>
void AddStageAxes(const Box& box, const Chunks& chunks, const StageAxes& axes, StageParams<Index>& p) {
  const auto add = [&](int a, uint32_t row_place) {
    p.extents[p.rank] = Divider<uint32_t>(chunks.extents[a]);
    p.in_place[p.rank] = axes.in_x[a] ? static_cast<uint32_t>(box.in_strides[a] * box.element_bytes) : 0;
    p.row_place[p.rank++] = row_place;
  };
  for (int i = 0; i < box.rank; ++i) {
    const int a = axes.out_order[i];
    if (!axes.in_y[a]) continue;
    add(a, axes.in_x[a] ? 0 : p.full.in_runs);
    if (axes.in_x[a]) continue;
    p.row_strides[p.rows.rank] = static_cast<Index>(box.in_strides[a]);
    p.rows.Add(chunks.extents[a], 0);
    p.full.in_runs *= static_cast<uint32_t>(chunks.extents[a]);
  }
  for (int a = box.rank; a-- > 0;) {
    if (!axes.in_x[a] || axes.in_y[a]) continue;
    add(a, 0);
    p.column_strides[p.columns.rank] = static_cast<Index>(box.out_strides[a]);
    p.columns.Add(chunks.extents[a], 0);
    p.full.out_runs *= static_cast<uint32_t>(chunks.extents[a]);
  }
}

/// Where chunks lie; false where more than two axes end in shorter ones.
template <typename Index>
bool AddStageGrid(const Box& box, const Chunks& chunks, const StageAxes& axes, StageParams<Index>& p) {
  int cuts = 0;
  p.chunks = static_cast<Index>(chunks.total);
  for (int a = box.rank; a-- > 0;) {
    if (chunks.counts[a] == 1) continue;
    const int i = p.grid_rank++;
    p.grid_counts[i] = Divider<Index>(chunks.counts[a]);
    p.grid_in[i] = static_cast<Index>(chunks.extents[a] * box.in_strides[a]);
    p.grid_out[i] = static_cast<Index>(chunks.extents[a] * box.out_strides[a]);
    const auto part = static_cast<uint32_t>(box.dims[a] % chunks.extents[a]);
    if (part == 0) continue;
    if (cuts == 2) return false;
    const auto shorter = [&](bool is, uint32_t extent) {
      return is ? extent / static_cast<uint32_t>(chunks.extents[a]) * part : extent;
    };
    const bool x = axes.in_x[a], y = axes.in_y[a];
    p.last[cuts] = {.in_run = shorter(x, p.full.in_run),
                    .in_runs = shorter(y && !x, p.full.in_runs),
                    .out_run = shorter(y, p.full.out_run),
                    .out_runs = shorter(x && !y, p.full.out_runs)};
    p.cut_axis[cuts++] = i;
  }
  return true;
}

/// Launch parameters, and the bytes of shared memory; false where the box's runs are not contiguous, or a
/// chunk does not fit.
template <typename Index>
bool MakeStageParams(const Box& box, const Chunks& chunks, StageParams<Index>& p, uint32_t* shared) {
  const auto size = static_cast<uint32_t>(box.element_bytes), pack = 4 / size;
  StageAxes axes;
  if (!FindStageRuns(box, chunks, axes, p.full)) return false;
  AddStageAxes(box, chunks, axes, p);
  if (!AddStageGrid(box, chunks, axes, p)) return false;
  const uint32_t words = (p.full.in_run + pack - 1) / pack;
  p.in_words = Divider<uint32_t>(words);
  p.out_vectors = Divider<uint32_t>((p.full.out_run * size + 30) / 16);
  p.pitch = 4 * (words | 1);
  if (BankConflicts(p, pack, 7) < BankConflicts(p, pack, 31)) p.pad_shift = 7;
  // The image is read in vectors: up to 15 bytes in front of it and 31 behind.
  p.image_at = (RowPlace(p.pitch, p.pad_shift, p.full.in_runs, 0) + 15) / 16 * 16 + 16;
  p.tables_at = p.image_at + static_cast<uint32_t>(kStageChunkBytes) + 32;
  *shared = p.tables_at + static_cast<uint32_t>(sizeof(Index)) * (p.full.in_runs + p.full.out_runs);
  constexpr uint32_t kMostShared = 48 << 10;  // more would have to be asked for
  return words * p.full.in_runs <= kStageChunkBytes / 4 && *shared <= kMostShared;
}

/// What a chunk costs a byte of the box, as a multiple of what a byte of long runs does. The price of a run's
/// ends, in bytes, was measured; an output run's are written in pieces.
inline double StageCost(const Box& box, const Chunks& chunks) {
  constexpr double kInEnds = 40, kOutEnds = 96, kChunkEnds = 512;
  const auto bytes = [&](int64_t elements) { return static_cast<double>(elements * box.element_bytes); };
  const double covered = bytes(chunks.total) * static_cast<double>(chunks.elements) / bytes(box.elements());
  return covered * (1 + kInEnds / bytes(InputRun(box, chunks)) + kOutEnds / bytes(OutputRun(box, chunks)) +
                    kChunkEnds / bytes(chunks.elements));
}

/// The cheapest chunks of at most `most` elements.
inline Chunks ChooseStageChunks(const Box& box, int64_t most) {
  Chunks best = MakeWeightedChunks(box, most, 1, 1);
  for (const int64_t weight : {2, 4, 8, 16}) {
    for (const bool in : {false, true}) {
      const Chunks chunks = MakeWeightedChunks(box, most, in ? weight : 1, in ? 1 : weight);
      if (StageCost(box, chunks) < StageCost(box, best)) best = chunks;
    }
  }
  return best;
}

}  // namespace tilewire::transpose
