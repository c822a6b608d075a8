// What of a result may leave, in which pieces, and who is told: the output of a job by itself.
#include "server/engine/job/output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/engine_cuts.h"

namespace tilewire::engine {
namespace {

using testing::Cuts;
using testing::Ranged;

/// Three results of which two are followed by bytes that are nobody's.
Cuts ThreeResults() {
  return {1, Ranged(4096, 1024, 0), {1000, 256, 700}, false};
}

constexpr std::string_view kNames[] = {"InPlace", "Blocks", "Region", "Stay"};

class OutputOf : public ::testing::TestWithParam<OutputWay> {
 protected:
  static constexpr size_t kCopies = 2;
  const Cuts cuts_ = ThreeResults();
  const int64_t total_ = cuts_.result_bytes();
  Output output_{cuts_, GetParam(), 300, kCopies, nullptr};
  Streams streams_;
  std::vector<int> bytes_ = std::vector<int>(static_cast<size_t>(total_));  ///< how often each left

  void Left(int64_t begin, int64_t bytes) {
    for (int64_t at = begin; at < begin + bytes; ++at) ++bytes_[static_cast<size_t>(at)];
  }
  void ExpectAllResultsOnce() const {
    for (int64_t at = 0; at < total_; ++at) {
      const size_t result = cuts_.result_at(at);
      const bool inside = at < cuts_.result_offset(result) + cuts_.results()[result].bytes();
      ASSERT_EQ(bytes_[static_cast<size_t>(at)], inside ? 1 : 0) << at;
    }
  }
  /// What is handed out now to the one stream; how many bytes. Each piece is given back.
  int64_t TakePieces(bool* ended) {
    for (int64_t taken = 0;;) {
      output_.Wait({0, true, nullptr});
      const auto answer = output_.NextAnswer(streams_, true);
      if (!answer) {
        EXPECT_EQ(output_.TakeWaiters().size(), 1U);
        return taken;
      }
      if (*ended = !answer->piece; *ended) return taken;
      const Output::Piece& piece = *answer->piece;
      EXPECT_EQ(cuts_.result_offset(piece.result) + piece.offset, piece.begin);
      Left(piece.begin, piece.bytes);
      taken += piece.bytes;
      if (piece.in.block >= 0) output_.Return(piece.in.block);
    }
  }
};

TEST_P(OutputOf, EveryByteOfEveryResultLeavesOnceAndNoOther) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  bool ended = false;
  for (int64_t ready = 0; !ended;) {
    ASSERT_FALSE(output_.over());
    ready = std::min(ready + 1 + static_cast<int64_t>(random() % 400), total_);
    output_.Ready(ready);
    std::vector<Output::Copy> copies;
    while (const auto copy = output_.NextCopy()) {
      EXPECT_LE(copy->begin + copy->bytes, ready);
      copies.push_back(*copy);
    }
    EXPECT_LE(copies.size(), kCopies);
    std::shuffle(copies.begin(), copies.end(), random);
    for (const Output::Copy& copy : copies) {
      if (GetParam() == OutputWay::kBlocks) {
        output_.Copied(copy);
      } else {
        EXPECT_EQ(output_.IsLastWritten(copy), output_.written_bytes() + copy.bytes == cuts_.payload_bytes());
        output_.Written(copy);
        Left(copy.begin, copy.bytes);
      }
    }
    const int64_t taken = TakePieces(&ended);
    if (GetParam() == OutputWay::kRegion || GetParam() == OutputWay::kStay) EXPECT_EQ(taken, 0);
    EXPECT_EQ(ended, output_.over());
  }
  EXPECT_TRUE(output_.all_ready());
  if (GetParam() == OutputWay::kStay) {
    EXPECT_EQ(std::count(bytes_.begin(), bytes_.end(), 0), total_);
  } else {
    ExpectAllResultsOnce();
    const bool region = GetParam() == OutputWay::kRegion;
    EXPECT_EQ(region ? output_.written_bytes() : output_.handed_out_bytes(), cuts_.payload_bytes());
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, OutputOf,
                         ::testing::Values(OutputWay::kInPlace, OutputWay::kBlocks, OutputWay::kRegion,
                                           OutputWay::kStay),
                         [](const auto& way) { return std::string(kNames[static_cast<size_t>(way.param)]); });

TEST(Output, TheFirstStreamHearsTheEndLast) {
  const Cuts cuts(1, Ranged(512, 512, 0), {100}, false);
  Output output(cuts, OutputWay::kInPlace, 4096, 0, nullptr);
  Streams streams;
  streams.Add();
  streams.Add();
  for (const int stream : {0, 1, 2}) output.Wait({stream, stream < 2, nullptr});
  EXPECT_FALSE(output.NextAnswer(streams, false)) << "nothing is ready";
  output.Ready(100);
  auto answer = output.NextAnswer(streams, false);
  ASSERT_TRUE(answer && answer->piece);
  EXPECT_EQ(answer->waiter.stream, 0) << "who asked first";
  EXPECT_FALSE(output.NextAnswer(streams, false)) << "input may still come";
  output.Wait({0, true, nullptr});
  answer = output.NextAnswer(streams, true);
  ASSERT_TRUE(answer && !answer->piece);
  EXPECT_EQ(answer->waiter.stream, 1);
  EXPECT_FALSE(output.NextAnswer(streams, true));
  streams.HalfClose(2);
  answer = output.NextAnswer(streams, true);
  ASSERT_TRUE(answer && !answer->piece);
  EXPECT_EQ(answer->waiter.stream, 2) << "which takes no output";
  streams.Done(1);
  EXPECT_FALSE(output.NextAnswer(streams, true));
  streams.Done(2);
  answer = output.NextAnswer(streams, true);
  ASSERT_TRUE(answer && !answer->piece);
  EXPECT_EQ(answer->waiter.stream, 0);
}

// A range's slot is free when its output left, so no run has bytes of two.
TEST(Output, InARingNoRunCrossesTheEndOfARange) {
  const Cuts cuts(1, Ranged(1000, 300, 0), {1000}, true);
  const Window ring(cuts, {.slots = 2, .slot_bytes = 512}, 256, 1);
  Output output(cuts, OutputWay::kBlocks, 256, 100, &ring);
  output.Ready(1000);
  std::vector<int64_t> begins;
  while (const auto copy = output.NextCopy()) begins.push_back(copy->begin);
  EXPECT_EQ(begins, (std::vector<int64_t>{0, 256, 300, 556, 600, 856, 900}));
}

}  // namespace
}  // namespace tilewire::engine
