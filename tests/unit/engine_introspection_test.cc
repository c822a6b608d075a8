// What is asked of a device for an operation, a catalogue and a full queue; over a device that counts.
#include "server/engine/operation/introspection.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/devices/forwarding_device.h"
#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

using Kernels = Result<std::vector<KernelLaunch>>;

/// The CPU device with made-up kernels: named after the work's kind, one block a KiB of its range.
class DescribingDevice final : public ForwardingDevice {
 public:
  DescribingDevice() : ForwardingDevice(OpenCpuDevice(1)) {}

  std::atomic<int> asked{0};
  std::shared_future<void> gate;  ///< waited for before each answer, where set
  Status failure;                 ///< what DescribeWork says

  Status health() const override { return failure.reason() == "DEVICE_FAILED" ? failure : Status(); }

  Result<std::vector<KernelInfo>> DescribeWork(const Work& work) override {
    ++asked;
    if (gate.valid()) gate.wait();
    TILEWIRE_RETURN_IF_ERROR(failure);
    KernelInfo kernel;
    EXPECT_EQ(work.buffers.operands[0], nullptr);
    if (work.step.is_finish()) {
      kernel.name = "finish";
    } else if (const auto* gaussian = dynamic_cast<const gaussian::GaussianProblem*>(work.problem)) {
      kernel.name = "gaussian";
      const gaussian::Range range = gaussian->part(work.step.range).range;
      kernel.grid[0] = range.end - range.begin;
    } else if (const auto* rmse = dynamic_cast<const rmse::RmseProblem*>(work.problem)) {
      kernel.name = "tiles";
      kernel.grid[0] = rmse->sums(work.step.range).range.items();
    } else {
      kernel.name = "band";
    }
    return std::vector<KernelInfo>{kernel};
  }
  Result<std::vector<LadderKernel>> DescribeLadder() override {
    return std::vector<LadderKernel>{{"ladder/rmse", "1_naive: f32 (2048, 2048)", {.name = "naive"}}};
  }
};

constexpr const Descriptor* kOperations[] = {&rmse::kDescriptor, &transpose::kDescriptor,
                                             &gaussian::kDescriptor};

std::unique_ptr<Operation> Gaussian(int64_t elements) {
  return gaussian::MakeProblem(*gaussian::Plan::Make(*MakeSpec(DType::kF32, std::array{elements}), 0, 1));
}

Kernels AskForKernels(Introspection& introspection, std::unique_ptr<Operation> operation,
                      const std::string& text) {
  std::promise<Kernels> answer;
  introspection.Describe(std::move(operation), text,
                         [&](Kernels kernels) { answer.set_value(std::move(kernels)); });
  return answer.get_future().get();
}

Kernels AskCatalogue(Introspection& introspection) {
  std::promise<Kernels> answer;
  introspection.DescribeCatalogue([&](Kernels kernels) { answer.set_value(std::move(kernels)); });
  return answer.get_future().get();
}

TEST(Introspection, TellsFirstAndLastRangeAndTheFinish) {
  DescribingDevice device;
  Introspection introspection(&device, kOperations);
  const auto plan =
      *rmse::Plan::Make(*MakeSpec(DType::kF32, std::array<int64_t, 1>{10'000'001}), {}, rmse::Output::kRmse);
  ASSERT_GT(plan.range_count(), 2);
  const auto kernels = AskForKernels(introspection, rmse::MakeProblem(plan), "some rmse");
  ASSERT_TRUE(kernels) << kernels.error().ToString();
  ASSERT_EQ(kernels->size(), 3u);
  const std::string count = std::to_string(plan.range_count());
  EXPECT_EQ((*kernels)[0].part, "range 0 of " + count);
  EXPECT_EQ((*kernels)[0].kernel.grid[0], plan.range(0).items());
  EXPECT_EQ((*kernels)[1].part, "range " + std::to_string(plan.range_count() - 1) + " of " + count);
  EXPECT_EQ((*kernels)[1].kernel.grid[0], plan.range(plan.range_count() - 1).items());
  EXPECT_EQ((*kernels)[2].part, "finish");
  EXPECT_EQ((*kernels)[2].kernel.name, "finish");
  for (const KernelLaunch& launch : *kernels) {
    EXPECT_EQ(launch.group, "rmse");
    EXPECT_EQ(launch.operation, "some rmse");
  }
}

TEST(Introspection, EqualLaunchesAreToldOnce) {
  DescribingDevice device;
  Introspection introspection(&device, kOperations);
  const auto one_range = AskForKernels(introspection, Gaussian(100), "");
  ASSERT_TRUE(one_range);
  ASSERT_EQ(one_range->size(), 1u);
  EXPECT_EQ((*one_range)[0].part, "range 0 of 1");
  EXPECT_EQ((*one_range)[0].group, "gaussian");
}

TEST(Introspection, TextNamesDtypeShapeAndAxes) {
  const ArraySpec spec = *MakeSpec(DType::kF32, std::array<int64_t, 3>{4, 5, 6});
  EXPECT_EQ(rmse::kDescriptor.Text({&spec, 1}, {{"output", int64_t{2}}, {"axes", std::vector{0, -1}}}),
            "rmse f32 (4, 5, 6) axes 0 -1");
  EXPECT_EQ(transpose::kDescriptor.Text({&spec, 1}, {}), "transpose f32 (4, 5, 6)");
  EXPECT_EQ(gaussian::kDescriptor.Text({&spec, 1}, {{"mean", 2.0}, {"stddev", 3.0}}),
            "gaussian_pdf f32 (4, 5, 6)");
}

TEST(Introspection, TheCatalogueHasEveryOperationAndDtypeAndIsMadeOnce) {
  DescribingDevice device;
  Introspection introspection(&device, kOperations);
  const auto first = AskCatalogue(introspection);
  ASSERT_TRUE(first) << first.error().ToString();
  std::set<std::string> groups, operations;
  for (const KernelLaunch& launch : *first) {
    groups.insert(launch.group);
    operations.insert(launch.operation);
    EXPECT_FALSE(launch.kernel.name.empty());
  }
  EXPECT_EQ(groups, (std::set<std::string>{"rmse", "transpose", "gaussian", "ladder/rmse"}));
  for (const DTypeInfo& info : AllDTypes())
    EXPECT_EQ(operations.count("rmse " + std::string(info.name) + " (4096, 4096)"), IsReal(info.dtype))
        << info.name;
  EXPECT_TRUE(operations.count("transpose c128 (4096, 4096)"));
  EXPECT_TRUE(operations.count("gaussian_pdf f64 (16777213)"));
  EXPECT_TRUE(operations.count("1_naive: f32 (2048, 2048)"));
  const int asked = device.asked;
  EXPECT_GT(asked, 60);
  const auto second = AskCatalogue(introspection);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->size(), first->size());
  EXPECT_EQ(device.asked, asked);
}

TEST(Introspection, NeverBlocksWhoAsksAndRefusesTooMany) {
  std::promise<void> open;
  DescribingDevice device;
  device.gate = open.get_future().share();
  std::atomic<int> good{0}, busy{0};
  {
    Introspection introspection(&device, kOperations);
    const auto count = [&](Kernels kernels) {
      if (!kernels) {
        EXPECT_EQ(kernels.error().reason(), "BUSY");
        EXPECT_GT(kernels.error().detail()->retry_after_ms, 0);
      }
      ++(kernels ? good : busy);
    };
    introspection.Describe(Gaussian(1), "", count);
    EXPECT_TRUE(testing::Becomes([&] { return device.asked == 1; }));  // the thread hangs in it
    for (int i = 0; i < 70; ++i) introspection.Describe(Gaussian(1), "", count);
    EXPECT_EQ(busy, 6);
    EXPECT_EQ(good, 0);
    open.set_value();
    EXPECT_TRUE(testing::Becomes([&] { return good == 65; }));
  }
}

TEST(Introspection, WhatStillWaitsAtTheEndIsAnsweredWhateverTheDeviceDoes) {
  std::promise<void> open;
  DescribingDevice device;
  device.gate = open.get_future().share();
  std::mutex mutex;
  std::vector<std::string> reasons;
  const auto answered = [&] {
    const std::lock_guard lock(mutex);
    return reasons;
  };
  auto introspection = std::make_unique<Introspection>(&device, kOperations);
  for (int i = 0; i < 3; ++i)
    introspection->Describe(Gaussian(1), "", [&](Kernels kernels) {
      const std::lock_guard lock(mutex);
      reasons.emplace_back(kernels ? "" : kernels.error().reason());
    });
  EXPECT_TRUE(testing::Becomes([&] { return device.asked == 1; }));  // the thread hangs in it
  std::thread opener([&] {
    EXPECT_TRUE(testing::Becomes([&] { return answered().size() == 2; }));
    open.set_value();
  });
  introspection.reset();
  opener.join();
  EXPECT_EQ(answered(), (std::vector<std::string>{"DRAINING", "DRAINING", ""}));
}

TEST(Introspection, AnIdleEngineNoticesADeadDevice) {
  auto device = std::make_unique<DescribingDevice>();
  DescribingDevice& described = *device;
  auto engine =
      *Engine::Make(std::move(device), {.lanes = 1, .device_bytes = 1 << 20, .operations = kOperations});
  std::atomic<int> failures{0};
  engine->SetFailureHandler([&](const Status& why) { failures += why.reason() == "DEVICE_FAILED"; });
  const auto ask = [&] {
    std::promise<Kernels> answer;
    engine->DescribeKernels(nullptr, "", [&](Kernels kernels) { answer.set_value(std::move(kernels)); });
    return answer.get_future().get();
  };
  described.failure = Status(Code::kInternal, "INTERNAL_ERROR", "a kernel that cannot be described");
  EXPECT_EQ(ask().error().reason(), "INTERNAL_ERROR");
  EXPECT_EQ(failures, 0);
  described.failure = Status(Code::kInternal, "DEVICE_FAILED", "gone");
  const auto gone = ask();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kUnavailable);
  EXPECT_EQ(failures, 1);
}

}  // namespace
}  // namespace tilewire::engine
