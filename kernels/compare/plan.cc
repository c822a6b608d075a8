#include <algorithm>
#include <string>
#include <utility>

#include "kernels/compare/compare.h"

namespace tilewire::compare {
namespace {

constexpr std::string_view kNames[] = {"rmse",          "mse",       "sum_squares",  "mean_abs",
                                       "sum_abs",       "mean",      "sum",          "max_abs",
                                       "max_abs_index", "nan_pairs", "unequal_pairs"};
static_assert(std::size(kNames) == kMetrics);

Kept KeptFor(std::span<const Metric> metrics) {
  const Metric last = *std::max_element(metrics.begin(), metrics.end());
  if (last >= Metric::kMaxAbs) return Kept::kAll;
  return last > Metric::kSumSquares ? Kept::kSums : Kept::kSquares;
}

}  // namespace

std::string_view Name(Metric metric) {
  return kNames[static_cast<int>(metric)];
}

DType TypeOf(Metric metric) {
  if (metric == Metric::kMaxAbsIndex) return DType::kI64;
  return metric > Metric::kMaxAbsIndex ? DType::kU64 : DType::kF64;
}

int PlaneCount(Kept kept) {
  return kept == Kept::kAll ? 7 : kept == Kept::kSums ? 3 : 1;
}

Planes Planes::In(void* memory, Kept kept, int64_t tiles, int64_t first) {
  auto* const doubles = static_cast<double*>(memory) + first;
  auto* const words = static_cast<uint64_t*>(memory) + first;
  Planes planes{.squares = doubles};
  if (kept >= Kept::kSums) {
    planes.magnitudes = doubles + tiles;
    planes.differences = doubles + 2 * tiles;
  }
  if (kept == Kept::kAll) {
    planes.key = words + 3 * tiles;
    planes.index = words + 4 * tiles;
    planes.nans = words + 5 * tiles;
    planes.unequal = words + 6 * tiles;
  }
  return planes;
}

Values Values::From(int64_t segment) const {
  Values values = *this;
  for (std::byte*& each : values.of)
    if (each != nullptr) each += 8 * segment;
  return values;
}

Result<Plan> Plan::Make(const ArraySpec& operand, std::span<const int32_t> axes,
                        std::span<const int32_t> metrics) {
  TILEWIRE_ASSIGN_OR_RETURN(rmse::Plan geometry, rmse::Plan::Make(operand, axes, rmse::Output::kRmse));
  Plan plan(std::move(geometry));
  bool asked[kMetrics] = {};
  for (const int32_t number : metrics) {
    if (number < 0 || number >= kMetrics)
      return BadValue("metrics", std::to_string(number), "a tilewire.v1.CompareMetric, 0 to 10");
    if (std::exchange(asked[number], true))
      return BadValue("metrics", std::to_string(number) + " twice", "each metric once");
    plan.metrics_.push_back(static_cast<Metric>(number));
  }
  if (metrics.empty())
    for (int number = 0; number < kMetrics; ++number) plan.metrics_.push_back(static_cast<Metric>(number));
  plan.kept_ = KeptFor(plan.metrics_);
  for (const Metric metric : plan.metrics_) {
    plan.results_.push_back(plan.geometry_.result());
    plan.results_.back().dtype = TypeOf(metric);
  }
  return plan;
}

int64_t Plan::scratch_bytes() const {
  const rmse::Layout& layout = geometry_.layout();
  return layout.tiles > 1 ? layout.segments * layout.tiles * 8 * PlaneCount(kept_) : 0;
}

}  // namespace tilewire::compare
