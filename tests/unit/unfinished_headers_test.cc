// Headers that do not come whole have an end.
#include "server/rpc/transport/unfinished_headers.h"

#include <gtest/gtest.h>

namespace tilewire::rpc {
namespace {

constexpr size_t kMost = UnfinishedHeaders::kMostBytes;
constexpr int kFrames = UnfinishedHeaders::kMostFrames;

class UnfinishedHeadersTest : public ::testing::Test {
 protected:
  /// A frame that comes whole.
  bool Frame(int connection, uint32_t stream, size_t bytes, bool last) {
    headers_.BeginFrame(&connections_[connection], stream, last);
    return headers_.Came(&connections_[connection], bytes, true);
  }

  int connections_[2] = {};
  UnfinishedHeaders headers_;
};

TEST_F(UnfinishedHeadersTest, OneMayComeInPieces) {
  for (uint32_t stream = 1; stream < 1000; stream += 2) {
    EXPECT_TRUE(Frame(0, stream, kMost / 2, false));
    EXPECT_TRUE(Frame(0, stream, kMost / 2, true));
  }
}

TEST_F(UnfinishedHeadersTest, NoneMayBeLargerThanThat) {
  EXPECT_TRUE(Frame(0, 1, kMost, true));
  EXPECT_FALSE(Frame(0, 3, kMost + 1, true)) << "whole";
  EXPECT_TRUE(Frame(0, 5, kMost, false));
  EXPECT_FALSE(Frame(0, 5, 1, false)) << "in frames";
  headers_.BeginFrame(&connections_[1], 1, true);
  EXPECT_TRUE(headers_.Came(&connections_[1], kMost, false));
  EXPECT_FALSE(headers_.Came(&connections_[1], 1, false)) << "in pieces of one frame";
}

TEST_F(UnfinishedHeadersTest, NorComeInMoreFrames) {
  for (int i = 0; i < kFrames; ++i) EXPECT_TRUE(Frame(0, 1, 0, false));
  EXPECT_FALSE(Frame(0, 1, 0, true));
}

/// gRPC 1.51 says of a header that it skips that it is over while it is not.
TEST_F(UnfinishedHeadersTest, WhateverIsSaidOfThem) {
  EXPECT_TRUE(Frame(0, 2, kMost, true));
  EXPECT_TRUE(Frame(0, 2, kMost, true)) << "known from here on";
  EXPECT_FALSE(Frame(0, 2, 1, true));
  for (int i = 0; i <= kFrames; ++i) EXPECT_TRUE(Frame(1, 2, 0, true)) << i;
  EXPECT_FALSE(Frame(1, 2, 0, true));
}

TEST_F(UnfinishedHeadersTest, WhatIsOverDoesNotCount) {
  EXPECT_TRUE(Frame(0, 1, kMost, false));
  headers_.Forget(&connections_[0]);
  EXPECT_TRUE(Frame(0, 1, kMost, false)) << "another connection where that one was";
  EXPECT_TRUE(Frame(0, 3, kMost, false)) << "another stream";
  headers_.BeginFrame(&connections_[0], 3, true);
  EXPECT_FALSE(headers_.Came(&connections_[0], 1, true)) << "the same";
}

TEST_F(UnfinishedHeadersTest, ConnectionsDoNotCountTogether) {
  EXPECT_TRUE(Frame(0, 1, kMost, false));
  EXPECT_TRUE(Frame(1, 1, kMost, false));
  headers_.BeginFrame(&connections_[1], 1, true);
  headers_.BeginFrame(&connections_[0], 1, true);
  EXPECT_FALSE(headers_.Came(&connections_[1], 1, true)) << "begun, and another one after it";
  EXPECT_FALSE(headers_.Came(&connections_[0], 1, true));
}

}  // namespace
}  // namespace tilewire::rpc
