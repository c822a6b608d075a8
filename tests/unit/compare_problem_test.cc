// Problems in every cut give the same bits: ranges in any order, everything at once, windows that hold a
// range's bytes alone, threads that share a step.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "kernels/compare/problem.h"
#include "tests/unit/compare_reference.h"
#include "tests/unit/sanitized.h"

namespace tilewire::compare {
namespace {

using reference::Bytes;

/// Memory aligned as the engine's, filled with what no result is.
class Area {
 public:
  explicit Area(int64_t bytes) : memory_(static_cast<size_t>(bytes) + 64, 0x77) {
    void* at = memory_.data();
    size_t room = memory_.size();
    data_ = static_cast<std::byte*>(std::align(64, static_cast<size_t>(bytes), at, room));
  }
  std::byte* data() const { return data_; }

 private:
  std::vector<unsigned char> memory_;
  std::byte* data_;
};

/// Splits every loop over threads of its own.
class Threads final : public Team {
 public:
  int threads() const override { return 5; }

 private:
  void Share(int64_t items, int64_t grain, const Pieces& body) override {
    const int64_t step = std::max<int64_t>({grain, items / 7, 1});
    std::vector<std::thread> all;
    for (int64_t begin = 0; begin < items; begin += step)
      all.emplace_back([&body, begin, end = std::min(begin + step, items)] { body(begin, end); });
    for (std::thread& each : all) each.join();
  }
};

struct Operands {
  Bytes a, b;
};

/// The values, metric after metric, without what lies between them.
std::vector<Bytes> ValuesOf(const Problem& problem, const std::byte* result) {
  std::vector<Bytes> all;
  for (size_t i = 0; i < problem.results().size(); ++i) {
    const auto* const from = reinterpret_cast<const unsigned char*>(result) + problem.result_offset(i);
    all.emplace_back(from, from + problem.results()[i].bytes());
  }
  return all;
}

/// Ranges in a random order. `windowed`: each finds its own bytes alone, at the start of the operands.
std::vector<Bytes> RunAll(const Problem& problem, const Operands& operands, bool windowed, Team& team,
                          std::mt19937_64& random) {
  const Area result(problem.result_bytes()), scratch(problem.scratch_bytes());
  std::vector<int64_t> order(static_cast<size_t>(problem.range_count()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  for (const int64_t index : order) {
    const ByteInterval bytes = problem.range_bytes(index);
    const int64_t count = bytes.end - bytes.begin, size = problem.operands()[0].bytes();
    // Whatever lies outside of the range may be anything.
    const Area a(windowed ? count : size), b(windowed ? count : size);
    const int64_t to = windowed ? 0 : bytes.begin;
    std::memcpy(a.data() + to, operands.a.data() + bytes.begin, static_cast<size_t>(count));
    std::memcpy(b.data() + to, operands.b.data() + bytes.begin, static_cast<size_t>(count));
    Buffers buffers{.operands = {a.data(), b.data()}, .scratch = scratch.data()};
    problem.PlaceResults(result.data(), &buffers);
    problem.RunHost({index}, buffers, team);
  }
  Buffers rest{.scratch = scratch.data()};
  problem.PlaceResults(result.data(), &rest);
  if (problem.has_finish()) problem.RunHost(Step::Finish(), rest, team);
  return ValuesOf(problem, result.data());
}

TEST(CompareProblem, TheSameBitsInEveryCut) {
  const struct {
    DType dtype;
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
    bool windows;
  } cases[] = {{DType::kF32, {2'100'003}, {}, true},        {DType::kF64, {3, 700'001}, {1}, true},
               {DType::kU8, {5'000'000}, {0}, true},        {DType::kI64, {200'000, 4}, {1}, true},
               {DType::kF16, {900, 3000}, {1}, true},       {DType::kF64, {5, 300, 401}, {1, 2}, true},
               {DType::kF32, {6, 500, 600}, {1}, true},     {DType::kF32, {20'000, 80}, {0}, false},
               {DType::kBF16, {60, 50, 700}, {0, 2}, false}};
  std::mt19937_64 random(11);
  Alone alone;
  Threads threads;
  for (const auto& one : cases) {
    const ArraySpec spec = *MakeSpec(one.dtype, one.dims);
    Operands operands{rmse::reference::RandomOperand(spec, true, random),
                      rmse::reference::RandomOperand(spec, true, random)};
    reference::Strew(spec, 100'000, operands.a, operands.b, random);
    const auto all = reference::Results(spec, one.axes, {}, operands.a, operands.b);
    for (const std::vector<int32_t>& metrics : {std::vector<int32_t>{}, {8, 0, 9, 7}, {2, 6, 3}, {1}}) {
      if (tilewire::testing::kSanitized && metrics.size() == 3) continue;  // costs the most there
      std::vector<Bytes> wanted;
      for (const int32_t metric : metrics) wanted.push_back(all[static_cast<size_t>(metric)]);
      if (metrics.empty()) wanted = all;
      const auto problem = MakeProblem(*Plan::Make(spec, one.axes, metrics));
      EXPECT_EQ(RunAll(*problem, operands, false, alone, random), wanted);
      EXPECT_EQ(RunAll(*problem, operands, false, threads, random), wanted);
      EXPECT_EQ(RunAll(*problem->Whole(), operands, false, threads, random), wanted);
      EXPECT_GT(problem->range_count(), 1);
      const auto windowed = problem->Windowed();
      ASSERT_EQ(windowed.has_value(), one.windows) << spec.shape.ToString();
      if (windowed) EXPECT_EQ(RunAll(**windowed, operands, true, threads, random), wanted);
    }
  }
}

TEST(CompareProblem, SaysWhyItHasNoWindows) {
  const auto why = [](std::vector<int64_t> dims, std::vector<int32_t> axes) {
    const auto problem = MakeProblem(*Plan::Make(*MakeSpec(DType::kF32, dims), axes, {}));
    const auto windowed = problem->Windowed();
    return windowed ? "it has them" : windowed.error().ToString();
  };
  const std::string far_apart =
      "FAILED_PRECONDITION: values of this comparison are over bytes that lie too far apart; the reduced "
      "axes must be the last ones";
  EXPECT_EQ(why({20'000, 80}, {0}), far_apart);
  EXPECT_EQ(why({2000, 3, 1000}, {0, 2}), far_apart) << "the last axis is reduced, but not only that";
  EXPECT_EQ(why({100}, {}),
            "FAILED_PRECONDITION: this comparison cannot be cut into parts that come one after the other");
}

TEST(CompareProblem, RunsWithoutAFinishWhereSegmentsAreSingleTiles) {
  const auto problem = MakeProblem(
      *Plan::Make(*MakeSpec(DType::kF32, std::vector<int64_t>{500'000, 16}), std::vector<int32_t>{1}, {}));
  EXPECT_GT(problem->range_count(), 1);
  EXPECT_FALSE(problem->has_finish());
  EXPECT_EQ(problem->scratch_bytes(), 0);
}

}  // namespace
}  // namespace tilewire::compare
