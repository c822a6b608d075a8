#include "client/load/study.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "kernels/figures/statistics.h"

namespace tilewire::load {
namespace {

/// Quartiles of fewer say nothing.
constexpr uint64_t kLeastCalls = 4;
/// Rates that differ by less are the same.
constexpr double kSame = 0.03;

/// Both ways of one configuration.
struct Pair {
  StudyPoint overlapped, serial;
};

/// False when the study must end.
bool MakeCall(const StudyServer& server, const StudyPlace& place, uint32_t input, const std::stop_token& stop,
              bool counted, StudyPoint* point, StudyResult* result) {
  const LoadClock::time_point begin = LoadClock::now();
  Answer answer = server.call(place, input, point->tuning, stop);
  answer.TimesUnlessTold(begin);
  answer.Settle();  // here and now: nothing else is to run beside the next call
  const double seconds = answer.seconds();
  if (stop.stop_requested()) {
    result->interrupted = true;
    return false;
  }
  if (counted || !answer.status.ok() || !answer.right) {
    point->stats.Add(answer, seconds * 1e6, seconds * 1e6);
    if (answer.status.ok() && answer.right) {
      point->seconds += seconds;
      if (point->latencies.size() < kMostLatencies) point->latencies.push_back(seconds);
    }
  }
  result->lost = answer.status.code() == Code::kUnavailable;
  return !result->lost;
}

bool MeasurePair(const StudyOptions& options, const StudyServer& server, const StudyPlace& place,
                 const std::stop_token& stop, Pair* pair, StudyResult* result) {
  // The first calls make connections and memory.
  for (StudyPoint* point : {&pair->overlapped, &pair->serial})
    if (!MakeCall(server, place, 0, stop, false, point, result)) return false;
  const LoadClock::time_point begin = LoadClock::now();
  for (uint64_t round = 0;; ++round) {
    const double passed = std::chrono::duration<double>(LoadClock::now() - begin).count();
    if (round >= kLeastCalls && passed >= options.seconds) return true;
    // Who goes first takes turns too.
    StudyPoint* order[] = {&pair->overlapped, &pair->serial};
    if (round % 2 == 1) std::swap(order[0], order[1]);
    for (StudyPoint* point : order)
      if (!MakeCall(server, place, static_cast<uint32_t>(round % options.inputs), stop, true, point, result))
        return false;
  }
}

/// Connections carry nothing of arrays in shared memory.
std::vector<uint32_t> ConnectionsOf(const StudyOptions& options, Via via) {
  return via == Via::kRegion ? std::vector<uint32_t>{1} : options.connections;
}

/// False when the study must end.
bool MeasurePlace(const StudyOptions& options, const StudyServer& server, const StudyPlace& place,
                  const std::stop_token& stop, const std::function<void()>& on_point, StudyResult* result) {
  const uint64_t bytes = StudyOperation(options, options.sizes[place.size]).value().bytes();
  for (const uint64_t block : options.blocks)
    for (const uint32_t lanes : options.lanes)
      for (const uint32_t connections : ConnectionsOf(options, place.via)) {
        on_point();
        const Tuning tuning{.block_bytes = block, .lanes = lanes, .connections = connections};
        const StudyPoint point{.via = place.via, .bytes = bytes, .tuning = tuning};
        Pair pair{point, point};
        pair.serial.tuning.sequential = true;
        const bool more = MeasurePair(options, server, place, stop, &pair, result);
        result->points.push_back(std::move(pair.overlapped));
        result->points.push_back(std::move(pair.serial));
        if (!more) return false;
      }
  return true;
}

/// False when the study must end; `ready` where the place can be measured.
bool Prepare(const StudyServer& server, const StudyPlace& place, const std::stop_token& stop, bool* ready,
             StudyResult* result) {
  const Status status = server.prepare ? server.prepare(place, stop) : Status();
  result->interrupted = stop.stop_requested();
  result->lost = !result->interrupted && status.code() == Code::kUnavailable;
  *ready = status.ok();
  if (!status.ok() && !result->interrupted) result->left_out.push_back({place, status});
  return !result->interrupted && !result->lost;
}

}  // namespace

const char* Name(Via via) {
  static constexpr const char* kNames[] = {"wire", "region", "resident"};
  return kNames[static_cast<size_t>(via)];
}

std::string InWords(Via via) {
  static constexpr const char* kWords[] = {"over the wire", "through shared memory", "from resident arrays"};
  return kWords[static_cast<size_t>(via)];
}

OperationSpec Going(OperationSpec spec, Via via) {
  if (via == Via::kRegion) spec.access = Access::kRegion;
  if (via == Via::kResident) {
    spec.access = Access::kResident;
    spec.resident = Stays::kAll;
  }
  return spec;
}

std::optional<double> StudyPoint::noise() const {
  if (latencies.size() < kLeastCalls) return std::nullopt;
  return Summarize(latencies).spread() / 2;
}

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

StudyResult RunStudy(const StudyOptions& options, const StudyServer& server, const std::stop_token& stop,
                     const std::function<void(size_t done, size_t all)>& on_point) {
  StudyResult result;
  size_t all = 0, done = 0;
  for (const Via via : options.vias)
    all += options.sizes.size() * options.blocks.size() * options.lanes.size() *
           ConnectionsOf(options, via).size();
  const auto next = [&] {
    if (on_point) on_point(done, all);
    ++done;
  };
  const auto largest = static_cast<size_t>(std::ranges::max_element(options.sizes) - options.sizes.begin());
  for (size_t size = 0; size < options.sizes.size(); ++size)
    for (const Via via : options.vias) {
      const StudyPlace place{size, via};
      bool ready = false;
      if (!Prepare(server, place, stop, &ready, &result)) return result;
      if (ready && !MeasurePlace(options, server, place, stop, next, &result)) return result;
      if (ready && size == largest && !TracePlace(server, place, stop, &result)) return result;
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

std::optional<Recommendation> Recommend(const std::vector<StudyPoint>& points, Via via) {
  uint64_t largest = 0;
  double best = 0;
  const auto measured = [&](const StudyPoint& point) { return point.via == via && point.stats.good > 0; };
  for (const StudyPoint& point : points)
    if (measured(point) && point.overlap()) largest = std::max(largest, point.bytes);
  const auto counts = [&](const StudyPoint& point) {
    return measured(point) && point.overlap() && point.bytes == largest;
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
  Recommendation recommendation{.via = via,
                                .tuning = chosen->tuning,
                                .bytes = chosen->bytes,
                                .bytes_per_second = chosen->bytes_per_second(),
                                .best_bytes_per_second = best,
                                .noise = chosen->noise(),
                                .bottleneck = BottleneckOf(chosen->stats)};
  for (const StudyPoint& point : points)
    if (measured(point) && !point.overlap() && point.bytes == largest && cost(point) == cost(*chosen)) {
      recommendation.serial_bytes_per_second = point.bytes_per_second();
      recommendation.serial_noise = point.noise();
    }
  return recommendation;
}

}  // namespace tilewire::load
