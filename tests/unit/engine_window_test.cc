// Jobs larger than the device's memory: the same bits as ever, in bounded memory.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/engine_window_testing.h"

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
using testing::Problem;

TEST(Window, SameBitsOnEveryDeviceHoweverBytesArriveWithinIt) {
  std::mt19937_64 random(20251121);
  for (uint64_t round = 0; round < 36; ++round) {
    testing::Setup setup;
    setup.staged = round % 2 == 0;
    setup.options.lanes = static_cast<int>(1 + random() % 4);
    setup.options.overlap = round % 10 != 9;
    setup.options.block_bytes = std::array{1000, 2048, 4096, 5000, 20'000}[random() % 5];
    setup.slow = SlowOptions{.jitter = microseconds(random() % 3 == 0 ? 100 : 0), .seed = round};
    setup.shortage = std::make_shared<Shortage>();
    const Problem problem = testing::LongProblem(random);
    setup.options.device_bytes = testing::BytesOf(problem) / static_cast<int64_t>(2 + random() % 3);
    const auto engine = testing::MakeEngine(setup);
    const auto wanted = static_cast<int>(1 + random() % 8);
    const auto job = testing::OpenWindowed(*engine, problem, wanted).value();
    ASSERT_GE(job->window_bytes(), job->block_bytes());
    EXPECT_EQ(job->window_bytes() % job->block_bytes(), 0);
    EXPECT_LE(engine->stats().device_bytes_in_use, engine->stats().device_bytes);
    EXPECT_LE(setup.shortage->leased_device_bytes(), setup.options.device_bytes);
    const auto streams = static_cast<size_t>(job->max_streams());
    for (size_t i = 1; i < streams; ++i) ASSERT_TRUE(job->Join());
    const auto plan = testing::WithinWindow(problem, *job, streams, random);
    EXPECT_TRUE(testing::SameBytes(testing::CarryAll(job, problem, plan, random()), problem.expected))
        << "round " << round << ", " << job->operation().name() << ", window " << job->window_bytes();
    EXPECT_LE(setup.shortage->leased_device_bytes(), setup.options.device_bytes);
    EXPECT_EQ(job->timing().bytes_in, problem.operands.size() * problem.operands[0].size());
    EXPECT_EQ(job->timing().bytes_out, problem.expected.size());
    EXPECT_EQ(job->timing().ranges, static_cast<uint64_t>(job->operation().range_count()));
  }
}

// The very operations that the server makes, whole segments, cut ones and slabs in a range.
TEST(Window, SameBitsForEveryLayoutThatCanBeWindowed) {
  std::mt19937_64 random(5);
  const Problem problems[] = {
      testing::RmseProblem(DType::kU8, {20'000'001}, {}, 1),            // one segment
      testing::RmseProblem(DType::kU8, {3, 6'500'000}, {1}, 2),         // segments in four parts
      testing::RmseProblem(DType::kI16, {150, 70'001}, {-1}, 3),        // many segments a part
      testing::RmseProblem(DType::kU16, {2501, 64, 65}, {1}, 4),        // columns in short slabs
      testing::RmseProblem(DType::kF16, {7, 30, 50, 1000}, {2, 3}, 5),  // two axes of three
      testing::RmseProblem(DType::kF64, {2'000'000, 1}, {1}, 6),        // nothing to sum
      testing::GaussianProblem(DType::kF32, {4'000'003}, 0.5, 2, 7),
      testing::GaussianProblem(DType::kF64, {3, 700'001}, -1, 1e-3, 8),
  };
  for (const bool staged : {true, false})
    for (const Problem& problem : problems) {
      testing::Setup setup;
      setup.staged = staged;
      setup.options.block_bytes = 1 << 20;
      setup.options.device_bytes = std::max(testing::BytesOf(problem) * 7 / 8, int64_t{20} << 20);
      const auto engine = testing::MakeEngine(setup);
      const auto job = testing::OpenWindowed(*engine, problem, 2);
      ASSERT_TRUE(job) << job.error().ToString();
      ASSERT_GT((*job)->window_bytes(), 0) << &problem - problems;
      const auto plan = testing::WithinWindow(problem, **job, 1, random);
      EXPECT_TRUE(testing::SameBytes(testing::CarryAll(*job, problem, plan, 0), problem.expected))
          << &problem - problems;
    }
}

TEST(Window, IsOnlyForWhatDoesNotFit) {
  const Problem problem = testing::RmseProblem(DType::kU8, {400 * 1024}, {}, 1, 1);
  testing::Setup setup;
  EXPECT_EQ(testing::OpenWindowed(*testing::MakeEngine(setup), problem, 1).value()->window_bytes(), 0);
  setup.options.device_bytes = testing::BytesOf(problem) / 2;
  const auto engine = testing::MakeEngine(setup);
  EXPECT_GT(testing::OpenWindowed(*engine, problem, 1).value()->window_bytes(), 0);
  const auto refused = testing::Open(*engine, problem.make(), {.may_window = false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "LIMIT");
  EXPECT_EQ(engine->stats().jobs_windowed, 1U);
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(Window, RefusalsSayWhyItIsImpossible) {
  testing::Setup setup;
  setup.options.device_bytes = 16 << 20;
  const auto engine = testing::MakeEngine(setup);
  const auto why = [&](std::unique_ptr<Operation> operation) {
    const auto job = testing::Open(*engine, std::move(operation), {.may_window = true});
    EXPECT_FALSE(job);
    if (job) return std::string();
    EXPECT_EQ(job.error().reason(), "LIMIT");
    EXPECT_EQ(job.error().detail()->field, "device bytes of the request");
    return std::string(job.error().message());
  };
  const auto rmse = [](DType dtype, const std::vector<int64_t>& dims, const std::vector<int32_t>& axes) {
    return rmse::MakeProblem(*rmse::Plan::Make(*MakeSpec(dtype, dims), axes, rmse::Output::kRmse));
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(why(transpose::MakeProblem(
          *transpose::Plan::Make(*MakeSpec(DType::kU8, std::vector<int64_t>{5000, 5000}), {}))),
      "a transpose needs all of its input at once");
  has(why(rmse(DType::kF32, {9000, 900}, {0})), "the reduced axes must be the last ones");
  has(why(rmse(DType::kF32, {4000, 5000}, {0})), "one after the other");
  has(why(rmse(DType::kF32, {3'000'000, 2}, {1})), "do not fit");  // tile sums and result alone are 48 MB
  has(why(rmse(DType::kF32, {int64_t{1} << 33}, {})), "do not fit");
  has(why(rmse(DType::kF32, {int64_t{1} << 57}, {})), "has more than");
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_EQ(engine->stats().jobs_refused_limit, 6U);
}

TEST(Window, SlotsAreFreeAgainOnlyWhenTheirOutputHasLeft) {
  for (const bool staged : {true, false}) {
    testing::Setup setup;
    setup.staged = staged;
    const Problem problem = testing::GaussianProblem(DType::kF32, {200 * 1024 + 3}, 0, 1, 3, 1024);
    setup.options.device_bytes = testing::BytesOf(problem) / 8;
    const auto engine = testing::MakeEngine(setup);
    const auto job = testing::OpenWindowed(*engine, problem, 1).value();
    std::atomic<bool> sent = false;
    std::atomic<int> waiting = 0;
    std::thread sender([&] {
      Intake intake(job);
      for (const testing::Chunk& chunk : testing::Ascending(problem, 10'000))
        EXPECT_TRUE(testing::Send(*job, intake, chunk, problem.operands[0], &waiting).ok());
      sent = true;
      job->InputEnded();
    });
    // Pieces that are held hold their slots, or the staging blocks that the slots' bytes should go to.
    std::vector<OutputPiece> held;
    const auto ring = static_cast<int64_t>(problem.operands[0].size() / 4);
    testing::Bytes out;
    for (int i = 0; i < 3; ++i) held.push_back(**testing::Next(*job));
    EXPECT_TRUE(testing::Becomes([&] { return waiting == 1; }));
    EXPECT_FALSE(sent);
    EXPECT_LT(static_cast<int64_t>(job->timing().bytes_in), ring);
    for (const OutputPiece& piece : held)
      EXPECT_TRUE(std::equal(piece.data, piece.data + piece.bytes, problem.expected.data() + piece.offset));
    for (OutputPiece& piece : held) {
      out.insert(out.end(), piece.data, piece.data + piece.bytes);
      piece.hold.reset();
    }
    while (auto piece = *testing::Next(*job)) out.insert(out.end(), piece->data, piece->data + piece->bytes);
    sender.join();
    EXPECT_TRUE(out == problem.expected);
  }
}

}  // namespace
}  // namespace tilewire::engine
