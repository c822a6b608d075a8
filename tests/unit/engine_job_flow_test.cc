// What may happen before what: copies, kernels and output overlap, and nothing waits that need not.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Bytes;
using testing::Problem;

constexpr int64_t kFlowBlock = 4096;

/// Sends blocks [begin, end) of an operand as one chunk.
void SendBlocks(Job& job, Intake& intake, const Problem& problem, uint32_t operand, int64_t begin,
                int64_t end) {
  const auto size = static_cast<int64_t>(problem.operands[operand].size());
  const int64_t from = begin * kFlowBlock, to = std::min(end * kFlowBlock, size);
  const Status sent = testing::Send(job, intake, {operand, from, to - from}, problem.operands[operand]);
  ASSERT_TRUE(sent.ok()) << sent.ToString();
}

TEST(JobFlow, KernelsRunOnRangesWhoseBytesAreThere) {
  for (const bool staged : {true, false}) {
    testing::Setup setup;
    setup.staged = staged;
    setup.faults = std::make_shared<Faults>();
    const auto engine = testing::MakeEngine(setup);
    const Problem problem = testing::FineRmseProblem(1);
    const auto job = *testing::Open(*engine, problem.make());
    const auto launches = [&] { return setup.faults->count(Submitted::kLaunch); };
    Intake intake(job);
    EXPECT_FALSE(job->launched());
    SendBlocks(*job, intake, problem, 0, 0, 48);
    SendBlocks(*job, intake, problem, 1, 30, 40);
    EXPECT_TRUE(testing::Becomes([&] { return launches() == 10; })) << launches();
    SendBlocks(*job, intake, problem, 1, 0, 30);
    EXPECT_TRUE(testing::Becomes([&] { return launches() == 40; })) << launches();
    EXPECT_TRUE(job->launched());
    SendBlocks(*job, intake, problem, 1, 40, 48);
    job->InputEnded();
    EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
    EXPECT_EQ(launches(), 48 + 1);  // and the finish
  }
}

/// `by_job`: the job asks for it, else the engine does it to all.
void ExpectSerial(bool by_job) {
  testing::Setup setup;
  setup.options.overlap = by_job;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(2);
  JobOptions options;
  options.sequential = by_job;
  options.trace = true;
  const auto job = *testing::Open(*engine, problem.make(), options);
  Intake intake(job);
  SendBlocks(*job, intake, problem, 0, 0, 48);
  SendBlocks(*job, intake, problem, 1, 0, 47);
  EXPECT_EQ(setup.faults->count(Submitted::kCopyIn), 95);
  EXPECT_TRUE(testing::Becomes([&] { return job->timing().blocks == 95; }));
  EXPECT_EQ(setup.faults->count(Submitted::kLaunch), 0);
  SendBlocks(*job, intake, problem, 1, 47, 48);
  job->InputEnded();
  EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
  EXPECT_EQ(setup.faults->count(Submitted::kLaunch), 49);
  const Timing timing = job->timing();
  EXPECT_EQ(timing.lanes, 1U);
  TimePoint last_copy = TimePoint::min(), first_kernel = TimePoint::max();
  for (const Span& span : timing.spans) {
    if (span.stage == Stage::kH2D) last_copy = std::max(last_copy, span.end);
    if (span.stage == Stage::kKernel) first_kernel = std::min(first_kernel, span.begin);
  }
  EXPECT_NE(last_copy, TimePoint::min());
  EXPECT_LE(last_copy, first_kernel);
}

TEST(JobFlow, WithoutOverlapKernelsWaitForAllCopies) {
  ExpectSerial(false);
  ExpectSerial(true);
}

TEST(JobFlow, AJobMayAskForBlocksAndLanes) {
  testing::Setup setup;
  setup.options.lanes = 4;
  setup.options.block_bytes = 64 << 10;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(4);
  for (const int lanes : {1, 2, 4, 9}) {
    JobOptions options;
    options.block_bytes = 8192;
    options.lanes = lanes;
    const auto job = *testing::Open(*engine, problem.make(), options);
    EXPECT_EQ(job->block_bytes(), 8192);
    const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 8192)});
    EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
    EXPECT_EQ(job->timing().blocks, 48U);
    EXPECT_EQ(job->timing().lanes, static_cast<uint32_t>(std::min(lanes, 4)));
  }
}

/// Half of the input gives half of the output, then the rest the rest; every range is three blocks.
void ExpectEarlyOutput(const Problem& problem, bool staged, int64_t blocks) {
  testing::Setup setup;
  setup.staged = staged;
  const auto engine = testing::MakeEngine(setup);
  const auto job = *testing::Open(*engine, problem.make());
  Intake intake(job);
  SendBlocks(*job, intake, problem, 0, 0, 37);  // twelve ranges and a third of one
  Bytes early;
  while (early.size() < 36 * kFlowBlock) {
    const auto piece = testing::Next(*job);
    ASSERT_TRUE(piece && *piece);
    early.insert(early.end(), (*piece)->data, (*piece)->data + (*piece)->bytes);
  }
  EXPECT_EQ(early.size(), 36U * kFlowBlock);
  EXPECT_TRUE(std::equal(early.begin(), early.end(), problem.expected.begin()));
  SendBlocks(*job, intake, problem, 0, 37, blocks);
  job->InputEnded();
  while (true) {
    const auto piece = testing::Next(*job);
    ASSERT_TRUE(piece);
    if (!*piece) break;
    EXPECT_EQ((*piece)->offset, static_cast<int64_t>(early.size()));
    early.insert(early.end(), (*piece)->data, (*piece)->data + (*piece)->bytes);
  }
  EXPECT_EQ(early, problem.expected);
}

TEST(JobFlow, OutputLeavesWhileInputStillArrives) {
  for (const bool staged : {true, false}) {
    ExpectEarlyOutput(testing::FineTransposeProblem(3), staged, 72);
    ExpectEarlyOutput(testing::FineGaussianProblem(3), staged, 73);  // a remainder of five elements
  }
}

TEST(JobFlow, AFullBlockWaitsForNoOtherOperand) {
  testing::Setup setup;
  setup.slow = SlowOptions{.copy_in = microseconds(50), .jitter = microseconds(100)};
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(4);
  const auto job = *testing::Open(*engine, problem.make());
  const uint64_t pinned = engine->stats().pinned_bytes_in_use;
  EXPECT_LT(pinned, 8U * kFlowBlock);  // far fewer staging blocks than an operand's 48
  Intake intake(job);
  SendBlocks(*job, intake, problem, 0, 0, 48);  // all of A, nothing of B
  EXPECT_EQ(setup.faults->count(Submitted::kCopyIn), 48);
  EXPECT_EQ(setup.faults->count(Submitted::kLaunch), 0);
  SendBlocks(*job, intake, problem, 1, 0, 48);
  EXPECT_EQ(engine->stats().pinned_bytes_in_use, pinned);
  job->InputEnded();
  EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
}

TEST(JobFlow, OutputThatNobodyReadsStopsNoInput) {
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineTransposeProblem(5);
  const auto job = *testing::Open(*engine, problem.make());
  Intake intake(job);
  SendBlocks(*job, intake, problem, 0, 0, 72);
  job->InputEnded();
  EXPECT_TRUE(testing::Becomes([&] { return job->timing().ranges == 24; }));
  EXPECT_EQ(setup.faults->count(Submitted::kCopyOut), 3);  // as many as there are output blocks
  EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
  EXPECT_EQ(setup.faults->count(Submitted::kCopyOut), 72);
}

TEST(JobFlow, PiecesThatAreHeldHoldTheNextOnesBack) {
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineTransposeProblem(6);
  auto job = *testing::Open(*engine, problem.make());
  { const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 50'000)}); }
  std::vector<OutputPiece> held;
  for (int i = 0; i < 3; ++i) held.push_back(**testing::Next(*job));
  std::promise<OutputPiece> fourth;
  auto answered = fourth.get_future();
  job->NextOutput([&fourth](auto piece) { fourth.set_value(**piece); });
  EXPECT_TRUE(testing::Becomes([&] { return job->timing().ranges == 24; }));
  EXPECT_EQ(setup.faults->count(Submitted::kCopyOut), 3) << "there is no block for a fourth";
  EXPECT_NE(answered.wait_for(milliseconds(0)), std::future_status::ready);
  for (const OutputPiece& piece : held)  // none was overwritten meanwhile
    EXPECT_TRUE(std::equal(piece.data, piece.data + piece.bytes, problem.expected.data() + piece.offset));
  engine->DropSoon(std::move(held[1].hold));
  OutputPiece piece = answered.get();
  EXPECT_EQ(piece.offset, 3 * kFlowBlock);
  EXPECT_TRUE(std::equal(piece.data, piece.data + piece.bytes, problem.expected.data() + piece.offset));
  // Pieces keep their memory, and their job's place, without the job's owner.
  job.reset();
  held[0].hold.reset();
  EXPECT_EQ(engine->stats().jobs_in_flight, 1U);
  held.clear();
  EXPECT_TRUE(std::equal(piece.data, piece.data + piece.bytes, problem.expected.data() + piece.offset));
  piece = {};
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(JobFlow, ManyJobsShareTheLanes) {
  testing::Setup setup;
  setup.slow = SlowOptions{.jitter = microseconds(30)};
  const auto engine = testing::MakeEngine(setup);
  std::vector<std::thread> clients;
  for (uint64_t client = 0; client < 4; ++client)
    clients.emplace_back([&engine, client] {
      std::mt19937_64 random(client);
      for (uint64_t i = 0; i < 3; ++i) {
        const Problem problem = client % 2 == 0 ? testing::FineRmseProblem(10 * client + i)
                                                : testing::FineTransposeProblem(10 * client + i);
        const auto output =
            testing::RunJob(*engine, problem, testing::Scattered(problem, kFlowBlock, 1 + i, random));
        ASSERT_TRUE(output) << output.error().ToString();
        EXPECT_EQ(*output, problem.expected);
      }
    });
  for (auto& client : clients) client.join();
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

/// Microseconds in which any of the spans ran.
double CoveredMicros(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  Clock::duration covered{0};
  TimePoint since = TimePoint::min();
  for (const Span& span : spans) {
    covered += std::max(span.end, since) - std::max(span.begin, since);
    since = std::max(since, span.end);
  }
  return std::chrono::duration<double, std::micro>(covered).count();
}

TEST(JobFlow, TimingTellsWhatHappened) {
  for (const bool staged : {true, false}) {
    testing::Setup setup;
    setup.staged = staged;
    const auto engine = testing::MakeEngine(setup);
    const Problem problem = testing::FineTransposeProblem(7);
    const auto job =
        *testing::Open(*engine, problem.make(), {.trace = true, .arrived = Clock::now() - milliseconds(3)});
    const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 50'000)});
    EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
    const Timing timing = job->timing();
    EXPECT_EQ(timing.bytes_in, 72U * kFlowBlock);
    EXPECT_EQ(timing.bytes_out, 72U * kFlowBlock);
    EXPECT_EQ(timing.blocks, 72U);
    EXPECT_EQ(timing.ranges, 24U);
    EXPECT_EQ(timing.lanes, 3U);
    EXPECT_EQ(timing.streams, 1U);
    EXPECT_EQ(timing.device, "cpu");
    EXPECT_GE(timing.of(Stage::kQueue), 0);
    EXPECT_LT(timing.of(Stage::kQueue), timing.wall_us);
    EXPECT_GE(timing.wall_us, 3000);
    EXPECT_GT(timing.of(Stage::kKernel), 0);
    EXPECT_EQ(timing.of(Stage::kH2D) >= 0, staged);
    EXPECT_EQ(timing.of(Stage::kD2H) >= 0, staged);
    EXPECT_LT(timing.of(Stage::kSend), 0);
    EXPECT_GE(timing.wall_us, timing.of(Stage::kQueue) + timing.of(Stage::kKernel));
    EXPECT_GE(timing.of(Stage::kOther), 3000) << "before it asked for admission";
    EXPECT_NEAR(timing.of(Stage::kOther), timing.wall_us - CoveredMicros(timing.spans), 1e-3);
    uint64_t staged_bytes = 0, others = 0;
    for (const Span& span : timing.spans)
      if (span.stage == Stage::kStage)
        staged_bytes += span.bytes;
      else
        ++others;
    EXPECT_EQ(staged_bytes, timing.bytes_in);
    EXPECT_EQ(others, staged ? 1U + 72 + 24 + 72 : 1U + 24);
    // No copy waits on a stream behind a kernel, or behind a copy the other way.
    if (!staged) continue;
    const std::map<Stage, uint32_t> tracks = {{Stage::kH2D, 0}, {Stage::kKernel, 1}, {Stage::kD2H, 2}};
    for (const Span& span : timing.spans)
      if (const auto track = tracks.find(span.stage); track != tracks.end()) {
        EXPECT_EQ(span.track, track->second) << StageName(span.stage);
      }
  }
}

}  // namespace
}  // namespace tilewire::engine
