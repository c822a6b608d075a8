// What is known of operations, whichever they are: attributes, checks, texts, and their work by steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/gaussian/problem.h"
#include "kernels/operation/copy.h"
#include "kernels/operation/descriptor.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"
#include "tests/unit/problem_testing.h"

namespace tilewire {
namespace {

using testing::Bytes;
using testing::RunAll;
using testing::Threads;

constexpr const Descriptor* kAll[] = {&rmse::kDescriptor, &transpose::kDescriptor, &gaussian::kDescriptor};

ArraySpec Spec(DType dtype, const std::vector<int64_t>& dims) {
  return MakeSpec(dtype, dims).value();
}

/// The errors of a request: "field: value; allowed".
std::string ErrorOf(const Descriptor& descriptor, const std::vector<ArraySpec>& operands,
                    const Attributes& attributes) {
  const auto problem = descriptor.Make(operands, attributes);
  if (problem) return "";
  EXPECT_EQ(problem.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(problem.error().reason(), "BAD_VALUE");
  const Status::Detail& detail = *problem.error().detail();
  return detail.field + ": " + detail.value + "; " + detail.allowed;
}

/// Random bytes for its operands.
std::vector<Bytes> OperandsOf(const Problem& problem, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Bytes> operands;
  for (const ArraySpec& spec : problem.operands())
    std::ranges::generate(operands.emplace_back(static_cast<size_t>(spec.bytes())),
                          [&] { return static_cast<unsigned char>(random() >> 56); });
  return operands;
}

TEST(Attributes, KeepTheLastValueOfAName) {
  Attributes attributes{{"axes", std::vector<int32_t>{1, -1}}, {"output", int64_t{2}}};
  attributes.Set("output", int64_t{1});
  attributes.Set("mean", 0.5);
  EXPECT_EQ(attributes.entries().size(), 3U);
  EXPECT_EQ(attributes.integer("output"), 1);
  EXPECT_EQ(attributes.real("mean"), 0.5);
  EXPECT_EQ(attributes.integers("axes").back(), -1);
  EXPECT_EQ(attributes.Find("axis"), nullptr);
}

TEST(Descriptor, NamesAreUniqueAndWithinBounds) {
  std::set<std::string_view> names, versions;
  for (const Descriptor* each : kAll) {
    EXPECT_TRUE(names.insert(each->name).second) << each->name;
    EXPECT_TRUE(versions.insert(each->numeric_version).second) << each->numeric_version;
    EXPECT_NE(each->numeric_version.find('.'), std::string_view::npos);
    EXPECT_GE(each->operands.size(), 1U);
    EXPECT_LE(each->operands.size(), size_t{kMaxOperands});
    std::set<std::string_view> attributes;
    for (const AttributeInfo& info : each->attributes) {
      EXPECT_TRUE(attributes.insert(info.name).second) << info.name;
      EXPECT_FALSE(info.allowed.empty()) << info.name;
    }
  }
}

TEST(Descriptor, ExamplesAreProblemsOfItAndCoverWhatItAccepts) {
  for (const Descriptor* each : kAll) {
    std::set<std::string> texts;
    for (const Example& example : each->examples()) {
      const auto problem = each->Make(example.operands, example.attributes);
      ASSERT_TRUE(problem) << problem.error().ToString();
      EXPECT_EQ((*problem)->descriptor(), each);
      EXPECT_EQ((*problem)->name(), each->name);
      EXPECT_EQ((*problem)->numeric_version(), each->numeric_version);
      EXPECT_EQ((*problem)->operands().size(), each->operands.size());
      EXPECT_TRUE(each->accepts(example.operands[0].dtype));
      EXPECT_TRUE(texts.insert(each->Text(example.operands, example.attributes)).second);
    }
    EXPECT_FALSE(texts.empty());
  }
}

TEST(Descriptor, WhatItAcceptsIsWhatMakeTakes) {
  for (const Descriptor* each : kAll)
    for (const DTypeInfo& info : AllDTypes()) {
      const std::vector<ArraySpec> operands(each->operands.size(), Spec(info.dtype, {3, 4}));
      EXPECT_EQ(each->Make(operands, {}).has_value(), each->accepts(info.dtype))
          << each->name << " " << info.name;
    }
}

TEST(Descriptor, RefusalsNameFieldValueAndWhatIsAllowed) {
  const ArraySpec f32 = Spec(DType::kF32, {4, 5}), f64 = Spec(DType::kF64, {4, 5}),
                  turned = Spec(DType::kF32, {5, 4});
  const Attributes axes{{"axes", std::vector<int32_t>{2}}};
  EXPECT_EQ(ErrorOf(rmse::kDescriptor, {f32}, {}), "operands: 1 specs; 2");
  EXPECT_EQ(ErrorOf(rmse::kDescriptor, {f32, f64}, {}), "b.dtype: f64; f32, as operand a");
  EXPECT_EQ(ErrorOf(rmse::kDescriptor, {f32, turned}, {}), "b.shape: (5, 4); (4, 5), as operand a");
  EXPECT_EQ(ErrorOf(rmse::kDescriptor, {f32, f32}, {{"output", int64_t{3}}}),
            "output: 3; a tilewire.v1.RmseOutput, 0 to 2");
  EXPECT_EQ(ErrorOf(rmse::kDescriptor, {f32, f32}, {{"output", int64_t{-1}}}),
            "output: -1; a tilewire.v1.RmseOutput, 0 to 2");
  EXPECT_EQ(ErrorOf(rmse::kDescriptor, {f32, f32}, axes), "axes: 2; -2 to 1");
  EXPECT_EQ(ErrorOf(transpose::kDescriptor, {f32}, axes), "axes: 2; -2 to 1");
  EXPECT_EQ(ErrorOf(gaussian::kDescriptor, {f32}, {{"stddev", 0.0}}),
            "stddev: 0; any finite number greater than 0");
  EXPECT_EQ(ErrorOf(gaussian::kDescriptor, {f32}, axes),
            "axes: given; an attribute of gaussian_pdf: mean, stddev");
  EXPECT_EQ(ErrorOf(gaussian::kDescriptor, {f32}, {{"mean", int64_t{1}}}), "mean: an integer; a number");
  EXPECT_EQ(ErrorOf(rmse::kDescriptor, {f32, f32}, {{"axes", 1.0}}), "axes: a number; a list of integers");
}

TEST(Descriptor, WhatIsNotGivenHasItsFallback) {
  const ArraySpec spec = Spec(DType::kF64, {6});
  const auto problem = gaussian::kDescriptor.Make({&spec, 1}, {}).value();
  const Bytes zeros(static_cast<size_t>(spec.bytes()));
  std::mt19937_64 random(1);
  Alone alone;
  const auto results = RunAll(*problem, {&zeros, 1}, false, alone, random);
  double first;
  std::memcpy(&first, results[0].data(), sizeof first);
  EXPECT_NEAR(first, 0.3989422804014327, 1e-15);
}

TEST(Problem, ResultsLieAtMultiplesOf256Bytes) {
  class Three final : public Problem {
   public:
    Three() : Problem(nullptr) {}
    std::span<const ArraySpec> operands() const override { return {results_, 1}; }
    std::span<const ArraySpec> results() const override { return results_; }
    int64_t range_count() const override { return 1; }
    ByteInterval range_bytes(int64_t) const override { return {0, 1}; }
    void RunHost(Step, const Buffers&, Team&) const override {}

   private:
    const ArraySpec results_[3] = {Spec(DType::kU8, {257}), Spec(DType::kF64, {32}), Spec(DType::kF32, {3})};
  };
  const Three three;
  EXPECT_EQ(three.result_offset(0), 0);
  EXPECT_EQ(three.result_offset(1), 512);
  EXPECT_EQ(three.result_offset(2), 768);
  EXPECT_EQ(three.result_bytes(), 780);
  EXPECT_EQ(three.payload_bytes(), 257 + 256 + 12);
  for (const auto& [offset, result] :
       {std::pair(0, 0U), {256, 0U}, {511, 0U}, {512, 1U}, {767, 1U}, {768, 2U}, {779, 2U}})
    EXPECT_EQ(three.result_at(offset), result) << offset;
  std::vector<std::byte> area(1024);
  Buffers buffers;
  three.PlaceResults(area.data(), &buffers);
  EXPECT_EQ(buffers.results[2], area.data() + 768);
  EXPECT_EQ(MakeCopy(Spec(DType::kU8, {300}))->result_bytes(), 300);
}

TEST(Problem, AloneOrSharedWholeOrByRangesTheBitsAreTheSame) {
  const ArraySpec large = Spec(DType::kF32, {1200, 1001}), cube = Spec(DType::kF32, {120, 100, 101});
  const auto axis = [](int32_t at) { return Attributes{{"axes", std::vector<int32_t>{at}}}; };
  std::vector<std::unique_ptr<Problem>> problems;
  problems.push_back(rmse::kDescriptor.Make(std::array{large, large}, {}).value());
  problems.push_back(rmse::kDescriptor.Make(std::array{large, large}, axis(0)).value());
  problems.push_back(rmse::kDescriptor.Make(std::array{cube, cube}, axis(1)).value());
  problems.push_back(transpose::kDescriptor.Make({&cube, 1}, {}).value());
  problems.push_back(gaussian::kDescriptor.Make({&large, 1}, {{"mean", 0.5}}).value());
  problems.push_back(MakeCopy(cube));
  Alone alone;
  Threads threads;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < problems.size(); ++i) {
    SCOPED_TRACE(i);
    const Problem& problem = *problems[i];
    const std::vector<Bytes> operands = OperandsOf(problem, i);
    const auto expected = RunAll(problem, operands, false, alone, random);
    EXPECT_EQ(problem.range_finishes(), i < 3 && problem.range_count() == 1);
    EXPECT_TRUE(RunAll(problem, operands, false, threads, random) == expected);
    EXPECT_THAT(threads.seen, ::testing::Each(1));
    if (const auto whole = problem.Whole()) {
      EXPECT_EQ(whole->range_count(), 1);
      EXPECT_EQ(whole->range_bytes(0).end, problem.operands()[0].bytes());
      EXPECT_TRUE(RunAll(*whole, operands, false, threads, random) == expected);
    }
    if (const auto windowed = problem.Windowed())
      EXPECT_TRUE(RunAll(**windowed, operands, true, threads, random) == expected);
  }
}

TEST(Problem, OfACopyTheResultIsTheOperand) {
  const auto copy = MakeCopy(Spec(DType::kU16, {777'777}));
  const std::vector<Bytes> operands = OperandsOf(*copy, 4);
  Threads threads;
  std::mt19937_64 random(1);
  EXPECT_TRUE(RunAll(*copy, operands, false, threads, random) == operands);
}

TEST(Team, AloneCoversEveryItemOnce) {
  Alone alone;
  for (const int64_t grain : {-1, 0, 1, 3, 100}) {
    std::vector<int> seen(10);
    alone.For(10, grain, [&](int64_t begin, int64_t end) {
      EXPECT_LE(end - begin, std::max<int64_t>(grain, 1));
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    EXPECT_EQ(seen, std::vector<int>(10, 1)) << grain;
  }
}

}  // namespace
}  // namespace tilewire
