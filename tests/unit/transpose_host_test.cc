// The host version against the reference.
#include "tests/unit/sanitized.h"
#include "tests/unit/transpose_reference.h"

namespace tilewire::transpose {
namespace {

void RunBand(const Plan& plan, const Range& range, const std::vector<char>& in, std::vector<char>& out) {
  HostRange(plan, range, 0, HostItems(plan, range), in.data(), out.data());
}

std::vector<char> RunBands(const Plan& plan, const std::vector<char>& in) {
  std::vector<char> out(in.size());
  for (int64_t k = 0; k < plan.range_count(); ++k) RunBand(plan, plan.range(k), in, out);
  return out;
}

/// Index of the first byte that differs, or -1: a readable failure for megabytes.
int64_t FirstDifference(const std::vector<char>& a, const std::vector<char>& b) {
  if (a.size() != b.size()) return 0;
  const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first;
  return at == a.end() ? -1 : at - a.begin();
}

void CheckCase(const Case& c, uint64_t seed) {
  const Plan plan = MakePlan(c);
  const std::vector<char> in = RandomBytes(plan.input().bytes(), seed);
  const std::vector<char> expected = Reference(c, in);
  ASSERT_EQ(FirstDifference(RunBands(plan, in), expected), -1) << c.ToString();
  std::vector<char> whole(in.size());
  RunBand(plan, plan.whole(), in, whole);
  ASSERT_EQ(FirstDifference(whole, expected), -1) << c.ToString() << " as one band";
}

TEST(TransposeHost, KnownHardCases) {
  for (const Case& c : KnownHardCases()) CheckCase(c, 1);
}

TEST(TransposeHost, EveryDTypeAtEveryRank) {
  for (const DTypeInfo& info : AllDTypes()) {
    for (int rank = 0; rank <= kMaxRank; ++rank) {
      Case c{info.dtype, {}, {}};
      for (int a = 0; a < rank; ++a) c.dims.push_back(rank > 8 ? 1 + a % 2 : 2 + a % 3);
      for (int a = 0; a < rank; ++a) c.axes.push_back((a * 7 + 3) % rank);
      std::vector<bool> seen(static_cast<size_t>(rank));
      for (const int32_t a : c.axes) seen[static_cast<size_t>(a)] = true;
      if (std::count(seen.begin(), seen.end(), true) != rank) c.axes.clear();  // 7 divides the rank
      CheckCase(c, static_cast<uint64_t>(rank));
    }
  }
}

TEST(TransposeHost, RandomSmallCases) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < tilewire::testing::Cases(6000) && !HasFatalFailure(); ++i)
    CheckCase(RandomCase(random, 1 << (random() % 14)), seed);
}

TEST(TransposeHost, RandomLargeCases) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < tilewire::testing::Cases(60) && !HasFatalFailure(); ++i)
    CheckCase(RandomCase(random, 3 << 20), seed);
}

TEST(TransposeHost, EdgesOfTheTiles) {
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32, DType::kF64, DType::kC128})
    for (const int64_t rows : {1, 3, 4, 15, 16, 17, 63, 64, 65, 80, 129})
      for (const int64_t columns : {2, 7, 8, 9, 16, 31, 33, 64, 66, 127, 128})
        CheckCase({dtype, {rows, columns}, {}}, static_cast<uint64_t>(rows * columns));
}

TEST(TransposeHost, ShortRows) {
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32, DType::kC128})
    for (int64_t row = 1; row <= 70; ++row)
      CheckCase({dtype, {11, 37, row}, {1, 0, 2}}, static_cast<uint64_t>(row));
}

/// Every output byte is written by exactly one item of one band, and nothing else is.
void CheckOwnership(const Case& c) {
  const Plan plan = MakePlan(c);
  const std::vector<char> in = RandomBytes(plan.input().bytes(), 5);
  // The index of the band that owns each byte, carried through the reference by an array of band numbers.
  std::vector<char> owner(in.size());
  for (int64_t k = 0; k < plan.range_count(); ++k)
    std::fill(owner.begin() + plan.range(k).byte_begin, owner.begin() + plan.range(k).byte_end,
              static_cast<char>(k % 251));
  const std::vector<char> expected = Reference(c, in), owned = Reference(c, owner);
  for (int64_t k = 0; k < plan.range_count() && k < 4; ++k) {
    ASSERT_LE(plan.range_count(), 251);
    for (const int fill : {0, 0xff}) {
      std::vector<char> out(in.size(), static_cast<char>(fill));
      RunBand(plan, plan.range(k), in, out);
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], owned[i] == static_cast<char>(k) ? expected[i] : static_cast<char>(fill))
            << c.ToString() << " band " << k << " byte " << i;
    }
    if (!plan.keeps_leading_axis()) continue;
    const Range r = plan.range(k);
    for (int64_t i = 0; i < plan.input().bytes(); ++i)
      ASSERT_EQ(owned[static_cast<size_t>(i)] == static_cast<char>(k), i >= r.byte_begin && i < r.byte_end)
          << c.ToString() << ": band " << k << " fills its own bytes of the output";
  }
}

TEST(TransposeHost, BandsTouchOnlyTheirOwnOutput) {
  CheckOwnership({DType::kF32, {1500, 1021}, {}});
  CheckOwnership({DType::kU8, {3, 3000017}, {}});
  CheckOwnership({DType::kF64, {300, 31, 97}, {0, 2, 1}});
  CheckOwnership({DType::kF32, {1500, 1021}, {0, 1}});
  CheckOwnership({DType::kU8, {7, 1000003}, {0, 1}});
  CheckOwnership({DType::kF16, {41, 250, 333}, {1, 2, 0}});
  CheckOwnership({DType::kF16, {41, 250, 333}, {1, 0, 2}});
}

TEST(TransposeHost, ItemsMayBeSplitAnyWay) {
  std::mt19937_64 random(7);
  for (const Case& c : {Case{DType::kF32, {1500, 1021}, {}}, Case{DType::kU8, {3, 3000017}, {}},
                        Case{DType::kF16, {41, 250, 333}, {2, 0, 1}}, Case{DType::kF64, {800000}, {}}}) {
    const Plan plan = MakePlan(c);
    const std::vector<char> in = RandomBytes(plan.input().bytes(), 9);
    std::vector<char> out(in.size());
    for (int64_t k = plan.range_count(); k-- > 0;) {
      const Range r = plan.range(k);
      const int64_t items = HostItems(plan, r);
      EXPECT_LE(items, 2 + 4 * (r.byte_end - r.byte_begin) / (256 << 10)) << c.ToString();
      std::vector<int64_t> order(static_cast<size_t>(items));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (const int64_t item : order) HostRange(plan, r, item, item + 1, in.data(), out.data());
      HostRange(plan, r, items, items, in.data(), out.data());
    }
    EXPECT_EQ(FirstDifference(out, Reference(c, in)), -1) << c.ToString();
  }
}

}  // namespace
}  // namespace tilewire::transpose
