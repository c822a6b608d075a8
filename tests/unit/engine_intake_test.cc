// The rule of runs, for one stream and for several, against a model that knows bytes and nothing else.
#include "server/engine/job/intake.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

using testing::Chunk;
using testing::Chunks;
using testing::Problem;

constexpr int64_t kBytes = 10, kBlock = 4;  // blocks of 4, 4 and 2 bytes

/// One operand and one stream, byte by byte.
struct IntakeModel {
  int64_t next = -1;  ///< where the run goes on; −1: nothing came yet
  std::set<int64_t> arrived;

  bool Legal(int64_t offset, int64_t bytes) const {
    if (bytes < 1 || offset < 0 || offset + bytes > kBytes) return false;
    for (int64_t at = offset; at < offset + bytes; ++at)
      if (arrived.contains(at)) return false;
    const bool run_may_end = next < 0 || next % kBlock == 0 || next == kBytes;
    return offset == next || (run_may_end && offset % kBlock == 0);
  }
  void Take(int64_t offset, int64_t bytes) {
    for (int64_t at = offset; at < offset + bytes; ++at) arrived.insert(at);
    next = offset + bytes;
  }
  bool Unfinished() const { return next > 0 && next % kBlock != 0 && next != kBytes; }
  auto operator<=>(const IntakeModel&) const = default;
};

class IntakeTest : public ::testing::TestWithParam<bool> {
 protected:
  IntakeTest() {
    testing::Setup setup;
    setup.staged = GetParam();
    setup.options.block_bytes = kBlock;
    engine_ = testing::MakeEngine(setup);
  }
  std::shared_ptr<Job> Open(const Problem& problem) {
    auto job = testing::Open(*engine_, problem.make());
    EXPECT_TRUE(job) << job.error().ToString();
    return *job;
  }
  static Problem OneOperand() { return testing::TransposeProblem(DType::kU8, {2, 5}, {}, 1); }
  static Problem TwoOperands() { return testing::RmseProblem(DType::kU8, {kBytes}, {}, 1); }
  /// A fresh job and intake that have taken `chunks`.
  std::pair<std::shared_ptr<Job>, std::unique_ptr<Intake>> After(const Problem& problem,
                                                                 const Chunks& chunks) {
    auto job = Open(problem);
    auto intake = std::make_unique<Intake>(job);
    for (const Chunk& chunk : chunks) {
      const Status sent = testing::Send(*job, *intake, chunk, problem.operands[chunk.operand]);
      EXPECT_TRUE(sent.ok()) << sent.ToString();
    }
    return {job, std::move(intake)};
  }

  std::unique_ptr<Engine> engine_;
};

// From every state that legal chunks can reach, every chunk there is.
TEST_P(IntakeTest, AcceptsExactlyTheLegalChunksInEveryReachableState) {
  const Problem problem = OneOperand();
  std::map<IntakeModel, Chunks> reached{{IntakeModel(), {}}};
  std::deque<IntakeModel> open{IntakeModel()};
  int tried = 0;
  while (!open.empty()) {
    const IntakeModel model = open.front();
    open.pop_front();
    const Chunks chunks = reached[model];
    auto [job, intake] = After(problem, chunks);
    EXPECT_EQ(intake->HalfClosed().ok(), !model.Unfinished());
    for (int64_t offset = 0; offset <= kBytes + 1; ++offset) {
      for (int64_t bytes = 0; bytes <= kBytes + 1; ++bytes, ++tried) {
        const Status status =
            intake->BeginChunk(0, static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes));
        ASSERT_EQ(status.ok(), model.Legal(offset, bytes))
            << offset << "+" << bytes << " after " << chunks.size() << " chunks, next " << model.next << ": "
            << status.ToString();
        if (!status.ok()) {
          EXPECT_EQ(status.code(), Code::kInvalidArgument);
          // Only a repeated block is noticed after the run has moved; all else must leave no trace.
          if (status.message().find("sent before") == std::string_view::npos) continue;
        }
        std::tie(job, intake) = After(problem, chunks);
        if (!status.ok()) continue;
        IntakeModel next = model;
        next.Take(offset, bytes);
        Chunks more = chunks;
        more.push_back({0, offset, bytes});
        if (reached.emplace(next, std::move(more)).second) open.push_back(next);
      }
    }
  }
  EXPECT_GT(reached.size(), 20U);
  EXPECT_GT(tried, 20 * 144);
}

TEST_P(IntakeTest, EveryAscendingChunkingDeliversTheBytes) {
  const Problem problem = OneOperand();
  for (uint32_t cuts = 0; cuts < 1U << (kBytes - 1); ++cuts) {
    Chunks chunks;
    for (int64_t from = 0, at = 1; at <= kBytes; ++at)
      if (at == kBytes || (cuts >> (at - 1) & 1) != 0) chunks.push_back({0, std::exchange(from, at), 0});
    for (size_t i = 0; i < chunks.size(); ++i)
      chunks[i].bytes = (i + 1 < chunks.size() ? chunks[i + 1].offset : kBytes) - chunks[i].offset;
    auto [job, intake] = After(problem, chunks);
    ASSERT_EQ(intake->blocks_done(), 3U);
    ASSERT_TRUE(intake->HalfClosed().ok());
    job->InputEnded();
    const auto output = testing::Collect(*job);
    ASSERT_TRUE(output) << output.error().ToString();
    ASSERT_EQ(*output, problem.expected);
  }
}

TEST_P(IntakeTest, NamesWhatIsWrong) {
  const Problem problem = OneOperand();
  auto [job, intake] = After(problem, {{0, 0, 2}});
  struct Case {
    uint32_t operand;
    uint64_t offset, bytes;
    std::string_view reason, part;
  };
  for (const Case& c :
       {Case{1, 0, 1, "BAD_VALUE", "operand"}, Case{0, 2, 0, "BAD_VALUE", "empty"},
        Case{0, 2, 9, "BAD_VALUE", "10"}, Case{0, 10, 1, "BAD_VALUE", "10"},
        Case{0, 2, UINT64_MAX, "BAD_VALUE", "10"}, Case{0, UINT64_MAX, 2, "BAD_VALUE", "10"},
        Case{0, 3, 1, "RUN_RULE", "continues at 2"}, Case{0, 4, 1, "RUN_RULE", "continues at 2"}}) {
    const Status status = intake->BeginChunk(c.operand, c.offset, c.bytes);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.reason(), c.reason);
    EXPECT_NE(status.message().find(c.part), std::string_view::npos) << status.message();
  }
  EXPECT_EQ(intake->HalfClosed().reason(), "BYTES_MISSING");
  EXPECT_TRUE(testing::Send(*job, *intake, {0, 2, 8}, problem.operands[0]).ok());  // the run goes on
  EXPECT_EQ(intake->BeginChunk(0, 5, 1).reason(), "RUN_RULE");
  EXPECT_EQ(intake->BeginChunk(0, 4, 1).reason(), "RUN_RULE");  // sent before
}

TEST_P(IntakeTest, OperandsHaveRunsOfTheirOwn) {
  const Problem problem = TwoOperands();
  auto [job, intake] = After(problem, {{0, 0, 3}, {1, 8, 1}, {0, 3, 4}, {1, 9, 1}, {1, 0, 7}, {0, 7, 3}});
  EXPECT_EQ(intake->BeginChunk(1, 8, 1).reason(), "RUN_RULE");
  EXPECT_EQ(intake->HalfClosed().reason(), "BYTES_MISSING");
  EXPECT_TRUE(testing::Send(*job, *intake, {1, 7, 1}, problem.operands[1]).ok());
  EXPECT_EQ(intake->blocks_done(), 6U);
  EXPECT_TRUE(intake->HalfClosed().ok());
  job->InputEnded();
  const auto output = testing::Collect(*job);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
}

TEST_P(IntakeTest, ABlockBelongsToOneStreamAlone) {
  const Problem problem = OneOperand();
  const auto job = Open(problem);
  Intake first(job), second(job);
  ASSERT_TRUE(testing::Send(*job, first, {0, 4, 2}, problem.operands[0]).ok());
  // Neither the bytes that came nor those of the same block that did not.
  EXPECT_EQ(Intake(job).BeginChunk(0, 4, 1).reason(), "RUN_RULE");
  EXPECT_EQ(Intake(job).BeginChunk(0, 6, 1).reason(), "RUN_RULE");
  ASSERT_TRUE(testing::Send(*job, second, {0, 0, 4}, problem.operands[0]).ok());
  EXPECT_EQ(second.BeginChunk(0, 4, 4).reason(), "RUN_RULE");
  ASSERT_TRUE(testing::Send(*job, second, {0, 8, 2}, problem.operands[0]).ok());
  ASSERT_TRUE(testing::Send(*job, first, {0, 6, 2}, problem.operands[0]).ok());
  job->InputEnded();
  const auto output = testing::Collect(*job);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
}

TEST_P(IntakeTest, MissingBlocksAreNoticedWhenInputEnds) {
  const Problem problem = OneOperand();
  auto [job, intake] = After(problem, {{0, 0, 4}, {0, 8, 2}});
  EXPECT_TRUE(intake->HalfClosed().ok());
  job->InputEnded();
  const auto output = testing::Collect(*job);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().reason(), "BYTES_MISSING");
  EXPECT_EQ(job->status().reason(), "BYTES_MISSING");
}

TEST_P(IntakeTest, AFailedJobHasNoPlaces) {
  const Problem problem = OneOperand();
  auto [job, intake] = After(problem, {{0, 0, 2}});
  ASSERT_TRUE(intake->BeginChunk(0, 2, 8).ok());
  ASSERT_TRUE(intake->NextPlace());  // the open block's
  intake->Filled(2);
  job->Fail(Status(Code::kCancelled, "GONE", ""));
  EXPECT_FALSE(intake->NextPlace());
  bool told = false;
  job->WhenBlockFree([&told] { told = true; });
  EXPECT_TRUE(told);
  EXPECT_EQ(intake->BeginChunk(0, 8, 2).reason(), "GONE");
}

// One call a message: where the bytes were received and staged, and how many were copied, is all told.
TEST_P(IntakeTest, TakingAChunkCopiesCountsAndRecordsIt) {
  const Problem problem = OneOperand();
  const auto job = *testing::Open(*engine_, problem.make(), {.trace = true});
  Intake intake(job);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(problem.operands[0].data());
  const std::span<const uint8_t> slices[] = {{bytes, 3}, {bytes, 0}, {bytes + 3, kBytes - 3}};
  const TimePoint now = Clock::now();
  auto taken =
      intake.Take({.slices = slices, .received = std::pair(now, now + std::chrono::microseconds(7))});
  for (; taken && !*taken; taken = intake.GoOn()) {
    auto free = std::make_shared<std::promise<void>>();
    intake.WhenPlaceFree([free] { free->set_value(); });
    free->get_future().wait();
  }
  ASSERT_TRUE(taken) << taken.error().ToString();
  job->InputEnded();
  const auto output = testing::Collect(*job);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
  const Timing timing = job->timing();
  EXPECT_EQ(timing.bytes_copied, static_cast<uint64_t>(kBytes));
  uint64_t received = 0, staged = 0, places = 0;
  for (const Span& span : timing.spans) {
    if (span.stage == Stage::kReceive) received += span.bytes;
    if (span.stage != Stage::kStage) continue;
    EXPECT_EQ(span.index, places++) << "block after block";
    staged += span.bytes;
  }
  EXPECT_EQ(received, static_cast<uint64_t>(kBytes));
  EXPECT_EQ(staged, static_cast<uint64_t>(kBytes));
  EXPECT_EQ(places, 3U);
  EXPECT_EQ(timing.of(Stage::kReceive), 7);
}

INSTANTIATE_TEST_SUITE_P(HostAndStaged, IntakeTest, ::testing::Bool(),
                         [](const auto& staged) { return staged.param ? "Staged" : "HostMemory"; });

TEST(IntakeStaging, GivesUnfinishedBlocksBack) {
  testing::Setup setup;
  setup.options.block_bytes = kBlock;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::TransposeProblem(DType::kU8, {8, 5}, {}, 1);  // 10 blocks, 3 to stage them
  const auto job = *testing::Open(*engine, problem.make());
  {
    std::array<std::unique_ptr<Intake>, 4> intakes;
    for (size_t i = 0; i < 4; ++i) {
      intakes[i] = std::make_unique<Intake>(job);
      ASSERT_TRUE(intakes[i]->BeginChunk(0, 4 * i, 2).ok());
      ASSERT_EQ(intakes[i]->NextPlace().has_value(), i < 3) << i;
    }
    bool told = false;
    job->WhenBlockFree([&told] { told = true; });
    EXPECT_FALSE(told);
    intakes[1].reset();
    EXPECT_TRUE(told);
    ASSERT_TRUE(intakes[3]->NextPlace());
  }
  // All three are back.
  std::array<std::unique_ptr<Intake>, 3> intakes;
  for (size_t i = 0; i < 3; ++i) {
    intakes[i] = std::make_unique<Intake>(job);
    ASSERT_TRUE(intakes[i]->BeginChunk(0, 4 * (i + 4), 4).ok());
    EXPECT_TRUE(intakes[i]->NextPlace());
  }
}

}  // namespace
}  // namespace tilewire::engine
