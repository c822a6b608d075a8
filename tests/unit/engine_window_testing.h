// Windowed jobs for tests: problems of many ranges, and clients that keep to the window.
#pragma once

#include <array>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine::testing {

/// Operands, result and tile sums.
inline int64_t BytesOf(const Problem& problem) {
  const auto operation = problem.make();
  return static_cast<int64_t>(problem.operands.size() * problem.operands[0].size()) +
         operation->result().bytes() + operation->scratch_bytes();
}

/// Many small ranges: 50 to 150, of 4 KiB to 40 KiB.
inline Problem LongProblem(std::mt19937_64& random) {
  const uint64_t seed = random();
  const auto ranges = static_cast<int64_t>(50 + random() % 100);
  if (random() % 2 == 0) {
    const auto tiles = static_cast<int64_t>(1 + random() % 5);
    const DType dtype = std::array{DType::kU8, DType::kI16, DType::kF16}[random() % 3];
    return RmseProblem(dtype, {ranges * tiles * rmse::kTileElements - static_cast<int64_t>(random() % 4000)},
                       {}, seed, tiles);
  }
  const auto elements = static_cast<int64_t>(1000 + random() % 4000);
  const DType dtype = random() % 2 == 0 ? DType::kF32 : DType::kF64;
  return GaussianProblem(dtype, {ranges * elements - static_cast<int64_t>(random() % 900)}, 0.5, 2, seed,
                         elements);
}

inline Result<std::shared_ptr<Job>> OpenWindowed(Engine& engine, const Problem& problem, int streams) {
  return Open(engine, problem.make(), {.streams = streams, .may_window = true});
}

/// Every block to a random one of `streams`, in an order as wild as the window of `job` allows, cut into
/// random chunks.
inline std::vector<Chunks> WithinWindow(const Problem& problem, const Job& job, size_t streams,
                                        std::mt19937_64& random) {
  const int64_t block = job.block_bytes();
  const auto size = static_cast<int64_t>(problem.operands[0].size());
  std::vector<Chunks> plan(streams);
  std::vector<Chunk> waiting;  // ascending
  for (int64_t at = 0; at < size; at += block)
    for (uint32_t operand = 0; operand < problem.operands.size(); ++operand)
      waiting.push_back({operand, at, std::min(block, size - at)});
  while (!waiting.empty()) {
    size_t reach = 1;
    while (reach < waiting.size() && reach < 200 &&
           waiting[reach].offset + waiting[reach].bytes <= waiting[0].offset + job.window_bytes())
      ++reach;
    const auto chosen = waiting.begin() + static_cast<ptrdiff_t>(random() % reach);
    Chunks& stream = plan[random() % streams];
    for (int64_t at = 0; at < chosen->bytes;) {
      const auto left = static_cast<uint64_t>(chosen->bytes - at);
      const auto bytes = static_cast<int64_t>(random() % 2 == 0 ? left : 1 + random() % left);
      stream.push_back({chosen->operand, chosen->offset + at, bytes});
      at += bytes;
    }
    waiting.erase(chosen);
  }
  return plan;
}

/// All streams of `job` at once, each letting others go first at random; what came out.
inline Bytes CarryAll(const std::shared_ptr<Job>& job, const Problem& problem,
                      const std::vector<Chunks>& plan, uint64_t seed) {
  Bytes out(problem.expected.size());
  std::vector<std::thread> threads;
  for (size_t stream = 0; stream < plan.size(); ++stream)
    threads.emplace_back([&, stream] {
      for (uint64_t n = seed == 0 ? 0 : (seed >> stream) % 20; n > 0; --n) std::this_thread::yield();
      const Status status = Carry(job, static_cast<int>(stream), problem, plan[stream], &out);
      EXPECT_TRUE(status.ok()) << stream << ": " << status.ToString();
    });
  for (auto& thread : threads) thread.join();
  return out;
}

}  // namespace tilewire::engine::testing
