// What has come of messages that are not whole has a bound, and each share its own.
#include "server/rpc/transport/messages_on_way.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "server/base/limits.h"

namespace tilewire::rpc {
namespace {

constexpr int64_t kLimit = 64 * kMiB;
constexpr size_t kPiece = 64 << 10;

std::string Prefix(uint32_t length) {
  std::string prefix(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) prefix += static_cast<char>(length >> shift);
  return prefix;
}

class MessagesOnWayTest : public ::testing::Test {
 protected:
  MessagesOnWayTest() { allowance_.SetLimit(kLimit); }

  /// In a block of its own, which it fills.
  Status Came(int stream, std::string_view piece, const std::string& who = "a") {
    ++block_;
    return CameIn(static_cast<int64_t>(piece.size()), stream, piece, who);
  }
  /// In the same block as the last one, which is of so many bytes.
  Status CameIn(int64_t block_bytes, int stream, std::string_view piece, const std::string& who = "a") {
    const auto verdict = on_way_.Came(
        &streams_[stream], piece,
        [&] { return BlocksKept::Block{.at = reinterpret_cast<const void*>(block_), .bytes = block_bytes}; },
        [&] {
          ++asked_;
          return std::make_shared<BlocksKept::Share>(
              BlocksKept::Share{.allowance = &allowance_, .name = who});
        });
    is_wanted_ = verdict.is_wanted;
    return verdict.refusal;
  }
  /// Of a message of 8 MiB all but its last byte; how much of it came until it was refused.
  int64_t AllButTheEnd(int stream, const std::string& who = "a") {
    constexpr int64_t kBytes = 8 * kMiB;
    EXPECT_TRUE(Came(stream, Prefix(kBytes), who).ok());
    const std::string piece(kPiece, '\0');
    for (int64_t came = 0; came < kBytes;) {
      const auto bytes = std::min<int64_t>(kPiece, kBytes - 1 - came);
      if (bytes == 0) break;
      if (!Came(stream, std::string_view(piece).substr(0, static_cast<size_t>(bytes)), who).ok()) return came;
      came += bytes;
    }
    return kBytes;
  }
  /// Blocks of so many bytes, as they count.
  static int64_t Blocks(int64_t count, int64_t bytes) { return count * (bytes + BlocksKept::kRecordBytes); }

  char streams_[64] = {};
  int asked_ = 0;
  bool is_wanted_ = true;
  uintptr_t block_ = 1;
  Allowance allowance_{"messages on their way"};
  MessagesOnWay on_way_;
};

TEST_F(MessagesOnWayTest, ThoseThatComeWholeDoNotCount) {
  const std::string message = Prefix(kPiece) + std::string(kPiece, '\0');
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(Came(0, message + message + Prefix(0)).ok());
  EXPECT_EQ(allowance_.held(), 0);
  EXPECT_EQ(asked_, 0);
}

TEST_F(MessagesOnWayTest, PiecesCountByTheBlocksThatTheyKeep) {
  constexpr int64_t kBlock = 64 << 10;
  ASSERT_TRUE(CameIn(kBlock, 0, Prefix(1000)).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(CameIn(kBlock, 0, "piece").ok());
  EXPECT_EQ(allowance_.held(), Blocks(1, kBlock));
  ++block_;
  ASSERT_TRUE(CameIn(kBlock, 0, "piece").ok());
  EXPECT_EQ(allowance_.held(), Blocks(2, kBlock));
  ASSERT_TRUE(CameIn(kBlock, 0, std::string(945, '\0')).ok());
  EXPECT_EQ(allowance_.held(), 0) << "whole";
  ASSERT_TRUE(CameIn(kBlock, 0, Prefix(1000)).ok());
  EXPECT_EQ(allowance_.held(), Blocks(1, kBlock)) << "the next one, in the same block";
  on_way_.Forget(&streams_[0]);
  EXPECT_EQ(allowance_.held(), 0);
  ASSERT_TRUE(CameIn(kBlock, 2, Prefix(1000)).ok());
  EXPECT_EQ(allowance_.held(), Blocks(1, kBlock)) << "another one that is where that was";
}

TEST_F(MessagesOnWayTest, ABlockOfManyStreamsCountsOnceAndUntilTheLastHasGone) {
  constexpr int64_t kBlock = 64 << 10;
  for (int block = 0; block < 4; ++block, ++block_)
    for (int stream = 0; stream < 8; ++stream)
      ASSERT_TRUE(CameIn(kBlock, stream, block == 0 ? Prefix(1000) : "piece").ok());
  EXPECT_EQ(allowance_.held(), Blocks(4, kBlock));
  for (int stream = 0; stream < 7; ++stream) on_way_.Forget(&streams_[stream]);
  EXPECT_EQ(allowance_.held(), Blocks(4, kBlock)) << "the last one keeps them all";
  ASSERT_TRUE(CameIn(kBlock, 7, std::string(985, '\0')).ok());
  EXPECT_EQ(allowance_.held(), 0) << "whole";
  EXPECT_EQ(allowance_.shares(), 0U);
}

// Which thread reads a connection changes, and streams end on any.
TEST_F(MessagesOnWayTest, ThreadsCountAsOne) {
  constexpr int64_t kBlock = 64 << 10;
  const auto on_another = [](const auto& work) { std::thread(work).join(); };
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(CameIn(kBlock, 0, i == 0 ? Prefix(1000) : "a").ok());
    on_another([&] { ASSERT_TRUE(CameIn(kBlock, 0, "b").ok()); });
  }
  EXPECT_EQ(allowance_.held(), Blocks(1, kBlock));
  on_another([&] { on_way_.Forget(&streams_[0]); });
  ASSERT_TRUE(CameIn(kBlock, 1, Prefix(1000)).ok());
  EXPECT_EQ(allowance_.held(), Blocks(1, kBlock)) << "another block at the same place";
}

// gRPC keeps a slice for each, in whatever block it lies.
TEST_F(MessagesOnWayTest, PiecesCountByTheirNumber) {
  constexpr int64_t kBlock = 64 << 10;
  ASSERT_TRUE(CameIn(kBlock, 0, Prefix(8 * kMiB)).ok());
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(CameIn(kBlock, 0, "abc").ok());
  EXPECT_NEAR(static_cast<double>(allowance_.held()), Blocks(1, kBlock) + 100'000 * 64, 4096);
  on_way_.Forget(&streams_[0]);
  EXPECT_EQ(allowance_.held(), 0);
}

TEST_F(MessagesOnWayTest, WhatNoneMayBeIsRefusedAtOnce) {
  const std::pair<std::string, const char*> wrong[] = {{Prefix(8 * kMiB + 1), "LIMIT"},
                                                       {Prefix(0x7fffffff), "LIMIT"},
                                                       {std::string("\2\0\0\0\3abc", 8), "BAD_MESSAGE"}};
  int stream = 0;
  for (const auto& [piece, reason] : wrong) {
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{3}}) {
      Status told;
      for (const std::string_view part :
           {std::string_view(piece).substr(0, cut), std::string_view(piece).substr(cut)})
        if (!part.empty() && told.ok()) told = Came(stream, part);
      EXPECT_EQ(told.reason(), reason) << told.ToString();
      EXPECT_FALSE(is_wanted_);
      EXPECT_TRUE(Came(stream, std::string(kPiece, '\0')).ok()) << "told once";
      EXPECT_FALSE(is_wanted_);
      EXPECT_EQ(allowance_.held(), 0);
      EXPECT_TRUE(on_way_.Forget(&streams_[stream]));
      ++stream;
    }
  }
  ASSERT_TRUE(Came(stream, Prefix(8 * kMiB)).ok());
  EXPECT_FALSE(on_way_.Forget(&streams_[stream]));
}

TEST_F(MessagesOnWayTest, OneThatIsAlonePassesHoweverSmallTheLimit) {
  allowance_.SetLimit(kMiB);
  EXPECT_EQ(AllButTheEnd(0), 8 * kMiB);
  EXPECT_EQ(Came(1, Prefix(100)).reason(), "BUSY");
  on_way_.Forget(&streams_[0]), on_way_.Forget(&streams_[1]);
  constexpr int64_t kBlock = 64 << 10;  // of which a byte keeps all
  int64_t came = 0;
  ASSERT_TRUE(CameIn(kBlock, 2, Prefix(8 * kMiB)).ok());
  for (++block_; CameIn(kBlock, 2, "b").ok(); ++block_) ++came;
  EXPECT_LT(came * kBlock, 17 * kMiB);
  EXPECT_EQ(allowance_.held(), 0);
}

TEST_F(MessagesOnWayTest, ThoseThatLieInNoneDoNot) {
  const std::string message = Prefix(50) + std::string(50, '\0');
  for (int i = 0; i < 1000; ++i)
    for (const char byte : message) ASSERT_TRUE(CameIn(0, i % 64, std::string_view(&byte, 1)).ok());
  EXPECT_EQ(asked_, 0);
}

TEST_F(MessagesOnWayTest, AStreamMayBringAsManyAsItLikesOneAfterTheOther) {
  const std::string rest(kMiB, '\0'), end_and_next = std::string(kMiB, '\0') + Prefix(8 * kMiB);
  ASSERT_TRUE(Came(0, Prefix(8 * kMiB)).ok());
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 7; ++k) ASSERT_TRUE(Came(0, rest).ok());
    EXPECT_GE(allowance_.held(), 7 * kMiB);
    ASSERT_TRUE(Came(0, end_and_next).ok());
    ASSERT_LE(allowance_.held(), Blocks(1, static_cast<int64_t>(end_and_next.size()))) << "of the next one";
  }
  EXPECT_EQ(asked_, 1);
}

TEST_F(MessagesOnWayTest, OneShareLeavesRoomForOthers) {
  int refused = 0;
  for (int stream = 0; stream < 32; ++stream) refused += AllButTheEnd(stream) < 8 * kMiB ? 1 : 0;
  EXPECT_GE(refused, 20) << "of 32 of 8 MiB, with 64 MiB for all";
  EXPECT_LE(allowance_.held(), kLimit * 13 / 16);
  EXPECT_LE(allowance_.held(), 50 * kMiB) << "what was refused does not count any more";
  EXPECT_EQ(AllButTheEnd(40, "b"), 8 * kMiB);
  for (int stream = 0; stream < 64; ++stream) on_way_.Forget(&streams_[stream]);
  EXPECT_EQ(allowance_.held(), 0);
  EXPECT_EQ(allowance_.shares(), 0U);
}

TEST_F(MessagesOnWayTest, WhatIsForgottenBeginsAnew) {
  ASSERT_TRUE(Came(0, Prefix(1000) + std::string(10, '\0')).ok());
  on_way_.Forget(&streams_[0]);
  ASSERT_TRUE(Came(0, Prefix(8 * kMiB)).ok()) << "another stream that is where that was";
  const std::string piece(4 * kMiB, '\0');
  ASSERT_TRUE(Came(0, piece).ok());
  EXPECT_GT(allowance_.held(), 3 * kMiB);
  ASSERT_TRUE(Came(0, piece).ok());
  EXPECT_EQ(allowance_.held(), 0) << "whole";
}

TEST_F(MessagesOnWayTest, OfNobodysAccountNothingCounts) {
  const std::string piece = Prefix(1 << 30) + std::string(kMiB, '\0');
  for (int i = 0; i < 500; ++i)
    ASSERT_TRUE(on_way_
                    .Came(
                        &streams_[0], piece,
                        [&] { return BlocksKept::Block{.at = piece.data() + i, .bytes = 1}; },
                        [] { return nullptr; })
                    .is_wanted);
  EXPECT_EQ(allowance_.held(), 0);
  EXPECT_FALSE(on_way_.Forget(&streams_[0]));
}

}  // namespace
}  // namespace tilewire::rpc
