// Which CUDA kernel takes which task: pure, so tested where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "kernels/rmse/choice.h"
#include "tests/unit/rmse_reference.h"
#include "tests/unit/sanitized.h"

namespace tilewire::rmse::cuda {
namespace {

constexpr Device kH200{.processors = 132, .shared = 227 << 10};
constexpr int kUsualShared = 48 << 10;  // that a block has on every device

Task TaskFor(DType dtype, const std::vector<int64_t>& dims, const std::vector<int32_t>& axes) {
  const Plan plan = *Plan::Make(*MakeSpec(dtype, dims), axes, Output::kRmse);
  return {.kind = KindOf(dtype).kind,
          .layout = plan.layout(),
          .range = plan.whole(),
          .whole = true,
          .device = kH200};
}

std::string Chosen(const Task& task) {
  return ShapeName(Choose(task));
}

/// Whether the shape is one that is compiled for the kind.
bool Exists(const Choice& choice) {
  const auto at = static_cast<size_t>(choice.shape);
  switch (choice.kernel) {
    case Kernel::kTiles:
      return at < kTilesShapes.size();
    case Kernel::kGroups:
      return at < kGroupShapes.size();
    case Kernel::kStaged:
      return at < kStagedShapes.size() && HasStaged(choice.kind, kStagedShapes[at]);
    case Kernel::kRing:
      return at < RingShapes(choice.kind).size();
    case Kernel::kStream:
      return at < StreamShapes(SizeOf(choice.kind)).size();
    case Kernel::kWalk:
      return at < kWalkShapes.size() && HasWalk(choice.kind, kWalkShapes[at]);
    case Kernel::kFinish:
      break;
  }
  return false;
}

void ExpectLaunchable(const Choice& choice, const Task& task, const std::string& what) {
  EXPECT_TRUE(Exists(choice)) << what;
  EXPECT_GT(choice.share, 0) << what;
  EXPECT_LE(choice.share, 1) << what;
  EXPECT_GE(choice.blocks, 1) << what;
  EXPECT_GE(choice.threads, 32) << what;
  EXPECT_LE(choice.threads, 1024) << what;
  EXPECT_EQ(choice.threads % 32, 0) << what;
  EXPECT_LE(choice.shared, std::max<int64_t>(task.device.shared, kUsualShared)) << what;
  EXPECT_GE(choice.sums, 1) << what;
  EXPECT_LE(choice.sums, task.layout.tiles) << what;
}

TEST(RmseChoice, EveryTaskHasOneThatCanBeLaunched) {
  std::mt19937_64 random(tilewire::testing::Seed(71));
  const Device devices[] = {
      kH200, {.processors = 1, .shared = kUsualShared}, {.processors = 40, .shared = 99 << 10}};
  for (int i = 0; i < tilewire::testing::Cases(20000) && !::testing::Test::HasFailure(); ++i) {
    const auto one = reference::MakeRandomCase(i % 10 == 0 ? 30'000'000 : 40'000, random);
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    const int size = SizeOf(one.spec.dtype);
    Task task{.kind = KindOf(one.spec.dtype).kind,
              .layout = plan.layout(),
              .range = i % 3 == 0 ? plan.range(plan.range_count() - 1) : plan.whole(),
              .whole = i % 3 != 0,
              .device = devices[i % std::size(devices)]};
    if (i % 2 == 0) task.a_at = task.b_at = static_cast<int>(random() % 16) / size * size;
    if (i % 8 == 0) task.b_at = static_cast<int>(random() % 16) / size * size;
    const std::vector<Choice> all = AllChoices(task);
    const Choice best = Choose(task);
    bool walks = false;
    for (const Choice& choice : all) {
      ExpectLaunchable(choice, task, reference::Describe(one) + " by " + ShapeName(choice));
      EXPECT_LE(choice.share, best.share);
      walks = walks || choice.kernel == Kernel::kWalk;
    }
    EXPECT_TRUE(walks) << reference::Describe(one);
    EXPECT_GT(best.share, 0) << reference::Describe(one);
  }
}

TEST(RmseChoice, AtMostEightKernels) {
  EXPECT_LE(std::size(kKernelNames), 8u);
}

// What was measured: words of a segment up to which warps sum it from shared memory.
TEST(RmseChoice, SegmentsWhoseLastRoundOfLanesIsBadlyFilledAreStaged) {
  const auto chosen = [](DType dtype, int64_t words) {
    return Chosen(TaskFor(dtype, {100'000, words * 16 / SizeOf(dtype)}, {1}));
  };
  const struct {
    DType dtype;
    int64_t most, rounds;
  } borders[] = {{DType::kU8, 40, 2},   {DType::kU8, 80, 3},   {DType::kU16, 52, 2},  {DType::kU16, 90, 3},
                 {DType::kF16, 57, 2},  {DType::kF16, 112, 4}, {DType::kF16, 142, 5}, {DType::kF32, 82, 3},
                 {DType::kF32, 134, 5}, {DType::kF64, 106, 4}};
  for (const auto& border : borders) {
    const int64_t first = (border.rounds - 1) * 32 + 1;
    EXPECT_EQ(chosen(border.dtype, first), "StagedKernel, by warps") << Name(border.dtype);
    EXPECT_EQ(chosen(border.dtype, border.most), "StagedKernel, by warps") << Name(border.dtype);
    EXPECT_NE(chosen(border.dtype, border.most + 1), "StagedKernel, by warps") << Name(border.dtype);
  }
  EXPECT_EQ(chosen(DType::kF32, 40), "StagedKernel, by threads, every 32 elements");
  EXPECT_EQ(chosen(DType::kF32, 41), "GroupKernel, 32 lanes, 2 words");
}

TEST(RmseChoice, FewTilesAreSummedByBlocks) {
  EXPECT_EQ(Chosen(TaskFor(DType::kF32, {2048, 2048}, {})), "TilesKernel, by blocks");
  EXPECT_EQ(Chosen(TaskFor(DType::kF32, {2048, 2048}, {1})), "TilesKernel, by blocks");
  EXPECT_EQ(Chosen(TaskFor(DType::kF32, {1 << 28}, {})), "TilesKernel, by warps, tiles");
}

// Several tiles of a segment become one sum only where the task is everything.
TEST(RmseChoice, RangesKeepASumForEachTile) {
  Task task = TaskFor(DType::kF32, {1 << 28}, {});
  EXPECT_EQ(Choose(task).sums, 4096);
  task.whole = false;
  EXPECT_EQ(Choose(task).sums, task.layout.tiles);
}

TEST(RmseChoice, WholeWordsDecideForHalves) {
  EXPECT_EQ(Chosen(TaskFor(DType::kF16, {1 << 20, 72}, {1})), "StagedKernel, by words, up to 16");
  EXPECT_EQ(Chosen(TaskFor(DType::kF16, {1 << 20, 64}, {1})), "GroupKernel, 8 lanes, 1 word");
  EXPECT_EQ(Chosen(TaskFor(DType::kF16, {1 << 20, 73}, {1})), "StagedKernel, by threads, every 16 elements");
}

// A range of a later item begins where that does, though the operands begin at words.
TEST(RmseChoice, JoinedRowsOfAnItemThatBeginsInsideAWord) {
  Task task = TaskFor(DType::kF16, {3, 150 * kTileElements + 1, 3}, {1});
  EXPECT_EQ(Chosen(task), "RingKernel, joined rows from inside words");
  task.whole = false;
  task.range = {.segment_begin = 0, .segment_end = 3, .tile_begin = 0, .tile_end = 151};
  EXPECT_EQ(Chosen(task), "RingKernel, joined rows");
  task.range.segment_begin = 3;
  task.range.segment_end = 6;
  EXPECT_EQ(Chosen(task), "RingKernel, joined rows from inside words");
}

TEST(RmseChoice, OperandsAtDifferentPlacesOfAWord) {
  Task task = TaskFor(DType::kF16, {1 << 20, 1000}, {1});
  task.b_at = 2;
  EXPECT_EQ(Chosen(task), "WalkKernel, 8 segments by words apart");
  task = TaskFor(DType::kU8, {1 << 20, 30}, {1});
  task.a_at = 1;
  EXPECT_EQ(Chosen(task), "StagedKernel, by threads, any layout");
}

}  // namespace
}  // namespace tilewire::rmse::cuda
