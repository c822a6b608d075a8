// Published vectors: what every implementation of rmse.1, on every instruction set, must reproduce.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/rmse/golden.h"
#include "kernels/rmse/host_isa.h"
#include "tests/unit/rmse_reference.h"

namespace tilewire::rmse {
namespace {

TEST(RmseGolden, CoversEveryRealDTypeAndTileEdge) {
  std::set<std::string_view> names;
  for (const GoldenCase& golden : GoldenCases()) EXPECT_TRUE(names.insert(golden.name).second) << golden.name;
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    for (const int n : {1, 2, 3, 255, 256, 257, 4095, 4096, 4097, 12289})
      EXPECT_TRUE(names.contains(std::string(info.name) + "/" + std::to_string(n))) << info.name << " " << n;
  }
}

TEST(RmseGolden, EveryInstructionSetReproducesThem) {
  for (const GoldenCase& golden : GoldenCases()) {
    const auto spec = *MakeSpec(golden.dtype, std::vector<int64_t>{golden.n});
    reference::Bytes a(static_cast<size_t>(spec.bytes())), b(a.size());
    FillGolden(golden, a.data(), b.data());
    for (const HostIsa& isa : SupportedHostIsas()) {
      const uint64_t expected[] = {golden.rmse, golden.mse, golden.sum_squares};
      for (const Output output : {Output::kRmse, Output::kMse, Output::kSumSquares}) {
        const Plan plan = *Plan::Make(spec, {}, output);
        std::vector<double> sums(static_cast<size_t>(plan.layout().tiles));
        isa.tiles({a.data(), b.data(), sums.data(), &plan.layout(), plan.whole(), 0, plan.layout().tiles,
                   golden.dtype});
        double result;
        HostFinish(plan, 0, 1, sums.data(), &result);
        uint64_t bits;  // not Bits(): the NaN must be the canonical one already
        std::memcpy(&bits, &result, 8);
        EXPECT_EQ(bits, expected[static_cast<int>(output)])
            << golden.name << " " << isa.name << " output " << static_cast<int>(output);
      }
    }
  }
}

TEST(RmseGolden, TheTestsOwnReferenceReproducesThem) {
  for (const GoldenCase& golden : GoldenCases()) {
    const auto spec = *MakeSpec(golden.dtype, std::vector<int64_t>{golden.n});
    reference::Bytes a(static_cast<size_t>(spec.bytes())), b(a.size());
    FillGolden(golden, a.data(), b.data());
    EXPECT_EQ(reference::Bits(reference::Rmse(spec, {}, Output::kRmse, a, b)[0]), golden.rmse) << golden.name;
  }
}

}  // namespace
}  // namespace tilewire::rmse
