// Regions on a GPU: memory of another process pinned for copies, and what becomes of it when its file
// shrinks.
#include <gtest/gtest.h>

#include <vector>

#include "server/base/limits.h"
#include "server/engine/cuda_device.h"
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
  /// The engine takes the device.
  std::unique_ptr<Engine> MakeEngine() {
    EngineOptions options{
        .lanes = 3, .block_bytes = 64 << 10, .device_bytes = kGiB, .pinned_bytes = 256 << 20};
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
    EXPECT_TRUE(Ended([&](OnComplete done) {
                  lane->CopyInShared(there.data(), source.data(), kBytes, std::move(done));
                }).ok());
    EXPECT_TRUE(Ended([&](OnComplete done) {
                  lane->CopyOutShared(target.data(), there.data(), kBytes, std::move(done));
                }).ok());
    EXPECT_TRUE(std::equal(pattern.begin(), pattern.end(), to.data()));
  }
  EXPECT_TRUE(device->health().ok());
}

TEST_F(CudaRegions, PinnedPagesOutliveTheirFile) {
  constexpr size_t kBytes = 4 << 20;
  const auto lane = device->MakeLane(LanePriority::kBulk).value();
  const Memory there = device->AllocateDevice(kBytes).value();
  const Memory back = device->AllocatePinned(kBytes).value();
  const auto pattern = Pattern(kBytes);
  for (const size_t copy : {size_t{256}, size_t{4096}, size_t{60'000}, size_t{1 << 20}, kBytes}) {
    SCOPED_TRACE(copy);
    SharedFile file(kBytes);
    file.Write(0, pattern.data(), kBytes);
    const SharedMemory memory = Map(file, true);
    const auto pin = device->PinHost(memory.pages(), memory.page_bytes(), true);
    ASSERT_TRUE(pin) << pin.error().ToString();
    file.ResizeElsewhere(0);
    EXPECT_EQ(memory.Check().reason(), "REGION_SHRUNK");
    EXPECT_TRUE(Ended([&](OnComplete done) {
                  lane->CopyInShared(there.data(), memory.data() + kBytes - copy, copy, std::move(done));
                }).ok());
    EXPECT_TRUE(Ended([&](OnComplete done) {
                  lane->CopyOut(back.data(), there.data(), copy, std::move(done));
                }).ok());
    EXPECT_TRUE(std::equal(back.data(), back.data() + copy, pattern.end() - static_cast<ptrdiff_t>(copy)));
    EXPECT_TRUE(Ended([&](OnComplete done) {
                  lane->CopyOutShared(memory.data(), there.data(), copy, std::move(done));
                }).ok());
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

TEST_F(CudaRegions, JobsHaveTheBitsOfTheCpu) {
  const auto engine = MakeEngine();
  for (const Problem& problem : testing::RegionProblems())
    for (unsigned mask = 0; mask < 1U << problem.operands.size(); ++mask)
      for (const bool result_too : {false, true}) {
        SCOPED_TRACE(std::string(problem.make()->name()) + std::to_string(mask) + std::to_string(result_too));
        Placed placed(*engine, problem);
        const auto job = testing::Open(*engine, problem.make(), placed.Options(*engine, mask, result_too));
        ASSERT_TRUE(job) << job.error().ToString();
        const auto output = testing::Finish(*job, problem, {(mask & 1) != 0, (mask & 2) != 0});
        ASSERT_TRUE(output) << output.error().ToString();
        const std::byte* const bytes =
            result_too ? placed.file().data() + placed.result_at() : output->data();
        EXPECT_EQ(std::memcmp(bytes, problem.expected.data(), problem.expected.size()), 0);
        EXPECT_TRUE(engine->regions().Unregister(placed.id(), "anonymous").ok());
      }
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_TRUE(testing::NoRegionsLeft(*engine));
}

TEST_F(CudaRegions, ShrunkDuringAJobIsToldAndHarmsNobody) {
  const auto engine = MakeEngine();
  const Problem problem = testing::RmseProblem(DType::kF32, {3'000'000}, {}, 4);
  for (int i = 0; i < 20; ++i) {
    Placed placed(*engine, problem);
    const auto job = testing::Open(*engine, problem.make(), placed.Options(*engine, 3, false));
    ASSERT_TRUE(job) << job.error().ToString();
    placed.file().Resize(static_cast<size_t>(i) * 4096);
    const auto output = testing::Collect(**job);
    if (output) {
      EXPECT_EQ(*output, problem.expected) << "done before, or from the pages that were pinned";
    } else {
      EXPECT_EQ(output.error().reason(), "REGION_SHRUNK") << output.error().ToString();
    }
    EXPECT_TRUE(engine->regions().Unregister(placed.id(), "anonymous").ok());
  }
  const auto good = testing::RunJob(*engine, problem, {testing::Ascending(problem, 500'000)});
  ASSERT_TRUE(good) << good.error().ToString();
  EXPECT_EQ(*good, problem.expected);
  EXPECT_FALSE(engine->stats().device_failed);
}

}  // namespace
}  // namespace tilewire::engine
