// Regions on a GPU: memory of another process pinned for copies, and what becomes of it when its file
// shrinks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/base/limits.h"
#include "server/engine/device/cuda/device.h"
#include "server/engine/device/cuda/lane.h"
#include "tests/gpu/region_problems.h"
#include "tests/unit/engine_regions_testing.h"
#include "tests/unit/lane_checks.h"

namespace tilewire::engine {
namespace {

using testing::Latch;
using testing::Part;
using testing::Placed;
using testing::Problem;
using testing::SharedFile;

/// Skips its tests by name where no GPU works.
class CudaRegions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device";
    OpenDevice();
  }
  void OpenDevice() {
    auto opened = OpenCudaDevice(0);
    ASSERT_TRUE(opened) << opened.error().ToString();
    device = *std::move(opened);
  }
  /// `file` mapped as a server does.
  static SharedMemory Map(const SharedFile& file, bool writable) {
    auto memory = SharedMemory::Map(file.name(), 0, file.bytes(), writable);
    EXPECT_TRUE(memory) << memory.error().ToString();
    return memory ? *std::move(memory) : SharedMemory();
  }
  /// How a submission ended.
  template <typename Submit>
  static Status Ended(const Submit& submit) {
    Latch latch(1);
    submit(latch.Callback());
    return latch.Wait();
  }
  static bool CopyIn(Lane& lane, std::byte* device, const std::byte* shared, size_t bytes) {
    const Status status =
        Ended([&](OnComplete done) { lane.CopyInShared(device, shared, bytes, std::move(done)); });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return status.ok();
  }
  static bool CopyOut(Lane& lane, std::byte* shared, const std::byte* device, size_t bytes) {
    const Status status =
        Ended([&](OnComplete done) { lane.CopyOutShared(shared, device, bytes, std::move(done)); });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return status.ok();
  }
  /// The engine takes the device.
  std::unique_ptr<Engine> MakeEngine(int64_t block_bytes) {
    EngineOptions options{
        .lanes = 3, .block_bytes = block_bytes, .device_bytes = kGiB, .pinned_bytes = 256 << 20};
    options.regions = testing::RegionsOn(256 << 20);
    auto engine = Engine::Make(std::move(device), options);
    EXPECT_TRUE(engine) << engine.error().ToString();
    return engine ? *std::move(engine) : nullptr;
  }

  std::unique_ptr<Device> device;
};

std::vector<std::byte> Pattern(size_t bytes) {
  std::vector<std::byte> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<std::byte>(i * 131 + i / 4096 + 5);
  return pattern;
}

/// Blocks that kernels copy, and blocks that are copied by DMA but for the last one.
constexpr int64_t kBlocks[] = {64 << 10, 2 << 20};
/// Offsets in a region, in device memory, in a region.
struct Offsets {
  size_t in, middle, out;
};
constexpr Offsets kPlaces[] = {{0, 0, 0}, {3, 0, 7}, {16, 5, 0}, {4097, 4097, 4097}, {8, 4, 12}, {13, 1, 15}};
/// Sizes that a driver treats differently, and those around what is left to kernels.
constexpr size_t kCopies[] = {1,
                              15,
                              16,
                              17,
                              255,
                              256,
                              4096,
                              24'576,
                              24'577,
                              60'000,
                              65'535,
                              65'536,
                              65'537,
                              kMostByKernel - 1,
                              kMostByKernel,
                              kMostByKernel + 1,
                              1 << 20,
                              2 << 20};

TEST_F(CudaRegions, PinnedTheyAreCopiedBothWays) {
  constexpr size_t kBytes = 8 << 20;
  const auto lane = device->MakeLane(LanePriority::kBulk).value();
  const Memory there = device->AllocateDevice(kBytes).value();
  const auto pattern = Pattern(kBytes);
  for (const bool writable : {true, false}) {
    SharedFile from(kBytes), to(kBytes);
    from.Write(0, pattern.data(), kBytes);
    const bool open_writable = writable || !device->facts().pins_read_only;
    const SharedMemory source = Map(from, open_writable), target = Map(to, true);
    const auto pin = device->PinHost(source.pages(), source.page_bytes(), open_writable);
    ASSERT_TRUE(pin) << pin.error().ToString();
    const auto pin_target = device->PinHost(target.pages(), target.page_bytes(), true);
    ASSERT_TRUE(pin_target) << pin_target.error().ToString();
    EXPECT_TRUE(CopyIn(*lane, there.data(), source.data(), kBytes));
    EXPECT_TRUE(CopyOut(*lane, target.data(), there.data(), kBytes));
    EXPECT_TRUE(std::equal(pattern.begin(), pattern.end(), to.data()));
  }
  EXPECT_TRUE(device->health().ok());
}

TEST_F(CudaRegions, CopiesOfAnySizeFromAnywhereHaveTheBits) {
  constexpr size_t kBytes = 3 << 20;
  const auto lane = device->MakeLane(LanePriority::kBulk).value();
  const Memory there = device->AllocateDevice(kBytes).value();
  const auto pattern = Pattern(kBytes);
  SharedFile from(kBytes), to(kBytes);
  from.Write(0, pattern.data(), kBytes);
  const SharedMemory source = Map(from, true), target = Map(to, true);
  const auto pin = device->PinHost(source.pages(), source.page_bytes(), true);
  ASSERT_TRUE(pin) << pin.error().ToString();
  const auto pin_target = device->PinHost(target.pages(), target.page_bytes(), true);
  ASSERT_TRUE(pin_target) << pin_target.error().ToString();
  constexpr std::byte kBlank{0xa5};
  for (const size_t copy : kCopies)
    for (const auto& [in, middle, out] : kPlaces) {
      SCOPED_TRACE(std::to_string(copy) + " bytes from " + std::to_string(in) + " to " +
                   std::to_string(middle) + " to " + std::to_string(out));
      std::fill(to.data(), to.data() + kBytes, kBlank);
      EXPECT_TRUE(CopyIn(*lane, there.data() + middle, source.data() + in, copy));
      EXPECT_TRUE(CopyOut(*lane, target.data() + out, there.data() + middle, copy));
      std::vector<std::byte> expected(kBytes, kBlank);
      std::copy_n(pattern.begin() + static_cast<ptrdiff_t>(in), copy,
                  expected.begin() + static_cast<ptrdiff_t>(out));
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.data()));
    }
  EXPECT_TRUE(device->health().ok());
}

/// Into and out of memory that its owner has cut off, which no CPU may touch any more.
TEST_F(CudaRegions, PinnedPagesOutliveTheirFile) {
  constexpr size_t kBytes = 4 << 20;
  const auto lane = device->MakeLane(LanePriority::kBulk).value();
  const Memory there = device->AllocateDevice(kBytes).value();
  const Memory back = device->AllocatePinned(kBytes).value();
  const auto pattern = Pattern(kBytes);
  for (const size_t left : {size_t{0}, kBytes / 2}) {
    SharedFile file(kBytes);
    file.Write(0, pattern.data(), kBytes);
    const SharedMemory memory = Map(file, true);
    const auto pin = device->PinHost(memory.pages(), memory.page_bytes(), true);
    ASSERT_TRUE(pin) << pin.error().ToString();
    file.ResizeElsewhere(left);
    EXPECT_EQ(memory.Check().reason(), "REGION_SHRUNK");
    for (const size_t copy : kCopies)
      for (const auto& [in, middle, out] : kPlaces) {
        SCOPED_TRACE(std::to_string(copy) + " bytes to " + std::to_string(in) + " before the end, by " +
                     std::to_string(middle) + ", " + std::to_string(left) + " left");
        const size_t from = kBytes - copy - in;
        EXPECT_TRUE(CopyIn(*lane, there.data() + middle, memory.data() + from, copy));
        EXPECT_TRUE(Ended([&](OnComplete done) {
                      lane->CopyOut(back.data(), there.data() + middle, copy, std::move(done));
                    }).ok());
        EXPECT_TRUE(
            std::equal(back.data(), back.data() + copy, pattern.begin() + static_cast<ptrdiff_t>(from)));
      }
  }
  EXPECT_TRUE(device->health().ok());
}

TEST_F(CudaRegions, PinnedPagesTakeResultsWithoutTheirFile) {
  constexpr size_t kBytes = 4 << 20;
  const auto lane = device->MakeLane(LanePriority::kBulk).value();
  const Memory result = device->AllocateDevice(kBytes).value(),
               there = device->AllocateDevice(kBytes).value();
  const Memory pinned = device->AllocatePinned(kBytes).value();
  const auto pattern = Pattern(kBytes);
  std::copy(pattern.begin(), pattern.end(), pinned.data());
  EXPECT_TRUE(Ended([&](OnComplete done) {
                lane->CopyIn(result.data(), pinned.data(), kBytes, std::move(done));
              }).ok());
  for (const size_t left : {size_t{0}, kBytes / 2}) {
    SharedFile file(kBytes);
    const SharedMemory memory = Map(file, true);
    const auto pin = device->PinHost(memory.pages(), memory.page_bytes(), true);
    ASSERT_TRUE(pin) << pin.error().ToString();
    file.ResizeElsewhere(left);
    for (const size_t copy : kCopies)
      for (const auto& [in, middle, out] : kPlaces) {
        SCOPED_TRACE(std::to_string(copy) + " bytes to " + std::to_string(out) + " before the end, from " +
                     std::to_string(middle) + ", " + std::to_string(left) + " left");
        std::byte* const to = memory.data() + (kBytes - copy - out);
        EXPECT_TRUE(CopyOut(*lane, to, result.data() + middle, copy));
        EXPECT_TRUE(CopyIn(*lane, there.data() + in, to, copy));
        EXPECT_TRUE(Ended([&](OnComplete done) {
                      lane->CopyOut(pinned.data(), there.data() + in, copy, std::move(done));
                    }).ok());
        EXPECT_TRUE(std::equal(pinned.data(), pinned.data() + copy,
                               pattern.begin() + static_cast<ptrdiff_t>(middle)));
      }
  }
  EXPECT_TRUE(device->health().ok());
}

TEST_F(CudaRegions, WhatCannotBePinnedHarmsNobody) {
  SharedFile file(4 << 20);
  const SharedMemory memory = Map(file, true);
  file.Resize(4096);
  const auto pin = device->PinHost(memory.pages(), memory.page_bytes(), true);
  ASSERT_FALSE(pin);
  EXPECT_EQ(pin.error().reason(), "REGION_UNPINNABLE") << pin.error().ToString();
  EXPECT_TRUE(device->health().ok());
  const auto lane = device->MakeLane(LanePriority::kBulk);
  EXPECT_TRUE(lane) << lane.error().ToString();
}

/// Every operation with operands in and out of a region, in all combinations.
void CompareJobs(Engine& engine) {
  for (const Problem& problem : testing::RegionProblems())
    for (unsigned mask = 0; mask < 1U << problem.operands.size(); ++mask)
      for (const bool result_too : {false, true}) {
        SCOPED_TRACE(std::string(problem.make()->name()) + std::to_string(mask) + std::to_string(result_too));
        Placed placed(engine, problem);
        const auto job = testing::Open(engine, problem.make(), placed.Options(engine, mask, result_too));
        ASSERT_TRUE(job) << job.error().ToString();
        const auto output = testing::Finish(*job, problem, {(mask & 1) != 0, (mask & 2) != 0});
        ASSERT_TRUE(output) << output.error().ToString();
        const std::byte* const bytes =
            result_too ? placed.file().data() + placed.result_at() : output->data();
        EXPECT_EQ(std::memcmp(bytes, problem.expected.data(), problem.expected.size()), 0);
        EXPECT_TRUE(engine.regions().Unregister(placed.id(), "anonymous").ok());
      }
}

TEST_F(CudaRegions, JobsHaveTheBitsOfTheCpu) {
  for (const int64_t block_bytes : kBlocks) {
    SCOPED_TRACE(block_bytes);
    const auto engine = MakeEngine(block_bytes);
    ASSERT_TRUE(engine);
    CompareJobs(*engine);
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    EXPECT_TRUE(testing::NoRegionsLeft(*engine));
    OpenDevice();  // the engine had the last one
  }
}

/// Cuts a job's operands off, and the place for its result where that is in the region too, while it runs.
void ShrinkDuringAJob(Engine& engine, const Problem& problem, bool result_too, size_t left) {
  Placed placed(engine, problem);
  const unsigned all = (1U << problem.operands.size()) - 1;
  const auto job = testing::Open(engine, problem.make(), placed.Options(engine, all, result_too));
  ASSERT_TRUE(job) << job.error().ToString();
  placed.file().Resize(left);
  const auto output = testing::Collect(**job);
  if (!output) {
    EXPECT_EQ(output.error().reason(), "REGION_SHRUNK") << output.error().ToString();
  } else if (!result_too) {
    EXPECT_EQ(*output, problem.expected) << "done before, or from the pages that were pinned";
  }
  EXPECT_TRUE(engine.regions().Unregister(placed.id(), "anonymous").ok());
}

TEST_F(CudaRegions, ShrunkDuringAJobIsToldAndHarmsNobody) {
  for (const int64_t block_bytes : kBlocks) {
    SCOPED_TRACE(block_bytes);
    const auto engine = MakeEngine(block_bytes);
    ASSERT_TRUE(engine);
    for (const Problem& problem : testing::RegionProblems())
      for (size_t i = 0; i < 16; ++i) ShrinkDuringAJob(*engine, problem, i % 2 != 0, i / 2 * 4096);
    const Problem problem = testing::RegionProblems().front();
    const auto good = testing::RunJob(*engine, problem, {testing::Ascending(problem, 500'000)});
    ASSERT_TRUE(good) << good.error().ToString();
    EXPECT_EQ(*good, problem.expected);
    EXPECT_FALSE(engine->stats().device_failed);
    OpenDevice();
  }
}

}  // namespace
}  // namespace tilewire::engine
