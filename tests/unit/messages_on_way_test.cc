// What has come of messages that are not whole has a bound, and each share its own.
#include "server/rpc/transport/messages_on_way.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

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
    return on_way_.Came(
        &streams_[stream], piece,
        [&] {
          return MessagesOnWay::Block{.at = reinterpret_cast<const void*>(block_), .bytes = block_bytes};
        },
        [&] {
          ++asked_;
          return MessagesOnWay::Share{.allowance = &allowance_, .name = who};
        });
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

  char streams_[64] = {};
  int asked_ = 0;
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
  ASSERT_TRUE(CameIn(kBlock, 1, Prefix(1000)).ok()) << "of another stream";
  EXPECT_EQ(allowance_.held(), kBlock);
  ++block_;
  ASSERT_TRUE(CameIn(kBlock, 0, "piece").ok());
  EXPECT_EQ(allowance_.held(), 2 * kBlock);
  ASSERT_TRUE(CameIn(kBlock, 0, std::string(945, '\0')).ok());
  EXPECT_EQ(allowance_.held(), 0) << "whole";
  ASSERT_TRUE(CameIn(kBlock, 0, Prefix(1000)).ok());
  EXPECT_EQ(allowance_.held(), kBlock) << "the next one, in the same block";
  on_way_.Forget(&streams_[0]);
  EXPECT_EQ(allowance_.held(), 0);
  ASSERT_TRUE(CameIn(kBlock, 2, Prefix(1000)).ok());
  EXPECT_EQ(allowance_.held(), kBlock) << "another one that is where that was";
}

TEST_F(MessagesOnWayTest, ThoseThatLieInNoneDoNot) {
  const std::string message = Prefix(100) + std::string(100, '\0');
  for (int i = 0; i < 1000; ++i)
    for (const char byte : message) ASSERT_TRUE(CameIn(0, i % 64, std::string_view(&byte, 1)).ok());
  EXPECT_EQ(asked_, 0);
}

TEST_F(MessagesOnWayTest, AStreamMayBringAsManyAsItLikesOneAfterTheOther) {
  const std::string rest(kMiB, '\0'), end_and_next = std::string(1, '\0') + Prefix(8 * kMiB + 1);
  ASSERT_TRUE(Came(0, Prefix(8 * kMiB + 1)).ok());
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 8; ++k) ASSERT_TRUE(Came(0, rest).ok());
    EXPECT_GE(allowance_.held(), 7 * kMiB);
    ASSERT_TRUE(Came(0, end_and_next).ok());
    ASSERT_LT(allowance_.held(), 10) << "of the next one";
  }
  EXPECT_EQ(asked_, 1);
}

TEST_F(MessagesOnWayTest, OneShareLeavesRoomForOthers) {
  int refused = 0;
  for (int stream = 0; stream < 32; ++stream) refused += AllButTheEnd(stream) < 8 * kMiB ? 1 : 0;
  EXPECT_GE(refused, 20) << "of 32 of 8 MiB, with 64 MiB for all";
  EXPECT_LE(allowance_.held(), kLimit * 13 / 16);
  EXPECT_LE(allowance_.held(), 49 * kMiB) << "what was refused does not count any more";
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
  const std::string piece(kMiB, '\0');
  ASSERT_TRUE(CameIn(0, 0, Prefix(1 << 30)).ok());
  for (int i = 0; i < 500; ++i)
    ASSERT_TRUE(on_way_
                    .Came(
                        &streams_[0], piece,
                        [&] { return MessagesOnWay::Block{.at = piece.data() + i, .bytes = 1}; },
                        [] { return MessagesOnWay::Share{}; })
                    .ok());
  EXPECT_EQ(allowance_.held(), 0);
}

}  // namespace
}  // namespace tilewire::rpc
