// What every device must do, checked through the seam: run on the CPU device, on decorated ones and on the
// GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/gaussian/problem.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"
#include "server/engine/device/device.h"

namespace tilewire::engine::testing {

/// Counts completions down and keeps the first error.
class Latch {
 public:
  explicit Latch(int count) : left_(count) {}
  OnComplete Callback() {
    return [this](const Completion& completion) { Arrive(completion.status); };
  }
  void Arrive(const Status& status) {
    std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = status;
    if (--left_ == 0) zero_.notify_all();
  }
  Status Wait() {
    std::unique_lock lock(mutex_);
    zero_.wait(lock, [this] { return left_ <= 0; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  int left_;
  Status status_;
};

inline Memory Device(engine::Device& device, size_t bytes) {
  auto memory = device.AllocateDevice(bytes);
  EXPECT_TRUE(memory) << memory.error().ToString();
  return memory ? *std::move(memory) : Memory();
}
inline Memory Pinned(engine::Device& device, size_t bytes) {
  auto memory = device.AllocatePinned(bytes);
  EXPECT_TRUE(memory) << memory.error().ToString();
  return memory ? *std::move(memory) : Memory();
}
inline std::unique_ptr<Lane> MakeLane(engine::Device& device, LanePriority priority = LanePriority::kBulk) {
  auto lane = device.MakeLane(priority);
  EXPECT_TRUE(lane) << lane.error().ToString();
  return lane ? *std::move(lane) : nullptr;
}

/// Bytes go in and come out unchanged, at odd sizes and offsets too.
inline void CheckRoundTrip(engine::Device& device) {
  std::mt19937 random(7);
  const auto lane = MakeLane(device);
  for (size_t bytes : {size_t{1}, size_t{511}, size_t{4096}, size_t{1} << 20, (size_t{5} << 20) + 13}) {
    Memory in = Pinned(device, bytes + 1), out = Pinned(device, bytes + 1),
           on_device = Device(device, bytes + 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(in.data()) % 4096, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(on_device.data()) % 256, 0u);
    for (size_t i = 0; i <= bytes; ++i) in.data()[i] = static_cast<std::byte>(random());
    std::memset(out.data(), 0, bytes + 1);
    Latch latch(2);
    lane->CopyIn(on_device.data() + 1, in.data() + 1, bytes, latch.Callback());
    lane->CopyOut(out.data() + 1, on_device.data() + 1, bytes, latch.Callback());
    ASSERT_TRUE(latch.Wait().ok());
    EXPECT_EQ(std::memcmp(in.data() + 1, out.data() + 1, bytes), 0) << bytes;
    EXPECT_EQ(out.data()[0], std::byte{0});
  }
}

/// Each submission sees what those before it did, and completes in its turn.
inline void CheckOrder(engine::Device& device) {
  constexpr int kCount = 200;
  Memory in = Pinned(device, kCount * 4), out = Pinned(device, kCount * 4), cell = Device(device, 4);
  std::vector<int> completed;
  Latch latch(2 * kCount);
  const auto lane = MakeLane(device, LanePriority::kSmall);
  for (int i = 0; i < kCount; ++i) {
    reinterpret_cast<int*>(in.data())[i] = i * 1000003;
    for (int step : {0, 1}) {
      auto done = [&, number = 2 * i + step](const Completion& completion) {
        completed.push_back(number);  // callbacks of a lane never overlap
        latch.Arrive(completion.status);
      };
      if (step == 0) {
        lane->CopyIn(cell.data(), in.data() + 4 * i, 4, done);
      } else {
        lane->CopyOut(out.data() + 4 * i, cell.data(), 4, done);
      }
    }
  }
  ASSERT_TRUE(latch.Wait().ok());
  EXPECT_EQ(std::memcmp(in.data(), out.data(), kCount * 4), 0);
  for (int i = 0; i < 2 * kCount; ++i) ASSERT_EQ(completed[static_cast<size_t>(i)], i);
}

/// Several threads share a lane; every callback comes exactly once, and on no submitting thread.
inline void CheckExactlyOnce(engine::Device& device) {
  constexpr int kThreads = 4, kEach = 100;
  std::vector<std::atomic<int>> calls(kThreads * kEach);
  std::atomic<int> inside{0};
  Memory host = Pinned(device, 4096), on_device = Device(device, 4096);
  Latch latch(kThreads * kEach);
  {
    const auto lane = MakeLane(device);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          lane->CopyIn(
              on_device.data() + 1024 * t, host.data() + 1024 * t, 1024,
              [&, index = t * kEach + i, self = std::this_thread::get_id()](const Completion& completion) {
                if (std::this_thread::get_id() == self) ++inside;
                ++calls[static_cast<size_t>(index)];
                EXPECT_LE(completion.begin, completion.end);
                latch.Arrive(completion.status);
              });
        }
      });
    }
    for (auto& thread : threads) thread.join();
    ASSERT_TRUE(latch.Wait().ok());
  }
  EXPECT_EQ(inside, 0);
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

/// Destroying a lane waits for all, also for what callbacks submit meanwhile.
inline void CheckDestructorDrains(engine::Device& device) {
  constexpr int kCount = 50;
  constexpr size_t kBytes = 256 * 1024;
  Memory host = Pinned(device, kBytes), on_device = Device(device, kBytes);
  std::atomic<int> calls{0}, nested{0};
  auto held = std::make_shared<int>(0);
  {
    const auto lane = MakeLane(device);
    for (int i = 0; i < kCount; ++i) {
      lane->CopyIn(on_device.data(), host.data(), kBytes, [&, held, raw = lane.get()](const Completion&) {
        ++calls;
        raw->CopyOut(host.data(), on_device.data(), 16, [&, held](const Completion&) { ++nested; });
      });
    }
  }
  EXPECT_EQ(calls, kCount);
  EXPECT_EQ(nested, kCount);
  EXPECT_EQ(held.use_count(), 1) << "a callback outlived the lane";
}

inline ArraySpec Spec(DType dtype, std::vector<int64_t> dims) {
  auto spec = MakeSpec(dtype, dims);
  EXPECT_TRUE(spec) << spec.error().ToString();
  return *spec;
}

/// Step after step of a problem whose arrays lie there.
class Launches {
 public:
  Launches(std::unique_ptr<tilewire::Problem> problem, const std::vector<std::byte*>& operands,
           std::byte* result, std::byte* scratch = nullptr)
      : problem_(std::move(problem)) {
    std::copy(operands.begin(), operands.end(), buffers_.operands.begin());
    buffers_.results[0] = result;
    buffers_.scratch = scratch;
  }
  Work operator[](Step step) const { return {problem_.get(), step, buffers_}; }
  /// How many steps there are.
  int count() const { return static_cast<int>(problem_->range_count()) + problem_->has_finish(); }
  void LaunchAll(Lane* lane, Latch* latch) const {
    for (int64_t i = 0; i < problem_->range_count(); ++i) lane->Launch((*this)[{i}], latch->Callback());
    if (problem_->has_finish()) lane->Launch((*this)[Step::Finish()], latch->Callback());
  }

 private:
  const std::unique_ptr<tilewire::Problem> problem_;
  Buffers buffers_;
};

/// Random f32 values in [-1, 1).
inline void FillF32(Memory& memory, uint32_t seed) {
  std::mt19937 random(seed);
  auto* values = reinterpret_cast<float*>(memory.data());
  for (size_t i = 0; i < memory.bytes() / 4; ++i) {
    values[i] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
  }
}

/// All ranges and the finish through a lane give the bits of plain host calls.
inline void CheckRmse(engine::Device& device, std::vector<int64_t> dims, std::vector<int32_t> axes) {
  auto plan = rmse::Plan::Make(Spec(DType::kF32, std::move(dims)), axes, rmse::Output::kRmse);
  ASSERT_TRUE(plan) << plan.error().ToString();
  const auto bytes = static_cast<size_t>(plan->operand().bytes());
  const auto result_bytes = static_cast<size_t>(plan->result().bytes());
  const auto scratch_bytes = static_cast<size_t>(plan->scratch_bytes());
  Memory a = Pinned(device, bytes), b = Pinned(device, bytes), result = Pinned(device, result_bytes);
  FillF32(a, 1);
  FillF32(b, 2);
  Memory da = Device(device, bytes), db = Device(device, bytes), dresult = Device(device, result_bytes),
         sums = Device(device, scratch_bytes);
  const Launches launches(rmse::MakeProblem(*plan), {da.data(), db.data()}, dresult.data(), sums.data());
  Latch latch(launches.count() + 3);
  const auto lane = MakeLane(device);
  lane->CopyIn(da.data(), a.data(), bytes, latch.Callback());
  lane->CopyIn(db.data(), b.data(), bytes, latch.Callback());
  launches.LaunchAll(lane.get(), &latch);
  lane->CopyOut(result.data(), dresult.data(), result_bytes, latch.Callback());
  const Status status = latch.Wait();
  ASSERT_TRUE(status.ok()) << status.ToString();

  std::vector<double> want_sums(scratch_bytes / 8), want(result_bytes / 8);
  const rmse::Range whole = plan->whole();
  rmse::HostRange(*plan, whole, 0, whole.items(), a.data(), b.data(), want_sums.data());
  rmse::HostFinish(*plan, 0, plan->layout().segments, want_sums.data(), want.data());
  EXPECT_GT(want[0], 0);
  EXPECT_EQ(std::memcmp(want.data(), result.data(), result_bytes), 0);
}

/// All bands through a lane put every element where the permutation says.
inline void CheckTranspose(engine::Device& device, int64_t d0, int64_t d1, int64_t d2) {
  const int32_t axes[] = {2, 0, 1};
  auto plan = transpose::Plan::Make(Spec(DType::kF32, {d0, d1, d2}), axes);
  ASSERT_TRUE(plan) << plan.error().ToString();
  const auto bytes = static_cast<size_t>(plan->input().bytes());
  Memory in = Pinned(device, bytes), out = Pinned(device, bytes), din = Device(device, bytes),
         dout = Device(device, bytes);
  auto* from = reinterpret_cast<uint32_t*>(in.data());
  for (size_t i = 0; i < bytes / 4; ++i) from[i] = static_cast<uint32_t>(i * 2654435761u);
  const Launches launches(transpose::MakeProblem(*plan), {din.data()}, dout.data());
  Latch latch(launches.count() + 2);
  const auto lane = MakeLane(device);
  lane->CopyIn(din.data(), in.data(), bytes, latch.Callback());
  launches.LaunchAll(lane.get(), &latch);
  lane->CopyOut(out.data(), dout.data(), bytes, latch.Callback());
  const Status status = latch.Wait();
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto* got = reinterpret_cast<const uint32_t*>(out.data());
  for (int64_t i = 0; i < d0; ++i) {
    for (int64_t j = 0; j < d1; ++j) {
      for (int64_t k = 0; k < d2; ++k) ASSERT_EQ(got[(k * d0 + i) * d1 + j], from[(i * d1 + j) * d2 + k]);
    }
  }
}

/// All ranges through a lane give the bits of one plain host call.
inline void CheckGaussian(engine::Device& device, DType dtype, std::vector<int64_t> dims) {
  auto plan = gaussian::Plan::Make(Spec(dtype, std::move(dims)), 0.125, 0.75);
  ASSERT_TRUE(plan) << plan.error().ToString();
  const auto bytes = static_cast<size_t>(plan->input().bytes());
  Memory in = Pinned(device, bytes), out = Pinned(device, bytes), din = Device(device, bytes),
         dout = Device(device, bytes);
  std::mt19937 random(3);
  for (size_t i = 0; i < bytes; ++i) in.data()[i] = static_cast<std::byte>(random() >> 24);
  if (dtype == DType::kF32) FillF32(in, 3);
  std::memset(out.data(), 0xff, bytes);
  const Launches launches(gaussian::MakeProblem(*plan), {din.data()}, dout.data());
  Latch latch(launches.count() + 2);
  const auto lane = MakeLane(device);
  lane->CopyIn(din.data(), in.data(), bytes, latch.Callback());
  launches.LaunchAll(lane.get(), &latch);
  lane->CopyOut(out.data(), dout.data(), bytes, latch.Callback());
  const Status status = latch.Wait();
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::vector<std::byte> want(bytes);
  const gaussian::Range whole = plan->whole();
  gaussian::HostRange(*plan, whole, 0, gaussian::HostItems(*plan, whole), in.data(), want.data());
  EXPECT_EQ(std::memcmp(want.data(), out.data(), bytes), 0);
}

}  // namespace tilewire::engine::testing
