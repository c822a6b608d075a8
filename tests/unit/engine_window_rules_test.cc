// What the window allows and refuses, and that windowed jobs end like others.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/engine_window_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Problem;

/// Ranges of given lengths; nothing of it is ever run.
class Cut final : public Operation {
 public:
  explicit Cut(const std::vector<int64_t>& lengths) : Operation(nullptr) {
    for (const int64_t length : lengths) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + length);
    operand_ = *MakeSpec(DType::kU8, std::vector<int64_t>{ends_.back()});
  }
  std::string_view name() const override { return "cut"; }
  std::string_view numeric_version() const override { return "cut.1"; }
  std::span<const ArraySpec> operands() const override { return {&operand_, 1}; }
  std::span<const ArraySpec> results() const override { return {&operand_, 1}; }
  int64_t range_count() const override { return static_cast<int64_t>(ends_.size()); }
  ByteInterval range_bytes(int64_t index) const override {
    const auto i = static_cast<size_t>(index);
    return {i == 0 ? 0 : ends_[i - 1], ends_[i]};
  }
  void RunHost(Step, const Buffers&, Team&) const override {}
  bool ranges_fill_result() const override { return true; }

 private:
  std::vector<int64_t> ends_;
  ArraySpec operand_;
};

TEST(WindowRules, TheWindowIsAsWideAsTheSlotsAllowFromEveryBlock) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<int64_t> lengths(1 + random() % 12);
    for (int64_t& length : lengths) length = static_cast<int64_t>(1 + random() % 9);
    const Cut cut(lengths);
    const auto block = static_cast<int64_t>(1 + random() % 10),
               slots = static_cast<int64_t>(1 + random() % 6);
    const int64_t total = cut.operands()[0].bytes(), blocks = (total + block - 1) / block;
    // The widest window within which every later block has its slots as soon as all before `lowest` are done.
    int64_t widest = blocks - 1;
    for (int64_t lowest = 0; lowest < blocks; ++lowest)
      for (int64_t later = lowest; later < blocks; ++later)
        if (RangeAt(cut, std::min((later + 1) * block, total) - 1) >= RangeAt(cut, lowest * block) + slots)
          widest = std::min(widest, later - lowest - 1);
    EXPECT_EQ(WindowBytes(cut, slots, block), std::max<int64_t>(widest, 0) * block)
        << ::testing::PrintToString(lengths) << " blocks of " << block << ", slots " << slots;
  }
}

TEST(WindowRules, PlacesOfRangesInUseNeverMeet) {
  const Cut cut({3, 5, 1, 4, 5, 2, 5});
  const Ring ring{.slots = 3, .slot_bytes = 256, .window_bytes = 4};
  Window window(cut, ring, 2, cut.operands().size());
  int64_t offset = 0;
  for (int64_t range = 0; range < cut.range_count(); ++range)
    for (const int64_t end = cut.range_bytes(range).end; offset < end; ++offset) {
      const Window::Place place = window.PlaceOf(offset);
      EXPECT_EQ(place.at, range % 3 * 256 + offset - cut.range_bytes(range).begin);
      EXPECT_EQ(place.bytes, end - offset);
    }
  EXPECT_TRUE(window.Admits(3));   // bytes 6 and 7, of r1
  EXPECT_FALSE(window.Admits(4));  // byte 9 is of r3
  EXPECT_TRUE(window.Beyond(4));
  window.Committed(1);
  EXPECT_TRUE(window.Beyond(4));
  window.Committed(0);  // bytes 0 to 3: block 2 begins in r1
  EXPECT_FALSE(window.Beyond(4));
  EXPECT_FALSE(window.Admits(4));  // the device has yet to compute r0
  window.Leave(1, 5);
  window.Leave(0, 1);
  EXPECT_FALSE(window.Admits(4));
  window.Leave(0, 2);
  EXPECT_TRUE(window.Admits(8));   // up to byte 17, of r4
  EXPECT_FALSE(window.Admits(9));  // r5
}

class WindowRefusal : public ::testing::TestWithParam<bool> {
 protected:
  WindowRefusal() {
    setup_.staged = GetParam();
    setup_.options.device_bytes = testing::BytesOf(problem_) / 2;
    engine_ = testing::MakeEngine(setup_);
  }
  std::shared_ptr<Job> Open(int streams) {
    auto job = testing::OpenWindowed(*engine_, problem_, streams).value();
    for (int i = 1; i < streams; ++i) EXPECT_TRUE(job->Join());
    return job;
  }
  testing::Chunks Of(uint32_t operand, int64_t from_block, int64_t to_block) const {
    return {{operand, from_block * kBlock, (to_block - from_block) * kBlock}};
  }
  /// How stream `stream` ends that brings `chunks` and then half-closes.
  Status Bring(const std::shared_ptr<Job>& job, int stream, const testing::Chunks& chunks) {
    Intake intake(job, stream);
    for (const testing::Chunk& chunk : chunks)
      TILEWIRE_RETURN_IF_ERROR(
          testing::Send(*job, intake, chunk, problem_.operands[chunk.operand], &waiting_));
    job->InputEnded(stream);
    return job->status(stream);
  }

  static constexpr int64_t kBlock = 4096, kBlocks = 100;
  const Problem problem_ = testing::RmseProblem(DType::kU8, {kBlocks * kBlock}, {}, 1, 1);
  testing::Setup setup_;
  std::unique_ptr<Engine> engine_;
  std::atomic<int> waiting_{0};  ///< streams that wait for a place
};

void ExpectRefused(const Status& status) {
  EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status.ToString();
  EXPECT_EQ(status.reason(), "OUT_OF_WINDOW");
}

TEST_P(WindowRefusal, OneOperandAfterTheOtherIsRefused) {
  const auto job = Open(1);
  const Status status = Bring(job, 0, testing::Ascending(problem_, 3 * kBlock));
  ExpectRefused(status);
  ASSERT_NE(status.detail(), nullptr);
  EXPECT_EQ(status.detail()->field, "chunk.offset");
  const int64_t offset = std::stoll(status.detail()->value);
  EXPECT_GT(offset + kBlock, job->window_bytes());  // the first block that has no slot
  EXPECT_LE(offset, job->window_bytes() + kBlock);
  EXPECT_EQ(status.detail()->allowed, "at most " + std::to_string(job->window_bytes()) + " before those");
  EXPECT_EQ(testing::Collect(*job).error().reason(), "OUT_OF_WINDOW");
}

TEST_P(WindowRefusal, AStreamThatRunsAheadWaitsForTheOthers) {
  const auto job = Open(3);
  Status ahead, also;
  std::thread first([&] { ahead = Bring(job, 0, Of(0, 0, kBlocks)); });  // all of one operand
  std::thread second([&] { also = Bring(job, 1, Of(1, 40, kBlocks)); });
  EXPECT_TRUE(testing::Becomes([this] { return waiting_ == 2; }));
  EXPECT_TRUE(job->status().ok());
  EXPECT_TRUE(Bring(job, 2, Of(1, 0, 40)).ok());
  first.join();
  second.join();
  EXPECT_TRUE(ahead.ok()) << ahead.ToString();
  EXPECT_TRUE(also.ok()) << also.ToString();
  job->StreamDone(1);
  job->StreamDone(2);
  EXPECT_TRUE(testing::Collect(*job).value() == problem_.expected);
}

TEST_P(WindowRefusal, WhenAllWaitBeyondItAllAreRefused) {
  const auto job = Open(3);
  Status ends[3];
  std::vector<std::thread> threads;
  for (int stream = 0; stream < 3; ++stream)
    threads.emplace_back(
        [&, stream] { ends[stream] = Bring(job, stream, Of(0, 30 + 20 * stream, 50 + 20 * stream)); });
  for (auto& thread : threads) thread.join();
  for (const Status& end : ends) ExpectRefused(end);
}

TEST_P(WindowRefusal, TheLastOtherStreamToHalfCloseDecides) {
  const auto job = Open(3);
  Status ahead;
  std::thread first([&] { ahead = Bring(job, 0, Of(1, 50, kBlocks)); });
  EXPECT_TRUE(testing::Becomes([this] { return waiting_ == 1; }));
  EXPECT_TRUE(Bring(job, 1, Of(0, 0, 3)).ok());
  EXPECT_TRUE(job->status().ok());
  (void)Bring(job, 2, Of(1, 0, 2));  // nobody is left to bring block 3
  first.join();
  ExpectRefused(ahead);
}

TEST_P(WindowRefusal, SlowDevicesAndReadersAreNoReason) {
  setup_.slow = SlowOptions{.copy_in = milliseconds(1), .launch = milliseconds(3)};
  const auto slow = testing::MakeEngine(setup_);
  const auto job = testing::OpenWindowed(*slow, problem_, 1).value();
  testing::Chunks chunks;
  for (int64_t block = 0; block < kBlocks; ++block)
    for (uint32_t operand = 0; operand < 2; ++operand) chunks.push_back(Of(operand, block, block + 1)[0]);
  EXPECT_TRUE(Bring(job, 0, chunks).ok());
  EXPECT_TRUE(testing::Collect(*job).value() == problem_.expected);
}

INSTANTIATE_TEST_SUITE_P(HostAndStaged, WindowRefusal, ::testing::Bool(),
                         [](const auto& staged) { return staged.param ? "Staged" : "HostMemory"; });

TEST(WindowFailure, AtAnyMomentLeavesNothingBehind) {
  std::mt19937_64 random(23);
  int failed = 0;
  // Who is first depends on the machine, so it goes on until enough jobs were hit.
  for (uint64_t round = 0; round < 40 || (failed <= 10 && round < 1000); ++round) {
    testing::Setup setup;
    setup.staged = round % 2 == 0;
    setup.slow = SlowOptions{.jitter = microseconds(60), .seed = round};
    const auto gate = std::make_shared<tilewire::testing::Gate>();
    setup.wrap = tilewire::testing::HeldBy(gate);
    setup.faults = std::make_shared<Faults>();
    const Problem problem = testing::LongProblem(random);
    setup.options.device_bytes = testing::BytesOf(problem) / 3;
    const auto engine = testing::MakeEngine(setup);
    auto job = testing::OpenWindowed(*engine, problem, 3).value();
    const auto streams = static_cast<size_t>(job->max_streams());
    for (size_t i = 1; i < streams; ++i) ASSERT_TRUE(job->Join());
    const auto plan = testing::WithinWindow(problem, *job, streams, random);
    const Status why(Code::kInternal, "BROKEN", "told to fail");
    const auto when = static_cast<int64_t>(random() % 60);
    if (round % 4 >= 2)
      setup.faults->FailNth(static_cast<Submitted>(random() % 3), static_cast<int64_t>(1 + random() % 60),
                            why);
    testing::Bytes out(problem.expected.size());
    std::vector<std::thread> threads;
    std::vector<Status> ends(streams);
    for (size_t stream = 0; stream < streams; ++stream)
      threads.emplace_back([&, stream] {
        ends[stream] = testing::Carry(job, static_cast<int>(stream), problem, plan[stream], &out);
      });
    {
      std::optional<tilewire::testing::AtSubmission> killer;
      if (round % 4 < 2) killer.emplace(gate, when, [&] { job->Fail(why); });
      for (auto& thread : threads) thread.join();
    }
    // All end as the first one does, but for joined ones that were told the end of the output before.
    for (const Status& end : ends) {
      EXPECT_EQ(end.reason(), ends[0].ok() || (end.ok() && &end != ends.data()) ? "" : "BROKEN")
          << end.ToString();
      EXPECT_TRUE(!end.ok() || testing::SameBytes(out, problem.expected));
    }
    failed += !ends[0].ok();
    job.reset();
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
  EXPECT_GT(failed, 10);
}

TEST(WindowFailure, WaitersAreToldOnceWhenTheJobEnds) {
  testing::Setup setup;
  setup.staged = false;
  const Problem problem = testing::GaussianProblem(DType::kF32, {200 * 1024}, 0, 1, 3, 1024);
  setup.options.device_bytes = testing::BytesOf(problem) / 8;
  const auto engine = testing::MakeEngine(setup);
  auto job = testing::OpenWindowed(*engine, problem, 1).value();
  int told = 0;
  {
    Intake intake(job);
    ASSERT_TRUE(intake.BeginChunk(0, 0, problem.operands[0].size()).ok());
    // Nobody takes output, so the ring fills up.
    while (const auto place = intake.NextPlace()) intake.Filled(place->size());
    intake.WhenPlaceFree([&told] { ++told; });
    EXPECT_EQ(told, 0);
    job->StreamLost(0, Status(Code::kCancelled, "CANCELLED", "the client is gone"));
    EXPECT_EQ(told, 1);
  }
  job.reset();
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

}  // namespace
}  // namespace tilewire::engine
