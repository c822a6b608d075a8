#include "client/load/study.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <tuple>

namespace tilewire::load {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLeastCalls = 3;
/// Rates that differ by less are the same.
constexpr double kSame = 0.03;

/// Both ways of one configuration.
struct Pair {
  StudyPoint overlapped, serial;
};

/// False when the study must end.
bool MakeCall(const StudyCall& call, size_t size, uint32_t input, const std::stop_token& stop, bool counted,
              StudyPoint* point, StudyResult* result) {
  const Clock::time_point begin = Clock::now();
  const Answer answer = call(size, input, point->tuning, stop);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (stop.stop_requested()) {
    result->interrupted = true;
    return false;
  }
  if (counted || !answer.status.ok() || !answer.right) {
    point->stats.Add(answer, seconds * 1e6, seconds * 1e6);
    if (answer.status.ok() && answer.right) point->seconds += seconds;
  }
  result->lost = answer.status.code() == Code::kUnavailable;
  return !result->lost;
}

bool MeasurePair(const StudyOptions& options, const StudyCall& call, size_t size, const std::stop_token& stop,
                 Pair* pair, StudyResult* result) {
  // The first calls make connections and memory.
  for (StudyPoint* point : {&pair->overlapped, &pair->serial})
    if (!MakeCall(call, size, 0, stop, false, point, result)) return false;
  const Clock::time_point begin = Clock::now();
  for (uint64_t round = 0;; ++round) {
    const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
    if (round >= kLeastCalls && passed >= options.seconds) return true;
    // Who goes first takes turns too.
    StudyPoint* order[] = {&pair->overlapped, &pair->serial};
    if (round % 2 == 1) std::swap(order[0], order[1]);
    for (StudyPoint* point : order)
      if (!MakeCall(call, size, static_cast<uint32_t>(round % options.inputs), stop, true, point, result))
        return false;
  }
}

}  // namespace

Result<OperationSpec> StudyOperation(const StudyOptions& options, uint64_t size) {
  OperationSpec spec;
  const auto element = static_cast<uint64_t>(SizeOf(options.dtype));
  const auto elements = static_cast<int64_t>(std::max<uint64_t>(size / element, 1));
  std::vector<int64_t> dims{elements};
  const client::OperationInfo& info = *client::FindOperation(options.operation);
  if (info.study_square) {
    const auto rows = static_cast<int64_t>(1) << (std::bit_width(static_cast<uint64_t>(elements)) / 2);
    dims = {rows, std::max<int64_t>(elements / rows, 1)};
  }
  spec.operation = client::Operation(*info.descriptor, info.study);
  TILEWIRE_ASSIGN_OR_RETURN(spec.operand, MakeSpec(options.dtype, dims, "size"));
  const std::vector<ArraySpec> operands(spec.operands(), spec.operand);
  TILEWIRE_ASSIGN_OR_RETURN(spec.results, client::ResultSpecs(spec.operation, operands));
  spec.name =
      options.operation + " " + std::string(Name(options.dtype)) + " " + spec.operand.shape.ToString();
  return spec;
}

StudyResult RunStudy(const StudyOptions& options, const StudyCall& call, const std::stop_token& stop,
                     const std::function<void(size_t done, size_t all)>& on_point) {
  StudyResult result;
  const size_t all =
      options.sizes.size() * options.connections.size() * options.blocks.size() * options.lanes.size();
  size_t done = 0;
  for (size_t size = 0; size < options.sizes.size(); ++size)
    for (const uint64_t block : options.blocks)
      for (const uint32_t lanes : options.lanes)
        for (const uint32_t connections : options.connections) {
          if (on_point) on_point(done++, all);
          const uint64_t bytes = StudyOperation(options, options.sizes[size]).value().bytes();
          const Tuning tuning{.block_bytes = block, .lanes = lanes, .connections = connections};
          Pair pair{{.bytes = bytes, .tuning = tuning}, {.bytes = bytes, .tuning = tuning}};
          pair.serial.tuning.sequential = true;
          const bool more = MeasurePair(options, call, size, stop, &pair, &result);
          result.points.push_back(std::move(pair.overlapped));
          result.points.push_back(std::move(pair.serial));
          if (!more) return result;
        }
  return result;
}

std::string BottleneckOf(const CallStats& stats) {
  std::string most;
  uint64_t count = 0;
  for (const auto& [name, named] : stats.bottlenecks)
    if (named > count) {
      most = name;
      count = named;
    }
  return most;
}

std::optional<Recommendation> Recommend(const std::vector<StudyPoint>& points) {
  uint64_t largest = 0;
  double best = 0;
  for (const StudyPoint& point : points)
    if (point.stats.good > 0 && point.overlap()) largest = std::max(largest, point.bytes);
  const auto counts = [&](const StudyPoint& point) {
    return point.overlap() && point.bytes == largest && point.stats.good > 0;
  };
  for (const StudyPoint& point : points)
    if (counts(point)) best = std::max(best, point.bytes_per_second());
  const StudyPoint* chosen = nullptr;
  const auto cost = [](const StudyPoint& point) {
    return std::tuple(point.tuning.connections, point.tuning.lanes, point.tuning.block_bytes);
  };
  for (const StudyPoint& point : points)
    if (counts(point) && point.bytes_per_second() >= (1 - kSame) * best &&
        (chosen == nullptr || cost(point) < cost(*chosen)))
      chosen = &point;
  if (chosen == nullptr) return std::nullopt;
  Recommendation recommendation{.tuning = chosen->tuning,
                                .bytes = chosen->bytes,
                                .bytes_per_second = chosen->bytes_per_second(),
                                .best_bytes_per_second = best,
                                .bottleneck = BottleneckOf(chosen->stats)};
  for (const StudyPoint& point : points)
    if (!point.overlap() && point.bytes == largest && cost(point) == cost(*chosen))
      recommendation.serial_bytes_per_second = point.bytes_per_second();
  return recommendation;
}

}  // namespace tilewire::load
