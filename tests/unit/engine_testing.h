// What the engine's tests share: problems with known answers, engines over devices of every kind, and a
// client that sends blocks as it likes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "server/engine/device/cpu/device.h"
#include "server/engine/engine.h"
#include "server/engine/job/intake.h"
#include "tests/devices/decorators.h"
#include "tests/devices/forwarding_device.h"
#include "tests/unit/engine_problems.h"
#include "tests/unit/waiting.h"

namespace tilewire::engine::testing {

/// How an engine under test is built.
struct Setup {
  EngineOptions options{.lanes = 3, .block_bytes = 4096, .device_bytes = 64 << 20, .pinned_bytes = 64 << 20};
  bool staged = true;         ///< copies in and out as on a GPU
  bool reach_pinned = false;  ///< staged, but small jobs run in pinned memory, and small results lie there
  /// Wraps the device that computes; all that follows comes around that.
  std::function<std::unique_ptr<engine::Device>(std::unique_ptr<engine::Device>)> wrap;
  std::optional<SlowOptions> slow;
  std::shared_ptr<Faults> faults;
  std::shared_ptr<Shortage> shortage;
};

/// Staged or not, through pinned memory, without overlap by one lane or by order.
inline std::vector<Setup> SetupsOfEveryKind() {
  std::vector<Setup> setups(5);
  setups[1].staged = false;
  setups[2].reach_pinned = true;
  setups[3].options.lanes = 1;
  setups[4].options.overlap = false;
  return setups;
}

/// A device whose lanes are what `wrap` makes of them.
class LaneWrapper final : public ForwardingDevice {
 public:
  using Wrap = std::function<std::unique_ptr<Lane>(std::unique_ptr<Lane>)>;
  LaneWrapper(std::unique_ptr<engine::Device> device, Wrap wrap)
      : ForwardingDevice(std::move(device)), wrap_(std::move(wrap)) {}
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, device_->MakeLane(priority));
    return wrap_(std::move(lane));
  }

 private:
  const Wrap wrap_;
};

inline std::unique_ptr<Engine> MakeEngine(const Setup& setup) {
  std::unique_ptr<engine::Device> device = OpenCpuDevice(2);
  if (setup.wrap) device = setup.wrap(std::move(device));
  if (setup.slow) device = MakeSlow(std::move(device), *setup.slow);
  if (setup.faults) device = MakeFaulty(std::move(device), setup.faults);
  if (setup.shortage) device = MakeOutOfMemory(std::move(device), setup.shortage);
  if (setup.staged) device = MakeStaged(std::move(device), setup.reach_pinned);
  auto engine = Engine::Make(std::move(device), setup.options);
  EXPECT_TRUE(engine) << engine.error().ToString();
  return engine ? *std::move(engine) : nullptr;
}

inline Result<std::shared_ptr<Job>> Open(Engine& engine, std::unique_ptr<Operation> operation,
                                         const JobOptions& options = {}) {
  auto opened = std::make_shared<std::promise<Result<std::shared_ptr<Job>>>>();
  engine.Open(std::move(operation), options, [opened](auto job) { opened->set_value(std::move(job)); });
  return opened->get_future().get();
}

template <typename Condition>
bool Becomes(const Condition& condition) {
  return tilewire::testing::Eventually(condition);
}

/// True once nothing is leased any more; jobs end on the device's threads, so it waits up to a minute.
inline bool BecomesIdle(const Engine& engine) {
  return Becomes([&engine] {
    const EngineStats stats = engine.stats();
    return stats.device_bytes_in_use == 0 && stats.pinned_bytes_in_use == 0 && stats.jobs_in_flight == 0;
  });
}

struct Chunk {
  uint32_t operand;
  int64_t offset, bytes;
};
using Chunks = std::vector<Chunk>;

/// Sends one chunk, waiting for staging blocks as a server does; `waiting` counts those who do.
inline Status Send(Job& /*fed*/, Intake& intake, const Chunk& chunk, const Bytes& operand,
                   std::atomic<int>* waiting = nullptr) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(operand.data()) + chunk.offset;
  const auto bytes = static_cast<size_t>(chunk.bytes);
  // As messages do, it comes in slices of any size, of which some are empty.
  const std::span<const uint8_t> slices[] = {
      {begin, bytes / 3}, {begin, 0}, {begin + bytes / 3, bytes - bytes / 3}};
  auto taken = intake.Take(
      {.operand = chunk.operand, .offset = static_cast<uint64_t>(chunk.offset), .slices = slices});
  while (taken && !*taken) {
    auto free = std::make_shared<std::promise<void>>();
    intake.WhenPlaceFree([free] { free->set_value(); });
    if (waiting) ++*waiting;
    free->get_future().wait();
    if (waiting) --*waiting;
    taken = intake.GoOn();
  }
  return taken ? Status() : taken.error();
}

/// The next piece of output, or why there is none.
inline Result<std::optional<OutputPiece>> Next(Job& job) {
  auto next = std::make_shared<std::promise<Result<std::optional<OutputPiece>>>>();
  job.NextOutput([next](auto piece) { next->set_value(std::move(piece)); });
  return next->get_future().get();
}

/// Reads all output.
inline Result<Bytes> Collect(Job& job) {
  Bytes all;
  for (;;) {
    auto piece = Next(job);
    if (!piece) return Fail(std::move(piece).error());
    if (!*piece) return all;
    EXPECT_EQ((*piece)->offset, static_cast<int64_t>(all.size()));
    EXPECT_GT((*piece)->bytes, 0U);
    all.insert(all.end(), (*piece)->data, (*piece)->data + (*piece)->bytes);
  }
}

/// Feeds `job` from one thread a stream, each with an intake of its own; the last one to end ends the input.
/// The destructor waits for them.
class Feeders {
 public:
  Feeders(std::shared_ptr<Job> job, const Problem& problem, const std::vector<Chunks>& streams)
      : left_(static_cast<int>(streams.size())) {
    for (const Chunks& chunks : streams)
      threads_.emplace_back([this, job, &problem, chunks] { Feed(*job, job, problem, chunks); });
  }
  ~Feeders() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Feed(Job& job, const std::shared_ptr<Job>& owner, const Problem& problem, const Chunks& chunks) {
    Intake intake(owner);
    Status status;
    for (const Chunk& chunk : chunks)
      if (status = Send(job, intake, chunk, problem.operands[chunk.operand]); !status.ok()) break;
    if (status.ok()) status = intake.HalfClosed();
    if (!status.ok()) job.Fail(status);
    if (left_.fetch_sub(1) == 1) job.InputEnded();
  }

  std::atomic<int> left_;
  std::vector<std::thread> threads_;
};

/// All operands, one after the other, in chunks of `bytes`.
inline Chunks Ascending(const Problem& problem, int64_t bytes) {
  Chunks chunks;
  for (uint32_t operand = 0; operand < problem.operands.size(); ++operand) {
    const auto size = static_cast<int64_t>(problem.operands[operand].size());
    for (int64_t at = 0; at < size; at += bytes) chunks.push_back({operand, at, std::min(bytes, size - at)});
  }
  return chunks;
}

/// Every block to a random one of `streams`; there in random order, cut into random chunks, operands mixed.
inline std::vector<Chunks> Scattered(const Problem& problem, int64_t block_bytes, size_t streams,
                                     std::mt19937_64& random) {
  std::vector<Chunks> plan(streams);
  std::vector<std::vector<Chunks>> runs(streams, std::vector<Chunks>(problem.operands.size()));
  for (uint32_t operand = 0; operand < problem.operands.size(); ++operand) {
    const auto size = static_cast<int64_t>(problem.operands[operand].size());
    std::vector<int64_t> blocks((size + block_bytes - 1) / block_bytes);
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int64_t>(i);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (const int64_t block : blocks) {
      Chunks& run = runs[random() % streams][operand];
      const int64_t end = std::min((block + 1) * block_bytes, size);
      for (int64_t at = block * block_bytes; at < end;) {
        const auto left = static_cast<uint64_t>(end - at);
        const auto bytes = random() % 2 == 0 ? end - at : static_cast<int64_t>(1 + random() % left);
        run.push_back({operand, at, bytes});
        at += bytes;
      }
    }
  }
  for (size_t stream = 0; stream < streams; ++stream) {
    std::vector<size_t> at(problem.operands.size());
    for (bool more = true; more;) {
      more = false;
      for (size_t operand = 0; operand < at.size(); ++operand) {
        const Chunks& run = runs[stream][operand];
        for (uint64_t n = random() % 4; n > 0 && at[operand] < run.size(); --n)
          plan[stream].push_back(run[at[operand]++]);
        more = more || at[operand] < run.size();
      }
    }
  }
  return plan;
}

/// Opens, feeds and reads one job.
inline Result<Bytes> RunJob(Engine& engine, const Problem& problem, const std::vector<Chunks>& streams) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, Open(engine, problem.make()));
  const Feeders feeders(job, problem, streams);
  return Collect(*job);
}

/// Takes output for one stream until nothing is left; pieces go to their places in `out`.
inline Status Take(Job& job, int stream, Bytes* out) {
  int64_t next_offset = 0;
  for (;;) {
    auto next = std::make_shared<std::promise<Result<std::optional<OutputPiece>>>>();
    job.NextOutput(stream, true, [next](auto piece) { next->set_value(std::move(piece)); });
    auto piece = next->get_future().get();
    if (!piece) return piece.error();
    if (!*piece) return {};
    EXPECT_GE((*piece)->offset, next_offset);  // ascending on each stream
    next_offset = (*piece)->offset + static_cast<int64_t>((*piece)->bytes);
    std::memcpy(out->data() + (*piece)->offset, (*piece)->data, (*piece)->bytes);
  }
}

/// What one stream of a caller does, from its blocks to its share of the output.
inline Status Carry(const std::shared_ptr<Job>& job, int stream, const Problem& problem, const Chunks& chunks,
                    Bytes* out) {
  Status taken;
  std::thread taker([&] { taken = Take(*job, stream, out); });
  Status sent;
  {
    Intake intake(job, stream);
    for (const Chunk& chunk : chunks)
      if (sent = Send(*job, intake, chunk, problem.operands[chunk.operand]); !sent.ok()) break;
    if (sent.ok()) sent = intake.HalfClosed();
  }
  if (sent.ok()) {
    job->InputEnded(stream);
  } else {
    job->StreamLost(stream, sent);
  }
  taker.join();
  if (stream > 0 && taken.ok()) job->StreamDone(stream);
  return taken;
}

}  // namespace tilewire::engine::testing
