// All error metrics of two arrays in one pass, contract `compare.1`, over any set of axes: the same bits
// however they are computed. Segments, tiles and ranges are those of `rmse.1`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/rmse/rmse.h"

namespace tilewire::compare {

inline constexpr std::string_view kNumericVersion = "compare.1";

/// Numbers equal tilewire.v1.CompareMetric. Of d = double(a) - double(b); README.md says which bits.
enum class Metric : uint8_t {
  kRmse = 0,
  kMse = 1,
  kSumSquares = 2,
  kMeanAbs = 3,  ///< of |d|
  kSumAbs = 4,
  kMean = 5,  ///< of d, signed
  kSum = 6,
  kMaxAbs = 7,       ///< largest |d|; NaN where every pair is NaN
  kMaxAbsIndex = 8,  ///< the first row-major index in the segment that attains it; -1 where every pair is NaN
  kNanPairs = 9,     ///< pairs whose d is NaN
  kUnequalPairs = 10  ///< pairs with a != b: NaN is unequal to all, -0 equals +0
};
inline constexpr int kMetrics = 11;
/// "rmse", "mse", "sum_squares", "mean_abs", "sum_abs", "mean", "sum", "max_abs", "max_abs_index",
/// "nan_pairs", "unequal_pairs".
std::string_view Name(Metric metric);
/// f64 for values, u64 for counts, i64 for the index: all of 8 bytes.
DType TypeOf(Metric metric);

/// What is kept of a tile: no more than the metrics need.
enum class Kept : uint8_t {
  kSquares,  ///< the sum of d²
  kSums,     ///< and those of |d| and d
  kAll       ///< and the largest |d| with its index, and both counts
};
/// Arrays that it takes: 1, 3 or 7.
int PlaneCount(Kept kept);

/// What is kept of some tiles, an array (plane) each of 8-byte words; null where nothing is kept. Plain data.
struct Planes {
  double *squares = nullptr, *magnitudes = nullptr, *differences = nullptr;  ///< sums
  /// What largest |d| are compared by: |a - b| itself for 64-bit integers, else the bits of |d|, which order
  /// like |d|.
  uint64_t* key = nullptr;
  /// In the segment; kNoIndex where all pairs are NaN, and on the host where an earlier tile has a key as
  /// large.
  uint64_t* index = nullptr;
  uint64_t *nans = nullptr, *unequal = nullptr;

  /// PlaneCount(kept) planes of `tiles` words, one after the other in `memory`; all from word `first` on.
  static Planes In(void* memory, Kept kept, int64_t tiles, int64_t first);
};
/// As i64 it is -1. With key 0 it loses against any pair.
inline constexpr uint64_t kNoIndex = ~uint64_t{0};

/// Where the values of segments go, by metric; null where it is not asked for. Plain data.
struct Values {
  std::byte* of[kMetrics] = {};
  /// The same from segment `segment` on.
  Values From(int64_t segment) const;
};

/// Everything that follows from dtype, shape, axes and metrics. Immutable, thread-safe.
class Plan {
 public:
  /// `axes`: the axes to reduce, in any order, negative from the end; empty = all. `metrics`: numbers of
  /// Metric, each once, in the order of the results; empty = all, by their numbers.
  /// INVALID_ARGUMENT for bool and complex dtypes, a repeated axis or metric or one out of range.
  static Result<Plan> Make(const ArraySpec& operand, std::span<const int32_t> axes,
                           std::span<const int32_t> metrics);

  /// Segments, tiles and ranges.
  const rmse::Plan& geometry() const { return geometry_; }
  std::span<const Metric> metrics() const { return metrics_; }
  /// One a metric: the axes not reduced in order (unit ones kept).
  std::span<const ArraySpec> results() const { return results_; }
  Kept kept() const { return kept_; }
  /// Planes over all tiles, [segment][tile]. Nothing where segments are single tiles: those are finished at
  /// once.
  int64_t scratch_bytes() const;

 private:
  explicit Plan(rmse::Plan geometry) : geometry_(std::move(geometry)) {}
  rmse::Plan geometry_;
  std::vector<Metric> metrics_;
  std::vector<ArraySpec> results_;
  Kept kept_ = Kept::kSquares;
};

/// Writes what is kept of items [item_begin, item_end) of `range`, numbered as rmse::HostRange does; that of
/// tile t of segment s goes to place s · tiles + t - `first` of every plane. `element` is added to indices.
/// `a` and `b` point to the whole operands, aligned to the element size (only bytes of the range are read).
/// Pure and re-entrant: callers may split items over threads as they like.
void HostRange(const rmse::Plan& plan, const rmse::Range& range, Kept kept, int64_t item_begin,
               int64_t item_end, const void* a, const void* b, int64_t element, int64_t first,
               const Planes& planes);

/// Combines what is kept of the tiles of segments [segment_begin, segment_end) and finishes them into
/// `values`. Leaves the planes overwritten. Segments are independent.
void HostFinish(const rmse::Plan& plan, Kept kept, int64_t segment_begin, int64_t segment_end,
                const Planes& planes, const Values& values);

/// Both at once where segments are single tiles: items [item_begin, item_end) of `range` are segments, and
/// segment s of the plan is segment s + `segment` of `values`.
void HostSegments(const rmse::Plan& plan, const rmse::Range& range, Kept kept, int64_t item_begin,
                  int64_t item_end, const void* a, const void* b, int64_t segment, const Values& values);

}  // namespace tilewire::compare
