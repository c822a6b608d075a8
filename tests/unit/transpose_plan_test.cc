// Validation, canonical form and bands, without data.
#include <gmock/gmock.h>

#include "tests/unit/transpose_reference.h"

namespace tilewire::transpose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status Refusal(const std::vector<int64_t>& dims, const std::vector<int32_t>& axes) {
  auto plan = Plan::Make(*MakeSpec(DType::kF32, dims), axes);
  EXPECT_FALSE(plan);
  return plan ? Status() : plan.error();
}

TEST(TransposePlan, RefusesWhatIsNoPermutation) {
  const Status shorter = Refusal({2, 3, 4}, {1, 0});
  EXPECT_EQ(shorter.code(), Code::kInvalidArgument);
  EXPECT_THAT(shorter.ToString(),
              HasSubstr("axes is 2 axes; allowed: a permutation of all 3 axes of (2, 3, 4)"));
  EXPECT_THAT(Refusal({2, 3}, {0, 0}).ToString(), HasSubstr("axes is 0 twice"));
  EXPECT_THAT(Refusal({2, 3}, {1, -1}).ToString(), HasSubstr("axes is -1 twice"));
  EXPECT_THAT(Refusal({2, 3}, {0, 2}).ToString(), HasSubstr("axes is 2; allowed: -2 to 1"));
  EXPECT_THAT(Refusal({2, 3}, {0, -3}).ToString(), HasSubstr("axes is -3"));
  EXPECT_THAT(Refusal({2, 3}, {0, 1, 0}).ToString(), HasSubstr("axes is 0 twice"));
  EXPECT_THAT(Refusal({}, {0}).ToString(), HasSubstr("none for a 0-d array"));
}

TEST(TransposePlan, RefusesMoreBytesThanAnArrayMayHave) {
  // MakeSpec would have refused it; a spec put together by hand is refused all the same.
  const ArraySpec spec{DType::kC128, *Shape::Make(std::vector<int64_t>{int64_t{1} << 30, int64_t{1} << 30})};
  auto plan = Plan::Make(spec, {});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().ToString(), HasSubstr("at most 2^60 bytes"));
}

TEST(TransposePlan, ResultHasThePermutedShape) {
  EXPECT_THAT(MakePlan({DType::kBF16, {2, 3, 5}, {1, -1, 0}}).result().shape.dims(), ElementsAre(3, 5, 2));
  EXPECT_THAT(MakePlan({DType::kBF16, {2, 3, 5}, {}}).result().shape.dims(), ElementsAre(5, 3, 2));
  EXPECT_EQ(MakePlan({DType::kBF16, {2, 3, 5}, {}}).result().dtype, DType::kBF16);
  EXPECT_EQ(MakePlan({DType::kBF16, {}, {}}).result().shape.rank(), 0);
}

std::string Canonical(const Case& c) {
  const Layout layout = MakePlan(c).layout();
  std::string text = std::to_string(layout.element_bytes) + "B";
  for (int a = 0; a < layout.rank; ++a)
    text += " " + std::to_string(layout.dims[a]) + ":" + std::to_string(layout.in_strides[a]) + ">" +
            std::to_string(layout.out_strides[a]);
  return text;
}

TEST(TransposePlan, CanonicalForm) {
  EXPECT_EQ(Canonical({DType::kF32, {}, {}}), "4B 1:1>1");
  EXPECT_EQ(Canonical({DType::kF32, {1, 1}, {}}), "4B 1:1>1");
  EXPECT_EQ(Canonical({DType::kF32, {3, 5}, {0, 1}}), "4B 15:1>1") << "identity is one axis";
  EXPECT_EQ(Canonical({DType::kF32, {4, 4}, {0, 1}}), "16B 4:1>1") << "and widens";
  EXPECT_EQ(Canonical({DType::kF32, {1, 6, 1, 5, 1}, {4, 3, 2, 1, 0}}), "4B 6:5>1 5:1>6") << "unit axes drop";
  EXPECT_EQ(Canonical({DType::kU8, {2, 3, 5, 7}, {2, 3, 0, 1}}), "1B 6:35>1 35:1>6") << "neighbours fuse";
  EXPECT_EQ(Canonical({DType::kU8, {5, 3, 8}, {1, 0, 2}}), "8B 5:3>1 3:1>5")
      << "a shared axis becomes the element";
  EXPECT_EQ(Canonical({DType::kU8, {5, 3, 24}, {1, 0, 2}}), "8B 5:9>3 3:3>15 3:1>1")
      << "or what is odd of it stays";
  EXPECT_EQ(Canonical({DType::kC128, {5, 3, 2}, {1, 0, 2}}), "16B 5:6>2 3:2>10 2:1>1")
      << "16 bytes are the limit";
  EXPECT_EQ(Canonical({DType::kU8, {2, 1, 3, 2}, {3, 0, 1, 2}}), "1B 6:2>1 2:1>6")
      << "neighbours across a unit axis";
}

/// Bands follow each other, cover everything, and are the boxes they say they are.
void CheckBands(const Case& c, bool all) {
  const Plan plan = MakePlan(c);
  const Layout& layout = plan.layout();
  ASSERT_GE(plan.range_count(), 1);
  ASSERT_LE(plan.range_count(), 64 << 10) << c.ToString();
  int64_t covered = 0;
  for (int64_t k = 0; k < plan.range_count(); ++k) {
    if (!all && k == 500 && plan.range_count() > 1000) k = plan.range_count() - 500;  // both ends of many
    const Range r = plan.range(k);
    const int64_t begin = k == 0 ? 0 : plan.range(k - 1).byte_end;
    ASSERT_EQ(r.byte_begin, begin) << c.ToString() << " band " << k;
    ASSERT_EQ(r.byte_begin, r.in_offset * layout.element_bytes) << c.ToString() << " band " << k;
    int64_t elements = 1, last_in = r.in_offset, last_out = r.out_offset;
    for (int a = 0; a < layout.rank; ++a) {
      ASSERT_GE(r.dims[a], 1);
      ASSERT_LE(r.dims[a], layout.dims[a]);
      elements *= r.dims[a];
      last_in += (r.dims[a] - 1) * layout.in_strides[a];
      last_out += (r.dims[a] - 1) * layout.out_strides[a];
    }
    ASSERT_EQ(r.byte_end - r.byte_begin, elements * layout.element_bytes) << c.ToString() << " band " << k;
    ASSERT_EQ((last_in + 1) * layout.element_bytes, r.byte_end) << "a band is one contiguous run of input";
    ASSERT_LT(last_out * layout.element_bytes, plan.result().bytes());
    if (plan.keeps_leading_axis()) {
      ASSERT_EQ(r.out_offset, r.in_offset) << c.ToString();
      ASSERT_EQ(last_out, last_in) << c.ToString();
    }
    covered += r.byte_end - r.byte_begin;
  }
  ASSERT_EQ(plan.range(plan.range_count() - 1).byte_end, plan.input().bytes()) << c.ToString();
  if (all) {
    ASSERT_EQ(covered, plan.input().bytes()) << c.ToString();
  }
  ASSERT_EQ(plan.whole().byte_end, plan.input().bytes());
}

TEST(TransposePlan, BandsPartitionTheInput) {
  for (const Case& c : KnownHardCases()) CheckBands(c, true);
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300 && !::testing::Test::HasFatalFailure(); ++i)
    CheckBands(RandomCase(random, int64_t{1} << (random() % 50)), false);
}

TEST(TransposePlan, BandsOfTheLargestArrays) {
  const int64_t k30 = int64_t{1} << 30;
  CheckBands({DType::kU8, {k30, k30}, {}}, false);
  CheckBands({DType::kU8, {k30 - 1, k30 + 1}, {}}, false);
  CheckBands({DType::kU8, {3, k30 * k30 / 4 + 1}, {}}, false);
  CheckBands({DType::kU8, {k30 * k30 / 4 + 1, 3}, {}}, false);
  CheckBands({DType::kU8, {2, k30, k30 / 2}, {0, 2, 1}}, false);
  CheckBands({DType::kU8, {k30, k30 / 2, 2}, {0, 2, 1}}, false);
  CheckBands({DType::kU8, {k30 * k30}, {}}, false);
  CheckBands({DType::kC128, {k30, k30 / 16}, {}}, false);
  CheckBands({DType::kF32, {int64_t{1} << 29, 7, 3, 5}, {3, 0, 2, 1}}, false);
}

TEST(TransposePlan, BandsAreOfAUsefulSize) {
  const auto band = [](const Case& c) {
    const Range r = MakePlan(c).range(0);
    return r.byte_end - r.byte_begin;
  };
  const int64_t mib = 1 << 20;
  EXPECT_EQ(MakePlan({DType::kF32, {1000, 1000}, {}}).range_count(), 1);
  EXPECT_EQ(band({DType::kF32, {16384, 16384}, {}}), 4 * mib);
  EXPECT_GT(band({DType::kU8, {300, 17, 111, 777}, {3, 0, 2, 1}}), mib);
  EXPECT_LE(band({DType::kU8, {300, 17, 111, 777}, {3, 0, 2, 1}}), 4 * mib);
  // Rows of 4 MiB: one alone would write single elements, so bands hold several.
  const Range wide = MakePlan({DType::kF32, {100, 1 << 20}, {}}).range(0);
  EXPECT_GE(wide.dims[0], 8);
  // A leading axis that stays is cut even where one index of it is large.
  EXPECT_TRUE(MakePlan({DType::kF32, {16, 4096, 4096}, {0, 2, 1}}).keeps_leading_axis());
  EXPECT_EQ(band({DType::kF32, {16, 4096, 4096}, {0, 2, 1}}), 64 * mib);
}

TEST(TransposePlan, KeepsLeadingAxis) {
  EXPECT_TRUE(MakePlan({DType::kF32, {100, 70, 30}, {0, 2, 1}}).keeps_leading_axis());
  EXPECT_TRUE(MakePlan({DType::kF32, {100, 70, 30}, {0, 1, 2}}).keeps_leading_axis()) << "identity";
  EXPECT_TRUE(MakePlan({DType::kF32, {1, 70, 30}, {1, 0, 2}}).keeps_leading_axis())
      << "identity but for a unit axis";
  EXPECT_TRUE(MakePlan({DType::kF32, {}, {}}).keeps_leading_axis());
  EXPECT_FALSE(MakePlan({DType::kF32, {100, 70, 30}, {1, 0, 2}}).keeps_leading_axis());
  EXPECT_FALSE(MakePlan({DType::kF32, {100, 70}, {}}).keeps_leading_axis());
  EXPECT_FALSE(MakePlan({DType::kF32, {8, 1 << 14, 1 << 14}, {0, 2, 1}}).keeps_leading_axis())
      << "bands inside one gigabyte of the leading axis";
}

}  // namespace
}  // namespace tilewire::transpose
