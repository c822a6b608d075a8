// Published vectors: what every implementation of compare.1, on every instruction set, must reproduce.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "kernels/compare/golden.h"
#include "kernels/compare/problem.h"
#include "tests/unit/compare_reference.h"
#include "tests/unit/problem_testing.h"

namespace tilewire::compare {
namespace {

using reference::Bytes;

TEST(CompareGolden, CoversEveryRealDTypeAndTileEdge) {
  std::set<std::string_view> names;
  for (const GoldenCase& golden : GoldenCases()) EXPECT_TRUE(names.insert(golden.name).second) << golden.name;
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    for (const int n : {1, 2, 3, 255, 256, 257, 4095, 4096, 4097, 12289})
      EXPECT_TRUE(names.contains(std::string(info.name) + "/" + std::to_string(n))) << info.name << " " << n;
  }
}

TEST(CompareGolden, AreThoseOfRmseWhereTheMetricsAre) {
  const auto theirs = rmse::GoldenCases();
  const auto ours = GoldenCases();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].name, theirs[i].name);
    EXPECT_EQ(ours[i].expected[0], theirs[i].rmse) << ours[i].name;
    EXPECT_EQ(ours[i].expected[1], theirs[i].mse) << ours[i].name;
    EXPECT_EQ(ours[i].expected[2], theirs[i].sum_squares) << ours[i].name;
  }
}

TEST(CompareGolden, TheHostAndTheTestsOwnReferenceReproduceThem) {
  std::mt19937_64 random(1);
  for (const GoldenCase& golden : GoldenCases()) {
    const auto spec = *MakeSpec(golden.dtype, std::vector<int64_t>{golden.n});
    Bytes a(static_cast<size_t>(spec.bytes())), b(a.size());
    FillGolden(golden, a.data(), b.data());
    const auto expected = std::to_array(golden.expected);
    EXPECT_EQ(reference::Compare(spec, {}, a, b)[0], expected) << golden.name;

    const auto problem = MakeProblem(*Plan::Make(spec, {}, {}));
    Alone alone;
    const auto results = tilewire::testing::RunAll(*problem, std::array{a, b}, false, alone, random);
    for (size_t m = 0; m < kMetrics; ++m) {
      uint64_t bits;
      std::memcpy(&bits, results[m].data(), 8);
      EXPECT_EQ(bits, expected[m]) << golden.name << " " << Name(static_cast<Metric>(m));
    }
  }
}

}  // namespace
}  // namespace tilewire::compare
