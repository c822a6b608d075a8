// Problems on host memory as an engine runs them: what the tests of every operation's problem share.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "kernels/operation/problem.h"

namespace tilewire::testing {

using Bytes = std::vector<unsigned char>;

/// Memory aligned as the engine's, filled with what no result is.
class Area {
 public:
  Area(Area&&) = default;  // the bytes stay where they are
  static constexpr unsigned char kFill = 0x77;

  explicit Area(int64_t bytes) : memory_(static_cast<size_t>(bytes) + 64, kFill) {
    void* at = memory_.data();
    size_t room = memory_.size();
    data_ = static_cast<std::byte*>(std::align(64, static_cast<size_t>(bytes), at, room));
  }
  std::byte* data() const { return data_; }

 private:
  std::vector<unsigned char> memory_;
  std::byte* data_;
};

/// Splits every loop over threads of its own, and counts how often an item of the last loop was done.
class Threads final : public Team {
 public:
  int threads() const override { return 5; }
  std::vector<int> seen;

 private:
  void Share(int64_t items, int64_t grain, const Pieces& body) override {
    seen.assign(static_cast<size_t>(items), 0);
    const int64_t step = std::max<int64_t>({grain, items / 7, 1});
    std::vector<std::thread> all;
    for (int64_t begin = 0; begin < items; begin += step)
      all.emplace_back([&, begin, end = std::min(begin + step, items)] {
        body(begin, end);
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
    for (std::thread& each : all) each.join();
  }
};

/// The results in an area that holds all of them, without what lies between them.
inline std::vector<Bytes> ResultsIn(const Problem& problem, const std::byte* area) {
  std::vector<Bytes> all;
  for (size_t i = 0; i < problem.results().size(); ++i) {
    const auto* const from = reinterpret_cast<const unsigned char*>(area) + problem.result_offset(i);
    all.emplace_back(from, from + problem.results()[i].bytes());
  }
  return all;
}

/// All ranges in a random order, then the finish. Each range finds its own bytes and no others; `windowed`:
/// at the start of the operands.
inline std::vector<Bytes> RunAll(const Problem& problem, std::span<const Bytes> operands, bool windowed,
                                 Team& team, std::mt19937_64& random) {
  const Area result(problem.result_bytes()), scratch(problem.scratch_bytes());
  Buffers buffers{.scratch = scratch.data()};
  problem.PlaceResults(result.data(), &buffers);
  std::vector<Area> areas;
  for (size_t i = 0; i < operands.size() && !windowed; ++i) areas.emplace_back(problem.operands()[i].bytes());
  std::vector<int64_t> order(static_cast<size_t>(problem.range_count()));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (const int64_t index : order) {
    const auto [begin, end] = problem.range_bytes(index);
    const auto bytes = static_cast<size_t>(end - begin);
    Buffers its = buffers;
    if (windowed) areas.clear();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (windowed) areas.emplace_back(end - begin);
      its.operands[i] = areas[i].data();
      std::memcpy(areas[i].data() + (windowed ? 0 : begin), operands[i].data() + begin, bytes);
    }
    if (windowed && problem.ranges_fill_result()) its.results[0] += begin;
    problem.RunHost({index}, its, team);
    if (windowed) continue;
    for (const Area& area : areas) std::memset(area.data() + begin, Area::kFill, bytes);
  }
  if (problem.has_finish()) problem.RunHost(Step::Finish(), buffers, team);
  return ResultsIn(problem, result.data());
}

}  // namespace tilewire::testing
